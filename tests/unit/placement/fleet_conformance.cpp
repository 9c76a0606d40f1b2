#include "store_conformance.hpp"

namespace hotlane::placement {

using policy::home_kind;
using namespace std::chrono_literals;

namespace {

sidecar_record sidecar(const std::string& id) {
    sidecar_record out;
    out.id = id;
    out.name = "host-" + id;
    out.version = "1.2";
    out.policy_hash = "abc";
    out.admin = "/run/a.sock";
    out.lease = 9s;
    return out;
}

}  // namespace

void check_awkward_texts(store_back_end& back_end) {
    auto there = back_end.open();
    const std::string odd = "it's \"x\" \xc3\xa4 \\ $1 ; --\n";
    REQUIRE(there->add_ddl("a", odd));
    REQUIRE(there->ddl("a").value().at(0) == odd);
    REQUIRE(there->add_ddl("a", std::string("broken \xff and \0 zero", 18)));
    REQUIRE(there->put_document("kind", odd, {{"text", odd}, {"broken", "\xff"}}));
    REQUIRE((**there->document("kind", odd))["text"] == odd);
    move_record move{"m1", "a", {}, home_kind::postgres, 1, "hold", "undone", "\xff " + odd, "me"};
    move.plan = {{"sample", "\xff"}};
    REQUIRE(there->put_move(move));
    REQUIRE(there->move("m1").value()->plan.is_object());
    // A large one: more than a socket takes at once.
    const std::string large(3'000'000, 'x');
    REQUIRE(there->put_document("kind", "large", large));
    REQUIRE((**there->document("kind", "large")).get<std::string>().size() == large.size());
}

void check_leases(store_back_end& back_end) {
    auto there = back_end.open();
    REQUIRE_FALSE(there->beat(sidecar("s1"), nullptr, false)->known);
    REQUIRE(there->join(sidecar("s1")));
    REQUIRE(there->join(sidecar("s2")));
    const auto before = there->sidecars().value();
    REQUIRE(before.size() == 2);
    REQUIRE(before[0].name == "host-s1");
    REQUIRE(before[0].lease == 9s);
    auto changed = sidecar("s1");
    changed.policy_hash = "def";
    changed.clock = at_ms(77);
    REQUIRE(there->beat(changed, nullptr, false)->known);
    const auto after = there->sidecars().value();
    REQUIRE(after[0].beat > before[0].beat);
    REQUIRE(after[0].policy_hash == "def");
    REQUIRE(after[0].clock == at_ms(77));
    REQUIRE(after[1].beat == before[1].beat);
    // Joining again is a renewal, and nobody stands there twice.
    REQUIRE(there->join(sidecar("s2")));
    REQUIRE(there->sidecars()->at(1).beat > after[1].beat);
    REQUIRE(there->leave("s1"));
    REQUIRE(there->sidecars()->size() == 1);
    REQUIRE_FALSE(there->beat(sidecar("s1"), nullptr, false)->known);
}

void check_leader(store_back_end& back_end) {
    auto there = back_end.open();
    const auto first = there->leads_as();
    REQUIRE(first > 0);
    const auto raised = there->raise(first + 100).value();
    REQUIRE(raised > first + 100);
    REQUIRE(there->leads_as() == raised);
    REQUIRE(there->put_placement({"a", home_kind::engine, 1, at_ms(1), ""}).value());
    // Who leads again, even the same process, gets another number.
    there.reset();
    there = back_end.open();
    REQUIRE(there->leads_as() > raised);
    REQUIRE(there->raise(1).value() > raised + 1);
    there->resign();
    REQUIRE(there->leads_as() == 0);
    REQUIRE(there->put_hold({"a", "m1", true}).error().why == store_error::kind::not_leader);
    lead(*there, "again");
    REQUIRE(there->put_hold({"a", "m1", true}));
}

void check_news(store_back_end& back_end) {
    auto there = back_end.open();
    REQUIRE(there->put_placement({"a", home_kind::engine, 1, at_ms(1), ""}).value());
    const auto all = there->changes(0).value();
    REQUIRE(all.whole);
    REQUIRE(all.placements.size() == 1);
    REQUIRE(there->changes(all.version)->placements.empty());
    REQUIRE(there->put_placement({"b", home_kind::postgres, 2, at_ms(5), "m7"}).value());
    there->wait(20s);  // announced: this ends at once
    const auto then = there->changes(all.version).value();
    REQUIRE_FALSE(then.whole);
    REQUIRE(then.version > all.version);
    REQUIRE(then.placements.size() == 1);
    REQUIRE(then.placements[0].tool == "b");
    REQUIRE(then.placements[0].home == home_kind::postgres);
    REQUIRE(then.placements[0].epoch == 2);
    REQUIRE(then.placements[0].move == "m7");
    REQUIRE(there->join(sidecar("s1")));
    REQUIRE(there->beat(sidecar("s1"), nullptr, false)->version == then.version);
    there->wake();
    there->wait(20s);
}

void check_holds(store_back_end& back_end) {
    auto there = back_end.open();
    REQUIRE(there->put_hold({"a", "m1", true}));
    REQUIRE(there->ack({"a", "m1"}, "s1"));
    REQUIRE(there->ack({"a", "m1"}, "s1"));
    REQUIRE(there->ack({"a", "m0"}, "s2"));
    REQUIRE(there->acks({"a", "m1"}).value() == std::vector<std::string>{"s1"});
    auto now = there->changes(0).value();
    REQUIRE(now.holds.size() == 1);
    REQUIRE(now.holds[0].held);
    REQUIRE(now.holds[0].move == "m1");
    // A release of another move opens nothing.
    REQUIRE(there->put_hold({"a", "m0", false}));
    REQUIRE(there->changes(0)->holds.at(0).held);
    REQUIRE(there->put_hold({"a", "m1", false}));
    now = there->changes(now.version).value();
    REQUIRE(now.holds.size() == 1);
    REQUIRE_FALSE(now.holds[0].held);
    // A hold that this store knows nothing of any more can be released for who still holds it.
    REQUIRE(there->put_hold({"a", "m0", false}));
    now = there->changes(now.version).value();
    REQUIRE(now.holds.at(0).move == "m0");
    REQUIRE_FALSE(now.holds.at(0).held);
    // The next hold starts without old acknowledgements.
    REQUIRE(there->put_hold({"a", "m2", true}));
    REQUIRE(there->acks({"a", "m1"})->empty());
    REQUIRE(there->acks({"a", "m2"})->empty());
}

void check_reports(store_back_end& back_end) {
    auto there = back_end.open();
    REQUIRE(there->join(sidecar("s1")));
    REQUIRE(there->beat(sidecar("s1"), {{"n", 1}}, false));
    REQUIRE(there->beat(sidecar("s1"), nullptr, false));
    REQUIRE(there->beat(sidecar("s1"), {{"n", 2}}, false));
    const auto first = there->take_reports(1).value();
    REQUIRE(first.size() == 1);
    REQUIRE(first[0].sidecar == "s1");
    REQUIRE(first[0].body["n"] == 1);
    REQUIRE(there->take_reports(10)->at(0).body["n"] == 2);
    REQUIRE(there->take_reports(10)->empty());
    // When nobody takes them they do not pile up.
    for (std::size_t i = 0; i < 2 * fleet_store::reports_max; ++i)
        REQUIRE(there->beat(sidecar("s1"), {{"n", i}}, false));
    REQUIRE(there->take_reports(1'000)->size() == fleet_store::reports_max);
}

}  // namespace hotlane::placement

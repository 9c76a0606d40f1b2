// A coordinator over a real store with nobody else at it, and sidecars that the test plays.
#include "router/control/coordinator.hpp"

#include "router/control/reports.hpp"
#include "tests/unit/control/support.hpp"

using namespace hotlane;
using namespace hotlane::control;
using namespace hotlane::control::test;
using policy::home_kind;

namespace {

struct fleet_bench {
    fleet_bench()
        : b(make_model({"a", "b"})),
          shared(std::move(*placement::open_sqlite_store(b.where.file("shared.db")))),
          all(b.in, *shared, settings()) {
        b.place_all();
        b.in.act.see = [this](placement::tool_entry& tool, move::surroundings& around) {
            ++looks;
            if (around.doubted) doubted = true;
            const auto route = tool.current();
            return move::sight{tells.load(), route->at.kind, route->epoch, true, {}};
        };
        all.start({[this] { ++elected; },
                   [this] { return looked.load(); },
                   [this] { ++leading; },
                   [this](const std::string&) { return moving.load(); }});
    }
    static coordinator::settings settings() {
        coordinator::settings with;
        with.who.id = "me";
        with.who.name = "me";
        with.who.lease = 1'500ms;
        return with;
    }
    [[nodiscard]] placement::gate& gate() { return b.tools.find("a")->gate; }
    void lead() {
        looked = true;
        REQUIRE(eventually([this] { return all.decides(); }));
        for (const auto& entry : b.tools.all())
            all.looked(*entry, true);
    }

    bench b;
    std::unique_ptr<placement::fleet_store> shared;
    std::atomic<int> elected{0}, leading{0};
    std::atomic<bool> looked{false};
    std::atomic<bool> moving{true};
    std::atomic<int> looks{0};  // at the homes, on doubt
    std::atomic<bool> tells{true},
        doubted{false};  // they say where it lives; they were asked in doubt
    coordinator all;
};

policy::time_point at(long long ms) {
    return policy::time_point(policy::duration(ms));
}

std::chrono::steady_clock::time_point soon() {
    return std::chrono::steady_clock::now() + 10s;
}

bool always() {
    return true;
}

}  // namespace

TEST_CASE("who leads looks at every home before it decides") {
    fleet_bench f;
    REQUIRE(eventually([&] { return f.elected == 1; }));
    CHECK(f.all.leads());
    CHECK_FALSE(f.all.decides());
    CHECK(f.leading == 0);
    f.lead();
    CHECK(f.leading == 1);
    CHECK(f.all.view()["sidecars"].size() == 1);
    CHECK(f.all.view()["sidecars"][0]["leads"] == true);
}

TEST_CASE("who leads decides only when every lease from before is over") {
    fleet_bench f;
    f.looked = true;
    REQUIRE(eventually([&] { return f.elected == 1; }));
    const auto elected = std::chrono::steady_clock::now();
    CHECK_FALSE(f.all.decides());
    REQUIRE(eventually([&] { return f.all.decides(); }));
    // Seen by polling, so a little of the lease may have passed before.
    CHECK(std::chrono::steady_clock::now() - elected > 1'200ms);
}

TEST_CASE("an answer as from a fence closes the gate until a look that began behind it") {
    fleet_bench f;
    f.lead();
    auto& entry = *f.b.tools.find("a");
    REQUIRE_FALSE(f.gate().held());
    f.tells = false;
    f.looks = 0;
    entry.counted.sessions = 1;
    REQUIRE(f.b.tools.word.left(entry));
    CHECK(f.gate().held());
    REQUIRE(
        eventually([&] { return f.looks > 1; }));  // it is asked again while the homes do not say
    CHECK(f.gate().held());
    CHECK(f.doubted);
    f.tells = true;
    REQUIRE(eventually([&] { return !f.gate().held(); }));
}

TEST_CASE("the store vouches for a lease and no longer") {
    fleet_bench f;
    REQUIRE(eventually([&] { return f.b.tools.word.holds(); }));
    f.all.stop();
    REQUIRE(eventually([&] { return !f.b.tools.word.holds(); }));
}

TEST_CASE("a hold closes the gate, waits for what is inside, and a release opens it") {
    fleet_bench f;
    f.lead();
    REQUIRE(f.gate().try_enter());
    std::atomic<bool> held{false};
    std::jthread mover([&] { held = f.all.hold("a", "m1", soon(), always).has_value(); });
    REQUIRE(eventually([&] { return f.gate().held(); }));
    CHECK_FALSE(held);
    f.gate().leave();
    REQUIRE(eventually([&] { return held.load(); }));
    f.b.tools.find("a")->place(home_at(home_kind::postgres), 2);
    f.all.release("a", "m1");
    CHECK_FALSE(f.gate().held());
}

TEST_CASE("a hold waits for every sidecar, and names the one that does not answer") {
    fleet_bench f;
    f.lead();
    REQUIRE(f.shared->join({.id = "s2", .name = "pod-2", .lease = 1'500ms}));
    SECTION("until it has drained") {
        std::atomic<bool> held{false};
        std::jthread mover([&] { held = f.all.hold("a", "m1", soon(), always).has_value(); });
        REQUIRE(eventually([&] { return !f.shared->changes(0)->holds.empty(); }));
        CHECK_FALSE(held);
        REQUIRE(f.shared->ack({"a", "m1", true}, "s2"));
        CHECK(eventually([&] { return held.load(); }));
    }
    SECTION("not longer than the move may") {
        const auto got = f.all.hold("a", "m1", std::chrono::steady_clock::now() + 50ms, always);
        REQUIRE_FALSE(got.has_value());
        CHECK(got.error().find("pod-2") != std::string::npos);
    }
    SECTION("not longer than the operator lets it") {
        std::atomic<bool> goes_on{true};
        std::chrono::steady_clock::time_point ended;
        std::optional<std::string> why;
        std::jthread mover([&] {
            const auto got = f.all.hold("a", "m1", soon(), [&] { return goes_on.load(); });
            if (!got) why = got.error();
            ended = std::chrono::steady_clock::now();
        });
        REQUIRE(eventually([&] { return !f.shared->changes(0)->holds.empty(); }));
        const auto aborted = std::chrono::steady_clock::now();
        goes_on = false;
        mover.join();
        REQUIRE(why);
        CHECK(why->find("pod-2") != std::string::npos);
        CHECK(ended - aborted < 100ms);
    }
    SECTION("only as long as its lease") {
        CHECK(f.all.hold("a", "m1", soon(), always).has_value());
    }
}

TEST_CASE("a hold that no move belongs to is released by the one that leads") {
    fleet_bench f;
    f.lead();
    REQUIRE(f.all.hold("a", "m1", soon(), always).has_value());
    f.moving = false;  // its mover is gone
    CHECK(eventually([&] { return !f.gate().held(); }));
    CHECK(eventually([&] { return !f.shared->changes(0)->holds.at(0).held; }));
}

TEST_CASE("news of another home reach the route; older ones do not") {
    fleet_bench f;
    f.lead();
    const auto entry = f.b.tools.find("a");
    REQUIRE(f.shared->put_placement({"a", home_kind::postgres, 5, f.b.now(), "m1"}).value());
    REQUIRE(eventually([&] { return entry->current()->epoch == 5; }));
    CHECK(entry->current()->at.kind == home_kind::postgres);
    CHECK_FALSE(f.shared->put_placement({"a", home_kind::engine, 4, f.b.now(), "m0"}).value());
}

TEST_CASE("the leader's number is above every number that a home has seen") {
    fleet_bench f;
    f.lead();
    const auto first = f.all.number_above(0).value();
    CHECK(f.all.number_above(first - 1).value() == first);
    CHECK(f.all.number_above(first).value() > first);
    CHECK(f.all.number_above(1'000).value() > 1'000);
}

TEST_CASE("what a sidecar saw is counted once at the leader, with its statements") {
    placement::tool_entry seen;
    seen.counted.transactions = 7;
    seen.counted.write_conflicts = 2;
    const auto now = read_counters(seen.counted);
    std::vector<placement::observation> list(3);
    list[0] = {placement::observation::kind::conflict, "t", "UPDATE t SET n = 1", {}};
    const auto report = make_report({}, now, list, 2);
    CHECK(report["left_out"] == 1);
    CHECK(make_report(now, now, {}, 2).is_null());
    placement::tool_entry leader;
    auto told = report;
    seen.statements.see(9, "SELECT 1", {}, at(5));
    add_statements(told, seen.statements.lately(at(6)), at(4), 10);
    add_writes(told, {{1, 4'000, 4'500, 7, true, false}, {2, 4'600, 4'700}}, 0, at(5), 1);
    merge_report(leader, told, "s2", at(100));
    merge_report(leader, {{"counts", "nonsense"}}, "s2", at(100));
    merge_report(leader, {{"counts", {1, "two", 3, 4, 5, 6}}, {"seen", {1, 2}}}, "s2", at(100));
    CHECK(leader.elsewhere.write_conflicts == 2);
    const auto kept = leader.seen.take();
    REQUIRE(kept.size() == 1);
    CHECK(kept[0].table == "t");
    const auto writes = leader.writes.take();
    REQUIRE(writes.size() == 1);
    CHECK(writes[0].start_us == 99'000);  // a millisecond before it was told
    CHECK(writes[0].end_us == 99'500);
    CHECK(writes[0].session != 1);
    CHECK((writes[0].key == 7 && writes[0].conflict && !writes[0].block));
    CHECK(leader.writes.dropped() == 1);
    REQUIRE(leader.statements.lately(at(101)).size() == 1);
    CHECK(leader.statements.lately(at(101))[0].at == at(100));
    CHECK(leader.statements.lately(at(101))[0].sql == "SELECT 1");
}

#include "store_conformance.hpp"

namespace hotlane::placement {

using policy::home_kind;

void check_placements(store_back_end& back_end) {
    auto there = back_end.open();
    REQUIRE(there->placements()->empty());
    REQUIRE_FALSE(there->placement("a")->has_value());
    const placement_record first{"a", home_kind::engine, 1, at_ms(1'000), ""};
    REQUIRE(there->put_placement(first).value());
    REQUIRE(there->put_placement({"a", home_kind::postgres, 3, at_ms(2'000), "m1"}).value());
    // Neither an older nor the same epoch may overwrite.
    REQUIRE_FALSE(there->put_placement({"a", home_kind::engine, 2, at_ms(3'000), "m2"}).value());
    REQUIRE_FALSE(there->put_placement({"a", home_kind::engine, 3, at_ms(3'000), "m2"}).value());
    REQUIRE(there->put_placement({"b", home_kind::engine, 1, at_ms(0), ""}).value());
    there.reset();
    there = back_end.open();
    const auto all = there->placements().value();
    REQUIRE(all.size() == 2);
    REQUIRE(all[0].tool == "a");
    REQUIRE(all[0].home == home_kind::postgres);
    REQUIRE(all[0].epoch == 3);
    REQUIRE(all[0].since == at_ms(2'000));
    REQUIRE(all[0].move == "m1");
    REQUIRE(there->placement("b").value()->epoch == 1);
}

void check_moves(store_back_end& back_end) {
    auto there = back_end.open();
    move_record one{"m1", "a", home_kind::engine, home_kind::postgres, 4, "copy", "", "", "policy"};
    one.started = at_ms(5);
    one.plan = {{"tables", {"x", "it's"}}, {"rows", 12}};
    REQUIRE(there->put_move(one));
    auto two = one;
    two.id = "m2";
    two.tool = "b";
    two.outcome = "undone";
    two.reason = "the target was full";
    REQUIRE(there->put_move(two));
    REQUIRE(there->unfinished_moves()->size() == 1);
    one.phase = "commit";
    REQUIRE(there->put_move(one));
    there.reset();
    there = back_end.open();
    const auto read = there->move("m1").value();
    REQUIRE(read.has_value());
    REQUIRE(read->phase == "commit");
    REQUIRE(read->plan == one.plan);
    REQUIRE(read->to == home_kind::postgres);
    REQUIRE(read->epoch == 4);
    REQUIRE(read->started == at_ms(5));
    REQUIRE_FALSE(there->move("m3")->has_value());
    // Newest first, and an update does not make a move newer.
    const auto recent = there->recent_moves(10).value();
    REQUIRE(recent.size() == 2);
    REQUIRE(recent[0].id == "m2");
    REQUIRE(recent[0].reason == "the target was full");
    REQUIRE(there->recent_moves(1)->size() == 1);
}

void check_decisions(store_back_end& back_end) {
    auto there = back_end.open();
    const auto first = there->add_decision({0, "a", at_ms(1), {{"rule", "r1"}}}).value();
    const auto second = there->add_decision({0, "a", at_ms(2), {{"rule", "\xff"}}}).value();
    REQUIRE(second > first);
    REQUIRE(there->add_decision({0, "b", at_ms(3), nullptr}));
    there.reset();
    there = back_end.open();
    const auto read = there->decisions("a", 10).value();
    REQUIRE(read.size() == 2);
    REQUIRE(read[0].id == second);
    REQUIRE(read[1].body["rule"] == "r1");
    REQUIRE(read[1].at == at_ms(1));
    REQUIRE(there->decisions("a", 1)->size() == 1);
    REQUIRE(there->add_decision({0, "a", at_ms(4), {}}).value() > second);
}

void check_ddl_and_documents(store_back_end& back_end) {
    auto there = back_end.open();
    REQUIRE(there->add_ddl("a", "CREATE TABLE t (n int)"));
    REQUIRE(there->add_ddl("b", "CREATE TABLE other ()"));
    REQUIRE(there->add_ddl("a", "ALTER TABLE t ADD m text DEFAULT 'it''s'"));
    REQUIRE_FALSE(there->document("pin", "a")->has_value());
    REQUIRE(there->put_document("pin", "a", {{"until", 5}}));
    REQUIRE(there->put_document("pin", "a", {{"until", 6}}));
    REQUIRE(there->put_document("runbook", "a", nlohmann::json::array()));
    there.reset();
    there = back_end.open();
    REQUIRE(there->ddl("a").value() ==
            std::vector<std::string>{"CREATE TABLE t (n int)",
                                     "ALTER TABLE t ADD m text DEFAULT 'it''s'"});
    REQUIRE(there->ddl("c")->empty());
    REQUIRE((**there->document("pin", "a"))["until"] == 6);
    REQUIRE((**there->document("runbook", "a")).is_array());
}

void check_all(store_back_end& back_end) {
    static constexpr struct {
        const char* what;
        void (*check)(store_back_end&);
    } all[] = {{"placements", check_placements},
               {"moves", check_moves},
               {"decisions", check_decisions},
               {"DDL and documents", check_ddl_and_documents},
               {"awkward texts", check_awkward_texts},
               {"leases", check_leases},
               {"the leader", check_leader},
               {"news", check_news},
               {"holds", check_holds},
               {"reports", check_reports}};
    for (const auto& one : all)
        DYNAMIC_SECTION(one.what) {
            one.check(back_end);
        }
}

}  // namespace hotlane::placement

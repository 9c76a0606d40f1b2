// A move out that copies ahead of its hold: every accident at every statement, with applications
// that come through hotlane (their commits are counted, and what they did not touch is not read
// again) and with others that go round it (everything is compared).
#include <algorithm>
#include <catch2/catch.hpp>

#include "accidents.hpp"

using namespace sim;
using hotlane::policy::home_kind;

namespace {

setting ahead(bool by_hotlane, int late_after = 1) {
    return {home_kind::engine, late_after, 0, true, by_hotlane};
}

}  // namespace

TEST_CASE("a move that copies ahead survives every accident at every statement") {
    every_accident(ahead(true, 2));
    every_accident(ahead(false, 0));
}

TEST_CASE("what everybody wrote through hotlane is known, and the rest is not read again") {
    auto w = make_world(ahead(true));
    process p(*w);
    bool known = false;
    REQUIRE(p.recover(&known));
    hotlane::move::report done;
    REQUIRE(p.move(home_kind::postgres, &done));
    REQUIRE(done.moved);
    const auto& shown = done.detail["ahead"];
    CHECK(shown["all_seen"] == true);
    CHECK(shown["passes"] == 1);
    CHECK(shown["commits_seen"] > 3);
    CHECK(shown["changed"] == nlohmann::json::array({"t"}));
    CHECK(done.detail["phases"].contains("settle"));
    CHECK_FALSE(done.detail["phases"].contains("copy"));
    CHECK(p.tool->changes.number() == 0);
    check_world(*w, home_kind::postgres);
}

TEST_CASE("somebody who goes round hotlane while the rows are copied loses nothing") {
    // Each of these happens once, at the n-th statement of the move. The last two are no commits:
    // only the LSN tells.
    const std::vector<std::pair<std::string, std::string>> acts{
        {"INSERT INTO u (id, v) VALUES (777777, 'round')", ""},
        {"UPDATE u SET v = 'round' WHERE id = 1", ""},
        {"DELETE FROM u WHERE id = 1", ""},
        {"DROP TABLE u", "CREATE TABLE u (id INTEGER PRIMARY KEY, v TEXT)"},
    };
    const auto steps = count_steps(ahead(true));
    std::size_t again = 0, moved = 0;
    for (std::uint64_t n = 1; n <= steps; ++n)
        for (const auto& [first, second] : acts) {
            CAPTURE(n, first);
            auto w = make_world(ahead(true));
            REQUIRE(w->at_engine.accepts("INSERT INTO u (id, v) VALUES (1, 'old')"));
            REQUIRE(w->at_engine.accepts("INSERT INTO u (id, v) VALUES (2, 'old')"));
            process p(*w);
            bool known = false;
            REQUIRE(p.recover(&known));
            const auto start = p.steps.count;
            bool acted = false;
            p.steps.bystanders = [&] {
                w->probe();
                const bool stands = !w->at_engine.column("SELECT v FROM u").empty();
                if (p.steps.count != start + n || acted || !stands) return;
                acted = w->at_engine.accepts(first);
                if (acted && !second.empty()) CHECK(w->at_engine.accepts(second));
            };
            hotlane::move::report done;
            REQUIRE(p.move(home_kind::postgres, &done));
            moved += done.moved ? 1 : 0;
            const auto& shown = done.detail["ahead"];
            if (done.moved && (shown["all_seen"] == false || shown["passes"] == 2)) ++again;
            const auto home = done.moved ? home_kind::postgres : home_kind::engine;
            check_world(*w, home);
            if (!acted) continue;
            const auto there = w->pairs_of_u(home);
            using pairs = std::vector<std::string>;
            if (first.starts_with("INSERT"))
                CHECK(there == pairs{"1 old", "2 old", "777777 round"});
            else if (first.starts_with("UPDATE"))
                CHECK(there == pairs{"1 round", "2 old"});
            else if (first.starts_with("DELETE"))
                CHECK(there == pairs{"2 old"});
            else
                CHECK(there == pairs{});
        }
    CHECK(again > 20);
    CHECK(moved > 100);
}

TEST_CASE("a reply that was lost while the rows are copied loses nothing") {
    // The session does not know whether it was a commit, and it was one.
    const auto steps = count_steps(ahead(true));
    std::size_t again = 0;
    for (std::uint64_t n = 1; n <= steps; ++n) {
        CAPTURE(n);
        auto w = make_world(ahead(true));
        process p(*w);
        bool known = false;
        REQUIRE(p.recover(&known));
        const auto start = p.steps.count;
        bool acted = false;
        p.steps.bystanders = [&] {
            w->probe();
            if (p.steps.count != start + n || acted || !p.tool->gate.try_enter()) return;
            const auto watch = p.tool->changes.number();
            acted = w->at_engine.accepts("INSERT INTO u (id, v) VALUES (5, 'who knows')");
            p.tool->changes.take({.watch = watch, .doubt = true});
            p.tool->gate.leave();
        };
        hotlane::move::report done;
        REQUIRE(p.move(home_kind::postgres, &done));
        const auto& shown = done.detail["ahead"];
        if (done.moved && (shown["all_seen"] == false || shown["passes"] == 2)) ++again;
        const auto home = done.moved ? home_kind::postgres : home_kind::engine;
        check_world(*w, home);
        if (acted) CHECK(w->pairs_of_u(home) == std::vector<std::string>{"5 who knows"});
    }
    CHECK(again > 5);
}

TEST_CASE("DDL of the tool while the rows are copied ends the move before anything is held") {
    auto w = make_world(ahead(true));
    process p(*w);
    bool known = false;
    REQUIRE(p.recover(&known));
    p.steps.bystanders = [&] {
        w->probe();
        if (p.tool->changes.number() != 0)
            p.tool->changes.take({.watch = p.tool->changes.number(), .ddl = true});
    };
    hotlane::move::report done;
    REQUIRE(p.move(home_kind::postgres, &done));
    CHECK_FALSE(done.moved);
    REQUIRE(done.refusals.size() == 1);
    CHECK(done.refusals[0].code == "schema_changed");
    CHECK_FALSE(done.detail["phases"].contains("hold"));
    check_world(*w, home_kind::engine);
    check_life_goes_on(*w);
}

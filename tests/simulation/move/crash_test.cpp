// Every statement of a move, both ways, as the last before each kind of accident; recovery hit by
// accidents of its own; bystanders at both homes between any two statements. Never do two homes
// accept, every accepted row is there exactly once, and the tool is served again.
#include <algorithm>
#include <catch2/catch.hpp>

#include "accidents.hpp"

using namespace sim;
using hotlane::policy::home_kind;

TEST_CASE("a move survives every accident at every statement, on the way out") {
    for (const int late_after : {0, 1, 3})
        every_accident({home_kind::engine, late_after});
}

TEST_CASE("a move survives every accident at every statement, on the way back") {
    for (const int late_after : {0, 1, 3})
        every_accident({home_kind::postgres, late_after});
}

TEST_CASE("applications that run CREATE TABLE IF NOT EXISTS lose nothing") {
    for (const auto from : {home_kind::engine, home_kind::postgres})
        for (const std::uint32_t one_in : {3U, 8U})
            every_accident({from, 2, one_in});
}

TEST_CASE("recovery survives every accident at every statement") {
    // Every pair of statements; the kinds of accident take turns.
    constexpr fault firsts[] = {fault::kill_done, fault::kill_late};
    constexpr fault agains[] = {fault::kill_before, fault::kill_late, fault::lost_late};
    for (const auto from : {home_kind::engine, home_kind::postgres}) {
        const auto steps = count_steps({from});
        for (std::uint64_t n = 1; n <= steps; ++n)
            for (std::uint64_t r = 1; r < 80; ++r) {
                const fault first = firsts[(n + r) % 2], again = agains[(n + r / 2) % 3];
                CAPTURE(n, r, int(first), int(again), int(from));
                auto w = make_world({from, 2});
                disturbed_move(*w, from, n, first);
                process p(*w);
                p.steps.at = r;
                p.steps.what = again;
                bool known = false;
                p.recover(&known);
                const bool hit = p.steps.happened || p.steps.count >= r;
                check_life_goes_on(*w);
                if (!hit) break;
            }
    }
}

TEST_CASE("a write into a fenced table is seen: the move is undone, or cleaning rings") {
    const auto steps = count_steps({home_kind::engine});
    int undone = 0, rang = 0;
    for (std::uint64_t n = 1; n <= steps; ++n) {
        CAPTURE(n);
        auto w = make_world({home_kind::engine, 1});
        process p(*w);
        bool known = false, wrote = false;
        REQUIRE(p.recover(&known));
        const auto start = p.steps.count;
        p.steps.bystanders = [&] {
            if (p.steps.count != start + n || wrote) return;
            for (const auto& name : w->at_engine.column(
                     "SELECT name FROM sqlite_schema WHERE name LIKE 'hotlane%\\_f0' ESCAPE '\\'"))
                wrote = w->at_engine.accepts("INSERT INTO \"" + name + "\" VALUES (777777, 'x')");
        };
        hotlane::move::report done;
        REQUIRE(p.move(home_kind::postgres, &done));
        if (!wrote) {
            CHECK(done.moved);
            continue;
        }
        const auto there = w->rows_at(home_kind::postgres);
        if (std::count(there.begin(), there.end(), "777777") == 1) {
            CHECK(done.moved);  // written before the copy was read: it went along
        } else if (done.moved) {
            const auto record = w->store.move(done.id);
            const auto cleaned = hotlane::move::clean_with(p.with, **record);
            CHECK_FALSE(cleaned.dropped);
            CHECK_FALSE(cleaned.late_write.empty());
            ++rang;
        } else {
            const auto rows = w->rows_at(home_kind::engine);
            CHECK(std::count(rows.begin(), rows.end(), "777777") == 1);
            ++undone;
        }
    }
    CHECK(undone > 0);
    CHECK(rang > 0);
}

TEST_CASE("a statement that the new home refuses ends the move before anything is held") {
    for (const auto from : {home_kind::engine, home_kind::postgres}) {
        CAPTURE(int(from));
        auto w = make_world({from, 1});
        process p(*w);
        bool known = false;
        REQUIRE(p.recover(&known));
        // The engine has this function, PostgreSQL has no such table; both homes are asked.
        p.saw(from == home_kind::engine ? "SELECT max(id) FROM t WHERE v <> 'engine_only'"
                                        : "SELECT nosuchfunction(id) FROM t");
        hotlane::move::report done;
        REQUIRE(p.move(other(from), &done));
        CHECK_FALSE(done.moved);
        REQUIRE(done.refusals.size() == 1);
        CHECK(done.refusals[0].code == "statement_refused");
        CHECK(done.refusals[0].message.find("from t") != std::string::npos);
        CHECK_FALSE(done.refusals[0].mend.empty());
        CHECK_FALSE(done.detail["phases"].contains("hold"));
        check_life_goes_on(*w);
        // The operator says that it may fail there.
        p.tool->settings.rehearse = hotlane::config::rehearse_rule::report;
        REQUIRE(p.recover(&known));
        REQUIRE(p.move(other(from), &done));
        CHECK(done.moved);
        CHECK(done.detail["rehearsal"]["refused"].size() == 1);
    }
}

TEST_CASE("cleaning up after one move is no late write to another") {
    for (const bool somebody_wrote : {false, true}) {
        CAPTURE(somebody_wrote);
        auto w = make_world({home_kind::engine, 1});
        process p(*w);
        p.steps.bystanders = {};
        bool known = false;
        REQUIRE(p.recover(&known));
        std::vector<std::string> ids;
        for (const auto to : {home_kind::postgres, home_kind::engine, home_kind::postgres}) {
            hotlane::move::report done;
            REQUIRE(p.move(to, &done));
            REQUIRE(done.moved);
            ids.push_back(done.id);
        }
        const auto clean = [&](std::size_t i) {
            return hotlane::move::clean_with(p.with, **w->store.move(ids[i]));
        };
        CHECK(clean(0).dropped);
        CHECK(clean(1).dropped);
        if (somebody_wrote)
            REQUIRE(w->at_engine.accepts("INSERT INTO \"hotlane_" + ids[2] +
                                         "_f0\" VALUES (777777, 'x')"));
        const auto last = clean(2);
        CHECK(last.dropped != somebody_wrote);
        CHECK(last.late_write.empty() != somebody_wrote);
    }
}

TEST_CASE("a lost store is repaired from the homes") {
    for (const auto from : {home_kind::engine, home_kind::postgres}) {
        const auto steps = count_steps({from});
        for (std::uint64_t n = 1; n <= steps; ++n)
            for (const fault f : {fault::kill_before, fault::kill_done}) {
                CAPTURE(n, int(f), int(from));
                auto w = make_world({from, 1});
                disturbed_move(*w, from, n, f);
                w->store.forget();
                check_life_goes_on(*w);
            }
    }
}

TEST_CASE("while a needed home is down nobody is served, and afterwards everything is right") {
    for (const auto from : {home_kind::engine, home_kind::postgres}) {
        const auto steps = count_steps({from});
        for (std::uint64_t n = 1; n <= steps; ++n)
            for (const bool engine_down : {true, false}) {
                CAPTURE(n, engine_down, int(from));
                auto w = make_world({from, 1});
                disturbed_move(*w, from, n, fault::kill_done);
                (engine_down ? w->at_engine.down : w->at_postgres.down) = true;
                {
                    process p(*w);
                    bool known = false;
                    REQUIRE(p.recover(&known));
                    if (!known) CHECK_FALSE(p.tool->current()->served);
                    w->probe();
                }
                w->at_engine.down = w->at_postgres.down = false;
                check_life_goes_on(*w);
            }
    }
}

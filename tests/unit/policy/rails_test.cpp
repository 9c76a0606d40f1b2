// What holds a move back: rails, caps, calendars, budgets, pins and incidents.
#include "situation.hpp"

using namespace hotlane::policy;
using namespace hotlane::policy::testing;

TEST_CASE("rails bind the policy, safety binds everybody") {
    situation s;
    s.state.at = stage::flagged;
    const auto rail = [&](mover by) {
        const context at{s.with, s.state, s.what, s.seen, s.fleet, now};
        return why_blocked(at, home_kind::postgres, by).rail;
    };
    CHECK(rail(mover::policy).empty());

    s.fleet.moves_running = 1;
    CHECK(rail(mover::policy) == "moves_at_once");
    CHECK(rail(mover::operator_order) == "moves_at_once");
    s.fleet = {};
    s.fleet.has_target = false;
    CHECK(rail(mover::operator_order) == "no_target");
    s.fleet = {};
    s.fleet.moves_last_hour = s.with.rails.moves_per_hour;
    CHECK(rail(mover::policy) == "moves_per_hour");
    CHECK(rail(mover::operator_order).empty());
    s.fleet = {};
    s.with.rails.incident_tools = 3;
    s.fleet.tools_hot_together = 3;
    CHECK(rail(mover::policy) == "incident");
    s.fleet = {};
    s.state.hot_since = now - proof_time(s.with) + duration{1};
    CHECK(rail(mover::policy) == "incident_watch");
    CHECK(rail(mover::operator_order).empty());
    s.state.hot_since = now - proof_time(s.with);
    CHECK(rail(mover::policy).empty());
    s.state.quiet_until = now + duration{1};
    CHECK(rail(mover::policy) == "cooldown");
    CHECK(rail(mover::operator_order).empty());
    s.state.quiet_until = now;
    CHECK(rail(mover::policy).empty());
    s.state.home_since = now - s.with.rails.min_stay + duration{1};
    CHECK(rail(mover::policy) == "min_stay");
    s.state.home_since = now - s.with.rails.min_stay;
    CHECK(rail(mover::policy).empty());
    s.state.flaps = 1;
    CHECK(rail(mover::policy) == "min_stay");
    s.state.flaps = 0;

    s.state.pinned = pin{home_kind::engine, now + duration{1}, "ann", "sale"};
    CHECK(rail(mover::policy) == "pin");
    CHECK(rail(mover::operator_order) == "pin");
    s.state.pinned->home = home_kind::postgres;
    CHECK(rail(mover::policy) == "pin");
    CHECK(rail(mover::operator_order).empty());
    s.state.pinned->until = now;
    CHECK(rail(mover::policy).empty());
}

TEST_CASE("a share of tools never rounds to none, nor to all") {
    settings with;
    const auto cap = [&](double share, int tools) {
        with.rails.away_share = share;
        return away_cap(with, tools);
    };
    CHECK(cap(0.0, 10) == 1);
    CHECK(cap(0.01, 10) == 1);
    CHECK(cap(0.5, 10) == 5);
    CHECK(cap(1.0, 10) == 9);
    CHECK(cap(1.0, 2) == 1);
    CHECK(cap(1.0, 1) == 1);
    with.rails.away_max = 3;
    CHECK(cap(0.5, 200) == 3);

    situation s;
    s.fleet.tools = 4;
    s.fleet.tools_away = 2;
    const auto rail = [&](home_kind to, mover by) {
        const context at{s.with, s.state, s.what, s.seen, s.fleet, now};
        return why_blocked(at, to, by).rail;
    };
    CHECK(rail(home_kind::postgres, mover::policy) == "away");
    CHECK(rail(home_kind::postgres, mover::operator_order).empty());
    CHECK(rail(home_kind::engine, mover::policy).empty());
    s.fleet.tools_away = 1;
    CHECK(rail(home_kind::postgres, mover::policy).empty());
}

TEST_CASE("the calendar freezes hours, over midnight too, and stretches of time") {
    constexpr time_point monday{duration{1'700'438'400'000}};  // 2023-11-20 00:00 UTC
    REQUIRE(text_of(monday) == "2023-11-20 00:00:00Z");
    constexpr duration hour{3'600'000};
    freeze nights{.days = 0b0000001, .from = 22 * hour, .to = 6 * hour};
    const auto until = [&](time_point at) { return frozen_until({nights}, at); };
    CHECK_FALSE(until(monday + 22 * hour - duration{1}));
    CHECK(until(monday + 22 * hour) == monday + 30 * hour);
    CHECK(until(monday + 30 * hour - duration{1}) == monday + 30 * hour);
    CHECK_FALSE(until(monday + 30 * hour));
    CHECK_FALSE(until(monday + 46 * hour));  // Tuesday night is not in it
    CHECK_FALSE(until(monday + 2 * hour));   // nor is the end of Sunday's

    freeze sale{.begins = monday, .ends = monday + 5 * hour, .reason = "sale"};
    CHECK(frozen_until({nights, sale}, monday) == monday + 5 * hour);
    CHECK_FALSE(frozen_until({sale}, monday + 5 * hour));

    situation s;
    s.with.rails.freezes = {sale};
    const context at{s.with, s.state, s.what, s.seen, s.fleet, monday};
    CHECK(why_blocked(at, home_kind::postgres, mover::policy).rail == "freeze");
    CHECK(why_blocked(at, home_kind::engine, mover::policy).rail == "freeze");
    CHECK(why_blocked(at, home_kind::postgres, mover::operator_order).rail.empty());
}

TEST_CASE("a day's budget of pauses is spent by moves and comes back after a day") {
    driver d{short_settings()};
    settings with = short_settings();
    with.rails.hold_budget = duration{5'000};
    d.policy.set_settings(with);
    const auto rail = [&] {
        const event what;
        const evidence seen;
        const context at{with, d.policy.state(), what, seen, d.fleet, d.now()};
        return why_blocked(at, home_kind::postgres, mover::policy).rail;
    };
    CHECK(rail().empty());
    d.take(d.policy.order(home_kind::postgres, "ann", d.fleet, d.now()));
    d.take(d.policy.move_finished(move_end::failed, "drain", d.fleet, d.now(), duration{3'001}));
    d.wait(with.rails.cooldown);
    CHECK(rail() == "hold_budget");
    d.wait(duration{86'400'000});
    CHECK(rail().empty());
}

TEST_CASE("a pin of the configuration binds as an operator's does, and ends") {
    situation s;
    s.with.pinned = pin{home_kind::engine, now + duration{1}, "the configuration", "audit"};
    const auto rail = [&](mover by) {
        const context at{s.with, s.state, s.what, s.seen, s.fleet, now};
        return why_blocked(at, home_kind::postgres, by).rail;
    };
    CHECK(rail(mover::policy) == "pin");
    CHECK(rail(mover::operator_order) == "pin");
    s.with.pinned->until = now;
    CHECK(rail(mover::policy).empty());
}

TEST_CASE("waiting times double up to their cap") {
    settings with;
    runbook_state state;
    state.failures = 1;
    CHECK(cooldown_of(state, with) == with.rails.cooldown);
    state.failures = 3;
    CHECK(cooldown_of(state, with) == 4 * with.rails.cooldown);
    state.failures = 1'000;
    CHECK(cooldown_of(state, with) == with.rails.cooldown_max);
    CHECK(min_stay_of(state, with) == with.rails.min_stay);
    state.flaps = 2;
    CHECK(min_stay_of(state, with) == 4 * with.rails.min_stay);
    state.flaps = 1'000;
    CHECK(min_stay_of(state, with) == with.rails.cooldown_max);
}

TEST_CASE("an incident is tools that turned hot within one proof time") {
    const auto at = [](int s) { return t0 + duration{1'000} * s; };
    const settings with = short_settings();
    REQUIRE(proof_time(with) == duration{10'000});
    CHECK(incident_size({}, with, at(30)) == 0);
    CHECK(incident_size({at(0)}, with, at(30)) == 1);
    CHECK(incident_size({at(25), at(0), at(5)}, with, at(30)) == 2);
    CHECK(incident_size({at(12), at(0), at(10), at(9)}, with, at(30)) == 3);
    CHECK(incident_size({at(0), at(1), at(2)}, with, at(3'600)) == 3);
    CHECK(incident_size({at(0), at(1), at(2)}, with, at(3'601)) == 2);
}

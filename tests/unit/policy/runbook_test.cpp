#include "policy/runbook.hpp"

#include <functional>
#include <set>

#include "build.hpp"

using namespace hotlane::policy;
using namespace hotlane::policy::testing;

namespace {

// One situation for each row of the table: what must hold for the row to be taken.
struct situation {
    runbook_state state;
    settings with{short_settings()};
    event what;
    evidence seen;
    fleet_view fleet;
};

constexpr time_point now = t0 + duration{3'600'000};

void make_hot(situation& s, diagnosis what) {
    s.seen.enter.standing = verdict::hot;
    s.seen.found.what = what;
}
void make_calm(situation& s) {
    s.seen.enter.standing = verdict::calm;
    s.seen.leave.standing = verdict::calm;
}
void make_returnable(situation& s) {
    s.seen.calm_windows = s.with.come_back.calm_windows;
    s.seen.lane_use_peak = 0.1;
}

struct walk {
    stage from;
    event_kind on;
    std::string name;  // of the row
    stage to;
    std::function<void(situation&)> set;
};

const auto nothing = [](situation&) {};
const auto observe = [](situation& s) { s.with.act_mode = mode::observe; };
template <typename... Changes>
std::function<void(situation&)> all(Changes... changes) {
    return [=](situation& s) { (changes(s), ...); };
}
const auto hot_row_seen = [](situation& s) { make_hot(s, diagnosis::hot_row); };
const auto busy_seen = [](situation& s) { make_hot(s, diagnosis::busy_lane); };
const auto calm_seen = [](situation& s) { make_calm(s); };
const auto lever2_over = [](situation& s) { s.state.lever2_over = true; };
const auto no_target = [](situation& s) { s.fleet.has_target = false; };
const auto measured = [](situation& s) { s.state.load = s.with.levers.remeasure; };
const auto returnable = [](situation& s) { make_returnable(s); };
const auto busy_fleet = [](situation& s) { s.fleet.moves_running = 1; };
const auto known_hot = [](situation& s) { s.state.hot_since = t0; };
const auto to_postgres = [](situation& s) { s.what.to = home_kind::postgres; };
const auto undiagnosed = [](situation& s) {
    make_hot(s, diagnosis::unknown);
    s.state.why = diagnosis::unknown;
};

std::vector<walk> walks() {
    using k = event_kind;
    using s = stage;
    std::vector<walk> rows{
        {s::on_postgres,
         k::window,
         "arrival_checked",
         s::on_postgres,
         [](situation& x) {
             x.state.check_due = true;
             x.state.home_since = t0;
             x.seen.here = home_figures{};
         }},
        {s::watching,
         k::window,
         "foresight_checked",
         s::watching,
         [](situation& x) {
             x.state.check_due = true;
             x.state.home_since = t0;
             x.state.foreseen = lane_rates{0.1, 100, 0.0};
         }},
        {s::flagged,
         k::window,
         "advise_retry",
         s::flagged,
         all(hot_row_seen, [](situation& x) { x.with.levers.retry_first = true; })},
        {s::flagged,
         k::window,
         "advise_shard",
         s::sharding,
         all(hot_row_seen,
             [](situation& x) {
                 x.with.levers.retry_first = true;
                 x.state.hot_since = now - x.with.levers.retry_deadline;
             })},
        {s::flagged,
         k::window,
         "route",
         s::moving_out,
         all(hot_row_seen,
             [](situation& x) {
                 x.with.levers.order = {lever::route, lever::shard};
             })},
        {s::flagged,
         k::window,
         "diagnose",
         s::flagged,
         all(busy_seen, [](situation& x) { x.with.diagnose.busy_lane = busy_handling::ignore; })},
        {s::watching, k::window, "watch", s::watching, nothing},
        {s::watching, k::window, "watch", s::watching, calm_seen},
        {s::watching, k::window, "flag", s::flagged, hot_row_seen},
        {s::flagged, k::window, "diagnose", s::flagged, nothing},
        {s::flagged, k::window, "calm_again", s::watching, calm_seen},
        {s::flagged, k::window, "advise_shard", s::sharding, hot_row_seen},
        {s::flagged,
         k::window,
         "held_by_rail",
         s::flagged,
         all(hot_row_seen, lever2_over, no_target)},
        {s::flagged, k::window, "route", s::moving_out, all(hot_row_seen, lever2_over)},
        {s::flagged,
         k::window,
         "route",
         s::moving_out,
         all(hot_row_seen, [](situation& x) { x.with.levers.shard = false; })},
        {s::flagged,
         k::window,
         "would_route",
         s::would_move,
         all(hot_row_seen, lever2_over, observe)},
        {s::flagged, k::window, "busy_lane", s::flagged, busy_seen},
        {s::flagged,
         k::window,
         "route",
         s::moving_out,
         all(busy_seen, [](situation& x) { x.with.diagnose.busy_lane = busy_handling::route; })},
        {s::flagged, k::window, "undiagnosed", s::flagged, undiagnosed},
        {s::flagged,
         k::window,
         "diagnose",
         s::flagged,
         all(undiagnosed, [](situation& x) { x.state.since = now - duration{59'999}; })},
        {s::flagged,
         k::window,
         "aborts_without_conflicts",
         s::flagged,
         [](situation& x) { make_hot(x, diagnosis::none); }},
        {s::flagged,
         k::window,
         "routing_off",
         s::flagged,
         all(hot_row_seen, lever2_over, [](situation& x) { x.with.levers.route = false; })},
        {s::sharding, k::window, "wait_for_shard", s::sharding, hot_row_seen},
        {s::sharding, k::window, "calm_again", s::watching, calm_seen},
        {s::remeasuring, k::window, "measure", s::remeasuring, all(hot_row_seen, lever2_over)},
        {s::remeasuring, k::window, "measure", s::remeasuring, calm_seen},
        {s::remeasuring, k::window, "lever2_helped", s::watching, all(calm_seen, measured)},
        {s::remeasuring,
         k::window,
         "route",
         s::moving_out,
         all(hot_row_seen, lever2_over, measured)},
        {s::remeasuring,
         k::window,
         "would_route",
         s::would_move,
         all(hot_row_seen, lever2_over, measured, observe)},
        {s::remeasuring,
         k::window,
         "held_by_rail",
         s::remeasuring,
         all(hot_row_seen, lever2_over, measured, busy_fleet)},
        {s::remeasuring,
         k::window,
         "not_routable",
         s::flagged,
         all(busy_seen, lever2_over, measured)},
        {s::remeasuring,
         k::window,
         "no_longer_hot",
         s::watching,
         [](situation& x) { x.state.load = 4 * x.with.levers.remeasure; }},
        {s::would_move, k::window, "wait_for_person", s::would_move, nothing},
        {s::would_move, k::window, "calm_again", s::watching, calm_seen},
        {s::would_move,
         k::window,
         "would_route",
         s::would_move,
         all(hot_row_seen, lever2_over, observe)},
        {s::would_move, k::window, "route", s::moving_out, all(hot_row_seen, lever2_over)},
        {s::would_move,
         k::window,
         "held_by_rail",
         s::would_move,
         all(hot_row_seen, lever2_over, no_target)},
        {s::would_move, k::window, "not_routable", s::flagged, all(busy_seen, lever2_over)},
        {s::would_move, k::window, "wait_for_person", s::would_move, undiagnosed},
        {s::moving_out, k::window, "wait_for_move", s::moving_out, hot_row_seen},
        {s::moving_back, k::window, "wait_for_move", s::moving_back, returnable},
        {s::on_postgres, k::window, "live_on_postgres", s::on_postgres, nothing},
        {s::on_postgres,
         k::window,
         "live_on_postgres",
         s::on_postgres,
         all(returnable, [](situation& x) { x.seen.lane_use_peak = 0.21; })},
        {s::on_postgres,
         k::window,
         "live_on_postgres",
         s::on_postgres,
         all(returnable, [](situation& x) { x.with.come_back.enabled = false; })},
        {s::on_postgres, k::window, "held_by_rail", s::on_postgres, all(returnable, busy_fleet)},
        {s::on_postgres, k::window, "return", s::moving_back, returnable},
        {s::on_postgres, k::window, "would_return", s::would_return, all(returnable, observe)},
        {s::would_return, k::window, "load_is_back", s::on_postgres, nothing},
        {s::would_return, k::window, "return", s::moving_back, returnable},
        {s::would_return, k::window, "would_return", s::would_return, all(returnable, observe)},
        {s::would_return, k::window, "held_by_rail", s::would_return, all(returnable, busy_fleet)},

        {s::flagged, k::tick, "undiagnosed", s::flagged, undiagnosed},
        {s::sharding,
         k::tick,
         "shard_deadline",
         s::remeasuring,
         [](situation& x) { x.state.since = now - x.with.levers.shard_deadline; }},
        {s::watching,
         k::tick,
         "forgive",
         s::watching,
         [](situation& x) {
             x.state.flaps = 2;
             x.state.trouble_at = now - duration{86'400'000};
         }},

        {s::flagged, k::shard_done, "shard_done", s::remeasuring, nothing},
        {s::sharding, k::shard_done, "shard_done", s::remeasuring, nothing},
        {s::remeasuring, k::shard_done, "shard_done", s::remeasuring, nothing},
        {s::would_move, k::shard_done, "shard_done", s::remeasuring, nothing},
        {s::flagged, k::shard_skipped, "shard_skipped", s::remeasuring, nothing},
        {s::sharding, k::shard_skipped, "shard_skipped", s::remeasuring, nothing},

        {s::moving_out, k::move_ok, "moved", s::on_postgres, nothing},
        {s::moving_back, k::move_ok, "returned", s::watching, nothing},
        {s::moving_out, k::move_failed, "move_failed", s::watching, nothing},
        {s::moving_out, k::move_failed, "move_failed", s::flagged, known_hot},
        {s::moving_back, k::move_failed, "move_failed", s::on_postgres, nothing},
        {s::moving_out, k::move_refused, "move_refused", s::watching, nothing},
        {s::moving_out, k::move_refused, "move_refused", s::flagged, known_hot},
        {s::moving_back, k::move_refused, "move_refused", s::on_postgres, nothing},

        {s::moving_out, k::found_engine, "found_home", s::watching, nothing},
        {s::moving_out, k::found_engine, "found_home", s::flagged, known_hot},
        {s::moving_back, k::found_engine, "found_home", s::watching, nothing},
        {s::on_postgres, k::found_engine, "found_home", s::watching, nothing},
        {s::would_return, k::found_engine, "found_home", s::watching, nothing},
        {s::moving_back, k::found_postgres, "found_home", s::on_postgres, nothing},
        {s::on_postgres, k::found_postgres, "as_known", s::on_postgres, nothing},
        {s::would_return, k::found_postgres, "as_known", s::would_return, nothing},
        {s::moving_out, k::order, "move_running", s::moving_out, nothing},
        {s::moving_back, k::order, "move_running", s::moving_back, to_postgres},
    };
    const std::set<stage> engine_side{
        s::watching, s::flagged, s::sharding, s::remeasuring, s::would_move};
    for (const stage at : engine_side) {
        rows.push_back({at, k::order, "order", s::moving_out, to_postgres});
        rows.push_back({at, k::order, "order_unsafe", at, all(to_postgres, busy_fleet)});
        rows.push_back({at, k::order, "already_there", at, nothing});
        rows.push_back({at, k::found_engine, "as_known", at, nothing});
        rows.push_back({at, k::found_postgres, "found_home", s::on_postgres, nothing});
    }
    rows.push_back({s::moving_out, k::found_postgres, "found_home", s::on_postgres, nothing});
    for (const stage at : {s::on_postgres, s::would_return}) {
        rows.push_back({at, k::order, "order", s::moving_back, nothing});
        rows.push_back({at, k::order, "order_unsafe", at, busy_fleet});
        rows.push_back({at, k::order, "already_there", at, to_postgres});
    }
    for (std::size_t i = 0; i < stages; ++i) {
        const auto at = static_cast<stage>(i);
        rows.push_back({at, k::tick, "wait", at, [](situation& x) { x.state.since = now; }});
        rows.push_back({at, k::tick, "pin_expired", at, [](situation& x) {
                            x.state.pinned = pin{{}, now, "ann", ""};
                        }});
        rows.push_back({at, k::pin_set, "pin_set", at, [](situation& x) {
                            x.what.wanted.until = now + duration{1};
                        }});
        rows.push_back(
            {at, k::pin_set, "bad_pin", at, [](situation& x) { x.what.wanted.until = now; }});
        rows.push_back({at, k::pin_set, "bad_pin", at, [](situation& x) {
                            x.what.wanted.until = now + x.with.rails.pin_max + duration{1};
                        }});
        rows.push_back({at, k::pin_cleared, "not_pinned", at, nothing});
        rows.push_back({at, k::pin_cleared, "pin_cleared", at, [](situation& x) {
                            x.state.pinned = pin{{}, now + duration{9}, "ann", ""};
                        }});
        const bool is_moving = at == s::moving_out || at == s::moving_back;
        if (!is_moving) {
            rows.push_back({at, k::move_ok, "unknown_move", at, nothing});
            rows.push_back({at, k::move_failed, "unknown_move", at, nothing});
            rows.push_back({at, k::move_refused, "unknown_move", at, nothing});
        }
        if (is_moving || at == s::watching || at == s::on_postgres || at == s::would_return)
            rows.push_back({at, k::shard_done, "shard_noted", at, nothing});
        if (at != s::flagged && at != s::sharding)
            rows.push_back({at, k::shard_skipped, "nothing_to_skip", at, nothing});
    }
    return rows;
}

situation situation_of(const walk& one) {
    situation s;
    s.state.at = one.from;
    s.state.since = t0;
    const bool is_away = one.from == stage::on_postgres || one.from == stage::would_return ||
                         one.from == stage::moving_back;
    s.state.home = is_away ? home_kind::postgres : home_kind::engine;
    s.what.kind = one.on;
    one.set(s);
    return s;
}

}  // namespace

TEST_CASE("every row of the runbook is walked") {
    std::set<const row*> taken;
    std::set<std::pair<stage, event_kind>> pairs;
    for (const walk& one : walks()) {
        situation s = situation_of(one);
        INFO(to_string(one.from) << " + " << to_string(one.on) << " -> " << one.name);
        const context at{s.with, s.state, s.what, s.seen, s.fleet, now};
        const row& found = row_for(at);
        CHECK(std::string(found.name) == one.name);
        taken.insert(&found);
        pairs.emplace(one.from, one.on);
        outcome out;
        step(s.state, s.with, "counter", s.what, s.seen, s.fleet, now, out);
        CHECK(to_string(s.state.at) == to_string(one.to));
        if (found.say == report::always) CHECK(out.decisions.size() == 1);
        if (found.then == effect::refuse) CHECK_FALSE(out.refusal.empty());
        for (const decision& made : out.decisions) {
            CHECK_FALSE(made.reason.empty());
            CHECK_FALSE(made.done.empty());
            CHECK(made.where == "hotlane.yaml:7");
        }
    }
    for (const row& one : runbook_table()) {
        INFO("row " << one.name << " on " << to_string(one.on));
        CHECK(taken.count(&one) == 1);
    }
    CHECK(pairs.size() == stages * event_kinds);
}

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

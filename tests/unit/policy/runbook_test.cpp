#include "policy/runbook.hpp"

#include <functional>
#include <set>

#include "situation.hpp"

using namespace hotlane::policy;
using namespace hotlane::policy::testing;

namespace {

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
const auto incident = [](situation& s) {
    s.with.rails.incident_tools = 3;
    s.fleet.tools_hot_together = 3;
};
const auto drawn_in = [](situation& s) { s.state.in_incident = true; };
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
        {s::watching,
         k::window,
         "incident",
         s::watching,
         all(incident,
             [](situation& x) {
                 x.seen.enter.hot = 3;
                 x.seen.enter.needed = 4;
             })},
        {s::watching, k::window, "watch", s::watching, incident},
        {s::watching,
         k::window,
         "sit_out_incident",
         s::watching,
         all(incident, drawn_in, hot_row_seen)},
        {s::flagged, k::window, "calm_again", s::watching, all(incident, drawn_in, calm_seen)},
        {s::sharding,
         k::window,
         "sit_out_incident",
         s::sharding,
         all(incident, drawn_in, hot_row_seen)},
        {s::watching, k::tick, "incident_over", s::watching, drawn_in},
        {s::remeasuring, k::tick, "incident_over", s::remeasuring, drawn_in},
        {s::watching, k::tick, "wait", s::watching, all(incident, drawn_in)},
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

// What the runbook did, as a record for people.
#include "policy/record.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace hotlane::policy {

namespace {

void add_lane_measures(decision& made, const proof& by, const settings& with, bool is_hot) {
    const window& all = by.pooled;
    const auto add = [&](const char* name, const char* unit, double value, double limit) {
        const bool is_over = value > limit;
        made.measures.push_back({name, unit, value, limit, is_over == is_hot});
    };
    if (const auto rate = all.handoff_rate()) add("handoff rate", "", *rate, by.over.handoff_rate);
    if (const auto wait = all.mean_wait_us()) add("mean wait", "us", *wait, by.over.mean_wait_us);
    if (const auto rate = all.abort_rate()) add("abort rate", "", *rate, by.over.abort_rate);
    if (const auto rate = all.conflict_rate())
        add("conflict rate", "", *rate, by.over.conflict_rate);
    const int agreeing = is_hot ? by.hot : by.calm;
    made.measures.push_back({is_hot ? "hot windows" : "calm windows",
                             "windows",
                             static_cast<double>(agreeing),
                             static_cast<double>(by.needed),
                             agreeing >= by.needed});
    made.windows = by.windows;
    const duration span = with.window.long_span;
    if (is_hot && span > duration{0})
        made.measures.push_back({"hot in long view",
                                 "s",
                                 std::chrono::duration<double>(by.long_hot).count(),
                                 std::chrono::duration<double>(with.window.long_hot).count(),
                                 by.long_hot >= with.window.long_hot});
}

void add_away_measures(decision& made, const context& at) {
    const auto& back = at.with.come_back;
    const auto calm = static_cast<double>(at.seen.calm_windows);
    made.measures = {
        {"lane use",
         "",
         at.seen.lane_use,
         back.lane_use_max,
         at.seen.lane_use <= back.lane_use_max},
        {"busiest lane use",
         "",
         at.seen.lane_use_peak,
         back.lane_use_max,
         at.seen.lane_use_peak <= back.lane_use_max},
        {"calm windows",
         "windows",
         calm,
         static_cast<double>(back.calm_windows),
         at.seen.calm_windows >= back.calm_windows},
    };
    if (const auto& seen = at.seen.predicted) {
        const auto add = [&](const char* name, const char* unit, double value, double limit) {
            made.measures.push_back({name, unit, value, limit, value <= limit});
        };
        add("predicted handoff", "", seen->handoff_rate, at.seen.back.handoff_rate);
        add("predicted wait", "us", seen->mean_wait_us, at.seen.back.mean_wait_us);
        add("predicted conflict", "", seen->conflict_rate, at.seen.back.conflict_rate);
    }
    const auto& all = at.state.away_windows;
    const auto shown = std::min<std::size_t>(all.size(), 12);
    made.windows.assign(all.end() - static_cast<std::ptrdiff_t>(shown), all.end());
}

// What the reader sees as "done". In the modes that do not act, the would_ rows say so.
std::string done_text(const row& taken, const context& at) {
    const auto would = [&](const char* what) {
        return fmt::format(
            "nothing: mode {} only says that it would {}", to_string(at.with.act_mode), what);
    };
    if (taken.next == stage::would_move || taken.name == "would_route")
        return would("move it to PostgreSQL");
    if (taken.next == stage::would_return || taken.name == "would_return")
        return would("bring it home to the engine");
    switch (taken.then) {
        case effect::none:
            return "nothing";
        case effect::refuse:
            return "refused";
        case effect::flag:
            return "flagged, being diagnosed";
        case effect::calm_down:
            return "back to watching";
        case effect::join_incident:
            return "nothing while the incident lasts";
        case effect::end_incident:
            return "measuring afresh";
        case effect::advise_shard:
            return "advised to split the hot row";
        case effect::end_lever2:
            return "measuring again";
        case effect::note_sharded:
            return "remembered";
        case effect::start_out:
            return "started the move to PostgreSQL";
        case effect::start_back:
            return "started the move to the engine";
        case effect::arrive_out:
            return "watching the load on PostgreSQL";
        case effect::arrive_back:
            return "watching the lane on the engine";
        case effect::cool_after_fail:
            return "waiting for the cooldown before another try";
        case effect::set_pin:
            return "pinned";
        case effect::clear_pin:
            return "unpinned";
        case effect::forgive:
            return "forgot the back-off";
        case effect::check_arrival:
        case effect::check_foresight:
            return "kept beside the prediction";
    }
    return {};
}

void add_evidence(decision& made, const row& taken, const context& at) {
    if (at.what.kind != event_kind::window) return;
    switch (at.state.at) {
        case stage::on_postgres:
        case stage::would_return:
            return add_away_measures(made, at);
        case stage::watching:
        case stage::flagged:
        case stage::sharding:
        case stage::remeasuring:
        case stage::would_move:
        case stage::moving_out:
        case stage::moving_back:
            break;
    }
    const bool is_calm = taken.then == effect::calm_down;
    const bool by_leave = is_calm && at.state.at != stage::remeasuring;
    add_lane_measures(made, by_leave ? at.seen.leave : at.seen.enter, at.with, !is_calm);
    made.found = at.seen.found;
}

// Which of the ways led into `flagged`.
std::string_view way_of(const proof& by) {
    if (by.by_lane && by.by_aborts) return ": they queue for the lane, and many come to nothing";
    if (by.by_lane) return ": they queue for the lane";
    return by.by_aborts ? ": many come to nothing" : ": many end in a write conflict";
}

// What was expected of a move, in the decision that starts it and in the one that looks back.
void add_expectations(decision& made, const row& taken, const context& at) {
    const auto& state = at.state;
    switch (taken.then) {
        case effect::start_out:
            made.forecast = at.seen.forecast;
            made.neighbours_before = at.fleet.neighbours;
            return;
        case effect::start_back:
            made.foreseen = at.seen.predicted;
            return;
        case effect::check_arrival:
            made.forecast = state.forecast;
            made.came_true = at.seen.here;
            made.neighbours_before = state.neighbours_before;
            made.neighbours_after = at.fleet.neighbours;
            return;
        case effect::check_foresight:
            made.foreseen = state.foreseen;
            made.seen_at_home = lane_rates{at.seen.enter.pooled.handoff_rate().value_or(0.0),
                                           at.seen.enter.pooled.mean_wait_us().value_or(0.0),
                                           at.seen.enter.pooled.conflict_rate().value_or(0.0)};
            return;
        case effect::none:
            if (taken.next == stage::would_move) made.forecast = at.seen.forecast;
            return;
        case effect::flag:
        case effect::calm_down:
        case effect::join_incident:
        case effect::end_incident:
        case effect::advise_shard:
        case effect::end_lever2:
        case effect::note_sharded:
        case effect::arrive_out:
        case effect::arrive_back:
        case effect::cool_after_fail:
        case effect::set_pin:
        case effect::clear_pin:
        case effect::forgive:
        case effect::refuse:
            return;
    }
}

}  // namespace

decision make_decision(const row& taken,
                       const context& at,
                       const std::string& tool,
                       const block& by) {
    decision made;
    made.tool = tool;
    made.at = at.now;
    made.from = at.state.at;
    made.to = taken.next.value_or(at.state.at);
    made.act_mode = at.with.act_mode;
    made.event = to_string(at.what.kind);
    made.rule = taken.name;
    made.where = at.with.where;
    made.policy = at.with.name;
    made.reason = taken.reason;
    if (by) made.reason += ": " + by.text;
    if (!at.what.who.empty()) made.reason += fmt::format(" (by {})", at.what.who);
    if (!at.what.text.empty()) made.reason += ": " + at.what.text;
    if (taken.then == effect::flag) made.reason += way_of(at.seen.enter);
    if (taken.then == effect::join_incident)
        made.reason += fmt::format(" ({} tools)", at.fleet.tools_hot_together);
    made.would_change = taken.would_change;
    made.done = done_text(taken, at);
    made.advice = taken.then == effect::advise_shard;
    const bool is_incident = by.rail == "incident" || taken.then == effect::join_incident;
    made.alert = (taken.alert || is_incident) && at.with.act_mode != mode::observe;
    if (made.alert)
        made.alert_key = is_incident ? "incident" : fmt::format("{}/{}", tool, taken.name);
    add_evidence(made, taken, at);
    add_expectations(made, taken, at);
    return made;
}

block block_of(const row& taken, const context& at) {
    if (taken.name != "held_by_rail" && taken.name != "order_unsafe") return {};
    const auto to = at.state.home == home_kind::engine ? home_kind::postgres : home_kind::engine;
    return why_blocked(
        at, to, at.what.kind == event_kind::order ? mover::operator_order : mover::policy);
}

}  // namespace hotlane::policy

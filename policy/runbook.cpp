#include "policy/runbook.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace hotlane::policy {

namespace {

std::string said_key(const row& taken, const block& by) {
    return by ? fmt::format("{}:{}", taken.name, by.rail) : std::string(taken.name);
}

bool was_said(const runbook_state& state, const std::string& key) {
    return state.said.find("," + key + ",") != std::string::npos;
}

void remember_said(runbook_state& state, const std::string& key, time_point now) {
    if (!was_said(state, key)) state.said += (state.said.empty() ? "," : "") + key + ",";
    state.said_at = now;
}

bool is_worth_saying(const runbook_state& state,
                     const settings& with,
                     report say,
                     const std::string& key,
                     time_point now) {
    switch (say) {
        case report::silent:
            return false;
        case report::always:
            return true;
        case report::once:
            return !was_said(state, key);
        case report::again:
            return !was_said(state, key) || !state.said_at ||
                   now - *state.said_at >= with.rails.cooldown;
    }
    return true;
}

// --- effects ----------------------------------------------------------------------------------

void measure_afresh(runbook_state& state, time_point now) {
    state.evidence_from = now;
    state.load = duration{0};
}

void arrive(runbook_state& state, home_kind home, time_point now) {
    state.home = home;
    state.home_since = now;
    state.failures = 0;
    state.quiet_until.reset();
    state.moved_by_order = false;
    state.alert = false;
    state.calm_at.clear();
    state.away_windows.clear();
    state.hot_since.reset();
    state.why = diagnosis::none;
    measure_afresh(state, now);
}

void start(runbook_state& state, const context& at, home_kind to, outcome& out) {
    const bool is_order = at.what.kind == event_kind::order;
    state.moved_by_order = is_order;
    const bool is_flap = !is_order && to == home_kind::postgres && state.returned_at &&
                         at.now - *state.returned_at < at.with.rails.forgive_after;
    if (is_flap) state.flaps += 1;
    state.trouble_at = at.now;
    if (state.advice) out.commands.push_back({.kind = command_kind::clear_advice});
    state.advice = false;
    state.alert = false;
    out.commands.push_back({.kind = command_kind::start_move,
                            .to = to,
                            .who = is_order ? at.what.who : std::string("policy")});
}

void drop_advice(runbook_state& state, outcome& out) {
    if (state.advice) out.commands.push_back({.kind = command_kind::clear_advice});
    state.advice = false;
    state.alert = false;
}

void apply_lever2_end(runbook_state& state, const context& at, outcome& out) {
    state.lever2_over = true;
    if (at.what.kind == event_kind::shard_done) state.sharded = true;
    drop_advice(state, out);
    measure_afresh(state, at.now);
}

void apply(effect then, runbook_state& state, const context& at, outcome& out) {
    switch (then) {
        case effect::none:
        case effect::refuse:
            return;
        case effect::flag:
            state.hot_since = at.now;
            state.trouble_at = at.now;
            return;
        case effect::calm_down:
            state.hot_since.reset();
            state.why = diagnosis::none;
            drop_advice(state, out);
            return;
        case effect::advise_shard:
            state.advice = true;
            out.commands.push_back({.kind = command_kind::raise_advice});
            return;
        case effect::end_lever2:
            return apply_lever2_end(state, at, out);
        case effect::note_sharded:
            state.sharded = true;
            state.lever2_over = true;
            return;
        case effect::start_out:
            return start(state, at, home_kind::postgres, out);
        case effect::start_back:
            return start(state, at, home_kind::engine, out);
        case effect::arrive_out:
            return arrive(state, home_kind::postgres, at.now);
        case effect::arrive_back:
            arrive(state, home_kind::engine, at.now);
            state.returned_at = at.now;
            state.trouble_at = at.now;
            return;
        case effect::cool_after_fail:
            state.failures += 1;
            state.quiet_until = at.now + cooldown_of(state, at.with);
            state.trouble_at = at.now;
            state.moved_by_order = false;
            measure_afresh(state, at.now);
            return;
        case effect::set_pin:
            state.pinned = at.what.wanted;
            return;
        case effect::clear_pin:
            state.pinned.reset();
            return;
        case effect::forgive:
            state.failures = 0;
            state.flaps = 0;
            state.lever2_over = state.sharded;
            return;
    }
}

// --- decisions --------------------------------------------------------------------------------

void add_lane_measures(decision& made, const proof& by, bool is_hot) {
    const window& all = by.pooled;
    const auto add = [&](const char* name, const char* unit, double value, double limit) {
        const bool is_over = value > limit;
        made.measures.push_back({name, unit, value, limit, is_over == is_hot});
    };
    if (const auto rate = all.handoff_rate()) add("handoff rate", "", *rate, by.over.handoff_rate);
    if (const auto wait = all.mean_wait_us()) add("mean wait", "us", *wait, by.over.mean_wait_us);
    if (const auto rate = all.abort_rate()) add("abort rate", "", *rate, by.over.abort_rate);
    const int agreeing = is_hot ? by.hot : by.calm;
    made.measures.push_back({is_hot ? "hot windows" : "calm windows",
                             "windows",
                             static_cast<double>(agreeing),
                             static_cast<double>(by.needed),
                             agreeing >= by.needed});
    made.windows = by.windows;
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
    add_lane_measures(made, by_leave ? at.seen.leave : at.seen.enter, !is_calm);
    made.found = at.seen.found;
}

// Which of the two ways led into `flagged`.
std::string_view way_of(const proof& by) {
    if (by.by_lane && by.by_aborts) return ": they queue for the lane, and many come to nothing";
    return by.by_lane ? ": they queue for the lane" : ": many come to nothing";
}

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
    made.would_change = taken.would_change;
    made.done = done_text(taken, at);
    made.advice = taken.then == effect::advise_shard;
    const bool is_incident = by.rail == "incident";
    made.alert = (taken.alert || is_incident) && at.with.act_mode != mode::observe;
    if (made.alert)
        made.alert_key = is_incident ? "incident" : fmt::format("{}/{}", tool, taken.name);
    add_evidence(made, taken, at);
    return made;
}

// The rail that a blocked row names; empty for every other row.
block block_of(const row& taken, const context& at) {
    if (taken.name != "held_by_rail" && taken.name != "order_unsafe") return {};
    const auto to = at.state.home == home_kind::engine ? home_kind::postgres : home_kind::engine;
    return why_blocked(
        at, to, at.what.kind == event_kind::order ? mover::operator_order : mover::policy);
}

}  // namespace

std::string_view to_string(event_kind kind) noexcept {
    switch (kind) {
        case event_kind::window:
            return "window";
        case event_kind::tick:
            return "tick";
        case event_kind::shard_done:
            return "shard_done";
        case event_kind::shard_skipped:
            return "shard_skipped";
        case event_kind::move_ok:
            return "move_ok";
        case event_kind::move_failed:
            return "move_failed";
        case event_kind::move_refused:
            return "move_refused";
        case event_kind::order:
            return "order";
        case event_kind::found_engine:
            return "found_engine";
        case event_kind::found_postgres:
            return "found_postgres";
        case event_kind::pin_set:
            return "pin_set";
        case event_kind::pin_cleared:
            return "pin_cleared";
    }
    return "?";
}

bool step(runbook_state& state,
          const settings& with,
          const std::string& tool,
          const event& what,
          const evidence& seen,
          const fleet_view& fleet,
          time_point now,
          outcome& out) {
    const context at{with, state, what, seen, fleet, now};
    const row& taken = row_for(at);
    const block by = block_of(taken, at);
    const std::string key = said_key(taken, by);
    if (taken.then == effect::refuse) {
        out.refusal = std::string(taken.reason) + (by ? ": " + by.text : std::string{});
        return false;
    }
    const bool is_said = is_worth_saying(state, with, taken.say, key, now);
    if (is_said) {
        decision made = make_decision(taken, at, tool, by);
        state.alert = state.alert || made.alert;
        out.decisions.push_back(std::move(made));
    }
    // `at` refers to the state: the effect still sees the old stage.
    if (seen.enter.standing == verdict::hot) state.why = seen.found.what;
    apply(taken.then, state, at, out);
    const bool is_moved = taken.next && *taken.next != state.at;
    if (is_moved) {
        state.at = *taken.next;
        state.since = now;
        state.said.clear();
    }
    if (is_said) remember_said(state, key, now);
    return is_moved;
}

}  // namespace hotlane::policy

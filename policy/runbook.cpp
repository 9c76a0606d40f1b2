#include "policy/record.hpp"

#include <algorithm>
#include <cmath>

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

void forget_diagnosis(runbook_state& state) {
    state.why = diagnosis::none;
    state.why_since.reset();
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
    state.warm_since.reset();
    state.in_incident = false;
    forget_diagnosis(state);
    state.check_due = true;
    measure_afresh(state, now);
}

// What is expected of a move, to be held against what comes true.
void expect(runbook_state& state, const context& at, home_kind to) {
    if (to == home_kind::postgres) {
        state.forecast = at.seen.forecast;
        state.came_true.reset();
        state.neighbours_before = at.fleet.neighbours;
        state.neighbours_after.reset();
        state.foreseen.reset();
    } else {
        state.foreseen = at.seen.predicted;
        state.seen_at_home.reset();
        state.forecast.reset();
        state.came_true.reset();
        state.neighbours_before.reset();
        state.neighbours_after.reset();
    }
}

lane_rates rates_of(const window& pooled) {
    return {pooled.handoff_rate().value_or(0.0),
            pooled.mean_wait_us().value_or(0.0),
            pooled.conflict_rate().value_or(0.0)};
}

// Half of each error is new: two good returns outweigh a bad one.
void check_foresight(runbook_state& state, const context& at) {
    const lane_rates seen = rates_of(at.seen.enter.pooled);
    const lane_rates& foreseen = *state.foreseen;
    state.seen_at_home = seen;
    state.check_due = false;
    const double error = std::abs(seen.handoff_rate - foreseen.handoff_rate);
    state.foresight_error = (state.foresight_error + error) / 2;
    const double factor =
        foreseen.mean_wait_us > 0 ? std::max(1.0, seen.mean_wait_us / foreseen.mean_wait_us) : 1.0;
    constexpr double factor_max = 10.0;  // one quiet night must not lock a tool out for ever
    state.foresight_wait_factor = (state.foresight_wait_factor + std::min(factor, factor_max)) / 2;
}

void start(runbook_state& state, const context& at, home_kind to, outcome& out) {
    const bool is_order = at.what.kind == event_kind::order;
    state.moved_by_order = is_order;
    const bool is_flap = !is_order && to == home_kind::postgres && state.returned_at &&
                         at.now - *state.returned_at < at.with.rails.forgive_after;
    if (is_flap) state.flaps += 1;
    expect(state, at, to);
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
            state.warm_since.reset();
            forget_diagnosis(state);
            drop_advice(state, out);
            return;
        case effect::join_incident:
            state.in_incident = true;
            return;
        case effect::end_incident:
            state.in_incident = false;
            // Since when it is warm stays known: measured afresh at one time, all would seem to
            // have turned hot together again.
            forget_diagnosis(state);
            state.alert = state.advice;
            return measure_afresh(state, at.now);
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
        case effect::check_arrival:
            state.came_true = at.seen.here;
            state.neighbours_after = at.fleet.neighbours;
            state.check_due = false;
            return;
        case effect::check_foresight:
            return check_foresight(state, at);
        case effect::forgive:
            state.failures = 0;
            state.flaps = 0;
            state.lever2_over = state.sharded;
            return;
    }
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

namespace {

constexpr duration budget_span{86'400'000};

void note_pause(runbook_state& state, const event& what, time_point now) {
    std::erase_if(state.pauses, [&](const pause& one) { return now - one.at >= budget_span; });
    if (what.held > duration{0}) state.pauses.push_back({now, what.held});
}

}  // namespace

duration held_lately(const runbook_state& state, time_point now) noexcept {
    duration sum{0};
    for (const pause& one : state.pauses)
        if (now - one.at < budget_span) sum += one.held;
    return sum;
}

namespace {

void note_diagnosis(runbook_state& state, diagnosis found, time_point now) {
    if (found == state.why) return;
    if (state.why == diagnosis::hot_row || state.why == diagnosis::busy_lane) state.why_since = now;
    state.why = found;
}

}  // namespace

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
    if (seen.enter.standing == verdict::hot) note_diagnosis(state, seen.found.what, now);
    note_pause(state, what, now);
    apply(taken.then, state, at, out);
    const bool is_moved = taken.next && *taken.next != state.at;
    if (is_moved) {
        state.at = *taken.next;
        state.since = now;
        state.said.clear();
    }
    if (is_said) remember_said(state, key, now);
    const bool is_check =
        taken.then == effect::check_arrival || taken.then == effect::check_foresight;
    return is_moved || is_check;
}

}  // namespace hotlane::policy

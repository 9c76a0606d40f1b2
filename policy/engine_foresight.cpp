// What tool_policy expects of the other home: predictions while the tool is on PostgreSQL, the
// engine's times while it is there, and a forecast before it leaves.
#include <algorithm>
#include <cmath>

#include "policy/engine.hpp"

namespace hotlane::policy {

namespace {

std::int64_t us_of(time_point at) {
    return std::chrono::duration_cast<std::chrono::microseconds>(at.time_since_epoch()).count();
}

// Share of a new measurement in the tracked ones.
constexpr double weight = 0.3;
// A forecast looks at so many of the last windows together.
constexpr int forecast_windows = 3;
// Once in so many windows, from the first on.
constexpr int measure_every = 4;

// Its counters are true, be there ever so little in them.
bool is_countable(const window& w) {
    return w.quality == window_quality::good || w.quality == window_quality::idle;
}

double tracked(std::optional<std::int64_t> known, double fresh) {
    if (!known) return fresh;
    const auto before = static_cast<double>(*known);
    return before + weight * (fresh - before);
}

}  // namespace

void tool_policy::add_writes(std::span<const write_interval> writes) {
    if (writes.empty()) return;
    sees_writes_ = true;
    writes_.add(writes);
}

std::optional<std::span<const write_interval>> tool_policy::writes_of(const window& w) const {
    return writes_.between(us_of(w.from), us_of(w.to));
}

lane_model tool_policy::engine_model() const {
    lane_model out;
    if (state_.lane_us) {
        out.in_lane_us = static_cast<double>(*state_.lane_us);
        out.is_measured = true;
    }
    const auto latency = static_cast<double>(commit_latency_of(state_, with_).count());
    out.durable_us = std::max(0.0, latency - (state_.lane_us ? out.in_lane_us : 0.0));
    return out;
}

void tool_policy::predict(window& made) {
    if (made.quality != window_quality::good) return;
    const auto writes = writes_of(made);
    if (!writes) return;
    made.predicted = simulate_lane(*writes, us_of(made.from), us_of(made.to), engine_model());
}

// From the last window, and as many before it, without a gap, as it takes to have seen enough.
std::optional<lane_model> tool_policy::measured_lane(window counted) const {
    auto before = state_.windows.rbegin();
    for (;;) {
        const auto writes = writes_of(counted);
        if (!writes) return std::nullopt;
        if (counted.seen_share().value_or(0.0) >= with_.diagnose.seen_share_min)
            if (auto found = measure_lane(*writes, counted, engine_model())) return found;
        if (before == state_.windows.rend() || before->to != counted.from || !is_countable(*before))
            return std::nullopt;
        counted.quality = window_quality::good;  // of many idle ones together
        counted.from = before->from;
        counted.acquires += before->acquires;
        counted.handoffs += before->handoffs;
        counted.wait_us += before->wait_us;
        counted.hold_wait_us += before->hold_wait_us;
        counted.seen_writes += before->seen_writes;
        ++before;
    }
}

// The engine's two times are those of the tool's own statements, so only it can measure them.
void tool_policy::calibrate(const window& made) {
    if (!is_countable(made) || made.seen_writes == 0) return;
    if (until_measured_ > 0 && --until_measured_ > 0) return;
    const auto measured = measured_lane(made);
    if (!measured) return;
    until_measured_ = measure_every;
    const double latency = measured->in_lane_us + measured->durable_us;
    state_.commit_latency_us = std::llround(tracked(state_.commit_latency_us, latency));
    state_.lane_us = std::llround(tracked(state_.lane_us, measured->in_lane_us));
}

thresholds tool_policy::return_limits() const {
    auto limits = thresholds_of(with_, level::leave, commit_latency_of(state_, with_));
    const double kept = 1.0 - with_.come_back.margin;
    limits.handoff_rate = std::max(0.0, limits.handoff_rate * kept - state_.foresight_error);
    limits.mean_wait_us = limits.mean_wait_us * kept / std::max(1.0, state_.foresight_wait_factor);
    limits.conflict_rate *= kept;
    limits.abort_rate *= kept;
    return limits;
}

// Calm at home as the policy means it: the same two ways and the conflicts, with the margin.
bool tool_policy::is_calm_away(const window& made) const {
    const double seconds = std::chrono::duration<double>(made.to - made.from).count();
    const double latency_s =
        std::chrono::duration<double>(commit_latency_of(state_, with_)).count();
    const double use =
        seconds > 0 ? static_cast<double>(made.seen_writes) / seconds * latency_s : 0.0;
    // Where the writes are replayed the lane's use says no more than they do.
    if (!made.predicted) return use <= with_.come_back.lane_use_max;
    const auto limits = return_limits();
    const auto& p = *made.predicted;
    const bool queues = p.handoff_rate().value_or(0.0) > limits.handoff_rate &&
                        p.mean_wait_us().value_or(0.0) > limits.mean_wait_us;
    const bool conflicts = p.conflict_rate().value_or(0.0) > limits.conflict_rate;
    return !queues && !conflicts && use <= with_.come_back.lane_use_max;
}

void tool_policy::add_away_evidence(evidence& seen, time_point now) const {
    seen.back = return_limits();
    lane_figures sum;
    int wanted = std::max(1, with_.come_back.calm_windows);
    for (auto w = state_.away_windows.rbegin(); w != state_.away_windows.rend() && wanted > 0;
         ++w) {
        if (!w->predicted) continue;
        --wanted;
        sum.acquires += w->predicted->acquires;
        sum.handoffs += w->predicted->handoffs;
        sum.wait_us += w->predicted->wait_us;
        sum.conflicts += w->predicted->conflicts;
    }
    if (sum.acquires > 0)
        seen.predicted = lane_rates{sum.handoff_rate().value_or(0.0),
                                    sum.mean_wait_us().value_or(0.0),
                                    sum.conflict_rate().value_or(0.0)};
    const auto since = us_of(now - with_.window.length * forecast_windows);
    if (const auto writes = writes_.between(since, us_of(now)))
        seen.here = figures_of(*writes, since, us_of(now));
}

evidence tool_policy::evidence_at(const fleet_view& fleet, time_point now) const {
    evidence seen = evidence_at(now);
    // Asked for when the tool may have to leave; a simulation for every calm window would be waste.
    if (is_away() || !fleet.target || seen.enter.standing != verdict::hot) return seen;
    const auto since = us_of(now - with_.window.length * forecast_windows);
    if (const auto writes = writes_.between(since, us_of(now)))
        seen.forecast = simulate_postgres(*writes, since, us_of(now), *fleet.target);
    return seen;
}

}  // namespace hotlane::policy

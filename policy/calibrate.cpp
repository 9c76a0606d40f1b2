// The engine's times, measured for one tool while it lives there.
#include <algorithm>
#include <cmath>
#include <limits>

#include "policy/shadow.hpp"

namespace hotlane::policy {

namespace {

constexpr std::size_t writes_min = 20;
constexpr std::uint64_t acquires_min = 20;
constexpr double lane_min_us = 5.0;
constexpr double lane_max_us = 200'000.0;
constexpr int halvings = 14;
// A lane that hardly anybody waits for tells nothing of how long it is taken.
constexpr double waits_min = 0.01;
constexpr std::int64_t slack_us = 50;  // two that touch do not overlap

double quantile(std::vector<double>& values, std::size_t percent) {
    std::sort(values.begin(), values.end());
    return values[std::min(values.size() - 1, values.size() * percent / 100)];
}

double wait_per_acquire(const lane_figures& f) {
    return f.acquires == 0 ? 0.0 : static_cast<double>(f.wait_us) / static_cast<double>(f.acquires);
}

}  // namespace

std::optional<double> uncontended_us(std::span<const write_interval> writes) {
    std::vector<write_interval> by_start(writes.begin(), writes.end());
    std::sort(by_start.begin(), by_start.end(), [](const auto& a, const auto& b) {
        return a.start_us < b.start_us;
    });
    std::vector<double> alone;
    std::vector<double> every;
    std::int64_t ended = std::numeric_limits<std::int64_t>::min();
    for (std::size_t i = 0; i < by_start.size(); ++i) {
        const auto& one = by_start[i];
        const bool is_before = ended <= one.start_us + slack_us;
        const bool is_after =
            i + 1 == by_start.size() || one.end_us <= by_start[i + 1].start_us + slack_us;
        ended = std::max(ended, one.end_us);
        if (one.conflict || one.block || one.end_us <= one.start_us) continue;
        const auto took = static_cast<double>(one.end_us - one.start_us);
        every.push_back(took);
        if (is_before && is_after) alone.push_back(took);
    }
    if (alone.size() >= writes_min) return quantile(alone, 50);
    if (every.size() >= writes_min) return quantile(every, 5);
    return std::nullopt;
}

std::optional<home_figures> figures_of(std::span<const write_interval> writes,
                                       std::int64_t from_us,
                                       std::int64_t to_us) {
    if (writes.size() < writes_min || to_us <= from_us) return std::nullopt;
    std::vector<double> took;
    home_figures out;
    double sum = 0;
    std::uint64_t failed = 0;
    for (const auto& one : writes) {
        took.push_back(static_cast<double>(std::max<std::int64_t>(0, one.end_us - one.start_us)));
        sum += took.back();
        failed += one.conflict ? 1 : 0;
    }
    const auto n = static_cast<double>(took.size());
    out.writes = took.size();
    out.latency_us = sum / n;
    out.p95_us = quantile(took, 95);
    out.writes_per_s = n * 1e6 / static_cast<double>(to_us - from_us);
    out.failure_rate = static_cast<double>(failed) / n;
    return out;
}

std::optional<lane_model> measure_lane(std::span<const write_interval> writes,
                                       const window& counted,
                                       const lane_model& known) {
    const auto latency = uncontended_us(writes);
    if (!latency || counted.acquires < acquires_min || counted.quality != window_quality::good)
        return std::nullopt;
    const auto us = [](time_point at) {
        return std::chrono::duration_cast<std::chrono::microseconds>(at.time_since_epoch()).count();
    };
    lane_model made = known;
    made.is_measured = true;
    made.durable_us = std::max(0.0, *latency - known.in_lane_us);
    const lane_figures measured{
        counted.acquires, counted.handoffs, counted.wait_us - counted.hold_wait_us, 0};
    if (measured.handoff_rate().value_or(0.0) < waits_min) return made;
    // The wait per acquisition grows with the time in the lane: halve until it is the measured one.
    const double wanted = wait_per_acquire(measured);
    double low = lane_min_us;
    double high = std::min(lane_max_us, std::max(*latency, 2 * lane_min_us));
    for (int i = 0; i < halvings; ++i) {
        made.in_lane_us = std::sqrt(low * high);
        made.durable_us = std::max(0.0, *latency - made.in_lane_us);
        const auto got = simulate_lane(writes, us(counted.from), us(counted.to), made);
        (wait_per_acquire(got) < wanted ? low : high) = made.in_lane_us;
    }
    return made;
}

}  // namespace hotlane::policy

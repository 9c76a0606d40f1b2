#include "policy/verdict.hpp"

#include <algorithm>

#include "policy/state.hpp"
#include "policy/window.hpp"

namespace hotlane::policy {

namespace {

// A conflict rate of fewer writes than this says nothing.
constexpr std::uint64_t conflict_writes_min = 10;

double wait_threshold(duration fixed, double commits, std::chrono::microseconds commit_latency) {
    if (fixed.count() > 0) return static_cast<double>(fixed.count()) * 1'000.0;
    return commits * static_cast<double>(commit_latency.count());
}

bool is_hot(const window& w, const thresholds& over) noexcept {
    return is_lane_hot(w, over) || is_abort_hot(w, over) || is_conflict_hot(w, over);
}

int divide_up(std::int64_t whole, std::int64_t part) noexcept {
    return static_cast<int>((whole + part - 1) / part);
}

}  // namespace

thresholds thresholds_of(const settings& with,
                         level at,
                         std::chrono::microseconds commit_latency) noexcept {
    const auto& d = with.detect;
    thresholds over;
    switch (at) {
        case level::enter:
            over.handoff_rate = d.handoff_rate_enter;
            over.mean_wait_us =
                wait_threshold(d.mean_wait_enter, d.mean_wait_enter_commits, commit_latency);
            over.abort_rate = d.abort_rate_enter;
            over.conflict_rate = d.conflict_rate_enter;
            break;
        case level::leave:
            over.handoff_rate = d.handoff_rate_leave;
            over.mean_wait_us =
                wait_threshold(d.mean_wait_leave, d.mean_wait_leave_commits, commit_latency);
            over.abort_rate = d.abort_rate_leave;
            over.conflict_rate = d.conflict_rate_leave;
            break;
    }
    return over;
}

bool is_lane_hot(const window& w, const thresholds& over) noexcept {
    const auto rate = w.handoff_rate();
    const auto wait = w.mean_wait_us();
    return rate && wait && *rate > over.handoff_rate && *wait > over.mean_wait_us;
}

bool is_abort_hot(const window& w, const thresholds& over) noexcept {
    const auto rate = w.abort_rate();
    return rate && *rate > over.abort_rate;
}

bool is_conflict_hot(const window& w, const thresholds& over) noexcept {
    const auto rate = w.conflict_rate();
    return w.seen_writes >= conflict_writes_min && rate && *rate > over.conflict_rate;
}

verdict judge(const window& w, const thresholds& over) noexcept {
    switch (w.quality) {
        case window_quality::good:
            return is_hot(w, over) ? verdict::hot : verdict::calm;
        case window_quality::idle:
            return verdict::idle;
        case window_quality::reset:
        case window_quality::gap:
        case window_quality::stalled:
        case window_quality::stale:
            return verdict::unknown;
    }
    return verdict::unknown;
}

bool is_warm(const proof& made) noexcept {
    return made.hot >= std::max(1, made.needed - 1);
}

proof_size size_of_proof(const settings& with) noexcept {
    const auto& w = with.window;
    const auto length = std::max<std::int64_t>(w.length.count(), 1);
    const int n = std::max(w.out_of, 1);
    const int k = std::clamp(w.hot_of, 1, n);
    proof_size size;
    size.covered_min = std::max(w.proof_min, proof_floor);
    size.needed = std::max(k, divide_up(size.covered_min.count(), length));
    size.wanted = divide_up(std::int64_t{n} * size.needed, k);
    return size;
}

duration proof_time(const settings& with) noexcept {
    const proof_size size = size_of_proof(with);
    return std::max(size.covered_min, with.window.length * size.needed);
}

duration window_age_max(const settings& with) noexcept {
    return with.window.length * std::max(with.window.age_max, 3 * size_of_proof(with).wanted);
}

std::size_t windows_kept(const settings& with) noexcept {
    // As long as a window may count it is kept, however many others lie between.
    const auto longest = std::max(window_age_max(with), with.window.long_span);
    const auto lengths = longest / std::max(with.window.length, duration{1});
    return std::clamp<std::size_t>(static_cast<std::size_t>(lengths), 32, windows_kept_max);
}

namespace {

duration hot_within(const std::vector<window>& windows,
                    const thresholds& over,
                    time_point not_before) {
    duration hot{0};
    for (auto w = windows.rbegin(); w != windows.rend() && w->from >= not_before; ++w)
        if (judge(*w, over) == verdict::hot) hot += w->to - w->from;
    return hot;
}

}  // namespace

proof prove(const std::vector<window>& windows,
            const settings& with,
            level at,
            std::chrono::microseconds commit_latency,
            time_point not_before,
            time_point now) {
    const proof_size size = size_of_proof(with);
    const time_point oldest = std::max(not_before, now - window_age_max(with));
    proof made;
    made.needed = size.needed;
    made.wanted = size.wanted;
    made.over = thresholds_of(with, at, commit_latency);

    for (auto w = windows.rbegin(); w != windows.rend() && w->from >= oldest; ++w) {
        if (std::ssize(made.windows) >= size.wanted) break;
        if (w->quality != window_quality::good) continue;
        made.windows.push_back(*w);
        const bool is_hot_one = judge(*w, made.over) == verdict::hot;
        (is_hot_one ? made.hot : made.calm) += 1;
        (is_hot_one ? made.hot_for : made.calm_for) += w->to - w->from;
    }
    std::reverse(made.windows.begin(), made.windows.end());
    made.pooled = pool(made.windows);
    made.by_lane = is_lane_hot(made.pooled, made.over);
    made.by_aborts = is_abort_hot(made.pooled, made.over);
    made.by_conflicts = is_conflict_hot(made.pooled, made.over);
    const duration span = with.window.long_span;
    if (span > duration{0})
        made.long_hot = hot_within(windows, made.over, std::max(not_before, now - span));

    if (made.windows.empty()) return made;
    const verdict together = judge(made.pooled, made.over);
    const bool is_hot_proven = made.hot >= size.needed && made.hot_for >= size.covered_min;
    const bool is_calm_proven = made.calm >= size.needed && made.calm_for >= size.covered_min;
    const bool is_long_proven = span <= duration{0} || made.long_hot >= with.window.long_hot;
    if (is_hot_proven && is_long_proven && together == verdict::hot) made.standing = verdict::hot;
    if (is_calm_proven && together == verdict::calm) made.standing = verdict::calm;
    return made;
}

}  // namespace hotlane::policy

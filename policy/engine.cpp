#include "policy/engine.hpp"

#include <algorithm>
#include <cmath>

namespace hotlane::policy {

namespace {

// Rows that one window may walk in a row (flag, then diagnose, then ...): the longest path.
constexpr int chain_max = 5;
// Share of a new measurement in the tracked commit latency.
constexpr double latency_weight = 0.2;
// Buckets of the look-back; a peak is forgotten at most one bucket late.
constexpr int peak_buckets = 24;
// Writes are kept for so many windows: for a forecast of the last ones, and until a tool that
// writes seldom has written often enough to measure the engine by it.
constexpr int writes_windows = 12;

std::int64_t us_of(time_point at) {
    return std::chrono::duration_cast<std::chrono::microseconds>(at.time_since_epoch()).count();
}

template <typename Value>
void trim_front(std::vector<Value>& ring, std::size_t max) {
    if (ring.size() > max) ring.erase(ring.begin(), ring.end() - static_cast<std::ptrdiff_t>(max));
}

double lane_use_of(const window& w, double writes, std::chrono::microseconds commit_latency) {
    const double seconds = std::chrono::duration<double>(w.to - w.from).count();
    if (seconds <= 0.0) return 0.0;
    return writes / seconds * std::chrono::duration<double>(commit_latency).count();
}

duration bucket_of(const settings& with) {
    return std::max<duration>(with.come_back.lookback / peak_buckets, with.window.length);
}

}  // namespace

tool_policy::tool_policy(std::string tool, settings with)
    : tool_policy(std::move(tool), std::move(with), runbook_state{}) {}

tool_policy::tool_policy(std::string tool, settings with, runbook_state remembered)
    : tool_(std::move(tool)), with_(std::move(with)), state_(std::move(remembered)) {}

outcome tool_policy::feed(const sample& counters,
                          const traffic& seen,
                          const fleet_view& fleet,
                          time_point now) {
    outcome out = tick(fleet, now);
    const reading fresh{counters, seen};
    if (!last_ || last_home_ != state_.home) {
        // Counters of another home are not comparable: the first reading only begins a window.
        last_ = fresh;
        last_home_ = state_.home;
        return out;
    }
    const auto length = counters.taken_at - last_->counters.taken_at;
    if (length > duration{0} && length < with_.window.length / 2) return out;

    const auto before = last_window();
    window made =
        is_away()
            ? make_away_window(*last_, fresh, with_)
            : make_window(*last_, fresh, with_, before ? before->quality : window_quality::idle);
    if (now - counters.taken_at > with_.window.length) {
        made.quality = window_quality::stale;
        made.note = "the sample is old";
    }
    if (length > duration{0}) last_ = fresh;
    track_commit_latency(counters);
    if (is_away()) {
        predict(made);
        keep_away(made, now);
    } else {
        calibrate(made);
        keep(made);
        if (made.quality == window_quality::good) note_heat(now);
    }
    writes_.forget_before(us_of(made.to - with_.window.length * writes_windows));
    // Only a window that counts can lead anywhere: noise never finishes what a proof began.
    if (made.quality == window_quality::good) run({.kind = event_kind::window}, fleet, now, out);
    return out;
}

outcome tool_policy::tick(const fleet_view& fleet, time_point now) {
    outcome out;
    run({.kind = event_kind::tick}, fleet, now, out);
    return out;
}

outcome tool_policy::order(home_kind to,
                           const std::string& who,
                           const fleet_view& fleet,
                           time_point now) {
    outcome out;
    run({.kind = event_kind::order, .to = to, .who = who}, fleet, now, out);
    return out;
}

outcome tool_policy::shard_done(const std::string& who, const fleet_view& fleet, time_point now) {
    outcome out;
    run({.kind = event_kind::shard_done, .who = who}, fleet, now, out);
    return out;
}

outcome tool_policy::shard_skip(const std::string& who, const fleet_view& fleet, time_point now) {
    outcome out;
    run({.kind = event_kind::shard_skipped, .who = who}, fleet, now, out);
    return out;
}

outcome tool_policy::set_pin(pin wanted, const fleet_view& fleet, time_point now) {
    outcome out;
    event what{.kind = event_kind::pin_set, .who = wanted.by};
    what.wanted = std::move(wanted);
    run(what, fleet, now, out);
    return out;
}

outcome tool_policy::clear_pin(const std::string& who, const fleet_view& fleet, time_point now) {
    outcome out;
    run({.kind = event_kind::pin_cleared, .who = who}, fleet, now, out);
    return out;
}

outcome tool_policy::move_finished(move_end end,
                                   const std::string& reason,
                                   const fleet_view& fleet,
                                   time_point now,
                                   duration held) {
    event what{.text = reason, .held = held};
    switch (end) {
        case move_end::ok:
            what.kind = event_kind::move_ok;
            break;
        case move_end::failed:
            what.kind = event_kind::move_failed;
            break;
        case move_end::refused:
            what.kind = event_kind::move_refused;
            break;
    }
    outcome out;
    run(what, fleet, now, out);
    return out;
}

outcome tool_policy::home_found(home_kind home, const fleet_view& fleet, time_point now) {
    event what;
    switch (home) {
        case home_kind::engine:
            what.kind = event_kind::found_engine;
            break;
        case home_kind::postgres:
            what.kind = event_kind::found_postgres;
            break;
    }
    outcome out;
    run(what, fleet, now, out);
    return out;
}

void tool_policy::run(const event& what, const fleet_view& fleet, time_point now, outcome& out) {
    const bool is_window = what.kind == event_kind::window;
    for (int i = 0; i < chain_max; ++i) {
        const evidence seen = is_window ? evidence_at(fleet, now) : evidence{};
        if (!step(state_, with_, tool_, what, seen, fleet, now, out) || !is_window) return;
    }
}

void tool_policy::keep(const window& made) {
    state_.windows.push_back(made);
    trim_front(state_.windows, windows_kept(with_));
    if (made.quality != window_quality::good) return;
    if (made.from >= state_.evidence_from) state_.load += made.to - made.from;
    note_peak(made, static_cast<double>(made.acquires));
}

// Before it is proven, so that tools that turn hot together are known to before the first is
// flagged. Hot ones keep what they have: it says when they turned hot.
void tool_policy::note_heat(time_point now) {
    const auto seen = prove(state_.windows,
                            with_,
                            level::enter,
                            commit_latency_of(state_, with_),
                            state_.evidence_from,
                            now);
    if (!is_warm(seen)) {
        const bool is_enough = std::ssize(seen.windows) >= seen.needed;
        if (is_enough && !state_.hot_since) state_.warm_since.reset();
        return;
    }
    if (state_.warm_since) return;
    const auto first =
        std::find_if(seen.windows.begin(), seen.windows.end(), [&](const window& one) {
            return judge(one, seen.over) == verdict::hot;
        });
    state_.warm_since = first->from;
}

void tool_policy::keep_away(const window& made, time_point now) {
    state_.away_windows.push_back(made);
    trim_front(state_.away_windows, windows_kept(with_));
    const auto is_old = [&](time_point at) { return now - at > with_.come_back.lookback; };
    std::erase_if(state_.calm_at, is_old);
    if (made.quality != window_quality::good) return;

    const auto writes = static_cast<double>(made.seen_writes);
    note_peak(made, writes);
    // Writes are recorded, but those of this window were lost: it says neither.
    if (sees_writes_ && !made.predicted) return;
    if (!is_calm_away(made)) return state_.calm_at.clear();
    state_.calm_at.push_back(made.to);
    trim_front(state_.calm_at, static_cast<std::size_t>(std::max(with_.come_back.calm_windows, 1)));
}

void tool_policy::note_peak(const window& made, double writes) {
    const double use = lane_use_of(made, writes, commit_latency_of(state_, with_));
    const duration bucket = bucket_of(with_);
    auto& peaks = state_.peaks;
    if (peaks.empty() || made.to - peaks.back().start >= bucket)
        peaks.push_back({made.to, use});
    else
        peaks.back().lane_use = std::max(peaks.back().lane_use, use);
    trim_front(peaks, static_cast<std::size_t>(peak_buckets) + 2);
}

void tool_policy::track_commit_latency(const sample& counters) {
    if (!counters.commit_latency || counters.commit_latency->count() <= 0) return;
    const auto fresh = static_cast<double>(counters.commit_latency->count());
    const auto known = static_cast<double>(state_.commit_latency_us.value_or(
        static_cast<std::int64_t>(counters.commit_latency->count())));
    state_.commit_latency_us = std::llround(known + latency_weight * (fresh - known));
}

std::optional<window> tool_policy::last_window() const {
    const auto& all = is_away() ? state_.away_windows : state_.windows;
    if (all.empty()) return std::nullopt;
    return all.back();
}

verdict tool_policy::last_verdict() const {
    const auto last = last_window();
    if (!last || is_away()) return verdict::unknown;
    const auto latency = commit_latency_of(state_, with_);
    return judge(*last, thresholds_of(with_, level::enter, latency));
}

evidence tool_policy::evidence_at(time_point now) const {
    evidence seen;
    const auto latency = commit_latency_of(state_, with_);
    if (is_away()) {
        const duration bucket = bucket_of(with_);
        for (const peak& one : state_.peaks) {
            if (now - one.start <= with_.come_back.lookback + bucket)
                seen.lane_use_peak = std::max(seen.lane_use_peak, one.lane_use);
        }
        for (const window& one : state_.away_windows) {
            if (one.quality == window_quality::good)
                seen.lane_use = lane_use_of(one, static_cast<double>(one.seen_writes), latency);
        }
        seen.calm_windows = static_cast<int>(state_.calm_at.size());
        add_away_evidence(seen, now);
        return seen;
    }
    const auto judged = [&](level at) {
        return prove(state_.windows, with_, at, latency, state_.evidence_from, now);
    };
    seen.enter = judged(level::enter);
    seen.leave = judged(level::leave);
    seen.found = diagnose(seen.enter, with_, state_.table);
    return seen;
}

}  // namespace hotlane::policy

#include "policy/types.hpp"

#include <algorithm>

#include "policy/settings.hpp"

namespace hotlane::policy {

namespace {

std::optional<double> ratio(std::uint64_t part, std::uint64_t whole) noexcept {
    if (whole == 0) return std::nullopt;
    return static_cast<double>(part) / static_cast<double>(whole);
}

}  // namespace

std::string_view to_string(home_kind kind) noexcept {
    switch (kind) {
        case home_kind::engine:
            return "engine";
        case home_kind::postgres:
            return "postgres";
    }
    return "?";
}

std::string_view to_string(window_quality quality) noexcept {
    switch (quality) {
        case window_quality::good:
            return "good";
        case window_quality::idle:
            return "idle";
        case window_quality::reset:
            return "reset";
        case window_quality::gap:
            return "gap";
        case window_quality::stalled:
            return "stalled";
        case window_quality::stale:
            return "stale";
    }
    return "?";
}

std::string_view to_string(verdict v) noexcept {
    switch (v) {
        case verdict::hot:
            return "hot";
        case verdict::calm:
            return "calm";
        case verdict::idle:
            return "idle";
        case verdict::unknown:
            return "unknown";
    }
    return "?";
}

std::string_view to_string(diagnosis d) noexcept {
    switch (d) {
        case diagnosis::none:
            return "none";
        case diagnosis::hot_row:
            return "hot_row";
        case diagnosis::busy_lane:
            return "busy_lane";
        case diagnosis::unknown:
            return "unknown";
    }
    return "?";
}

std::string_view to_string(stage s) noexcept {
    switch (s) {
        case stage::watching:
            return "watching";
        case stage::flagged:
            return "flagged";
        case stage::sharding:
            return "sharding";
        case stage::remeasuring:
            return "remeasuring";
        case stage::would_move:
            return "would_move";
        case stage::moving_out:
            return "moving_out";
        case stage::on_postgres:
            return "on_postgres";
        case stage::would_return:
            return "would_return";
        case stage::moving_back:
            return "moving_back";
    }
    return "?";
}

std::string_view to_string(lever one) noexcept {
    switch (one) {
        case lever::retry:
            return "retry";
        case lever::shard:
            return "shard";
        case lever::route:
            return "route";
    }
    return "?";
}

std::vector<lever> all_levers() {
    return {lever::retry, lever::shard, lever::route};
}

std::string_view to_string(mode m) noexcept {
    switch (m) {
        case mode::observe:
            return "observe";
        case mode::advise:
            return "advise";
        case mode::act:
            return "act";
    }
    return "?";
}

std::optional<double> lane_figures::handoff_rate() const noexcept {
    return ratio(handoffs, acquires);
}

std::optional<double> lane_figures::mean_wait_us() const noexcept {
    return ratio(wait_us, handoffs);
}

std::optional<double> lane_figures::conflict_rate() const noexcept {
    return ratio(conflicts, acquires);
}

std::optional<double> window::handoff_rate() const noexcept {
    return ratio(handoffs, acquires);
}

std::optional<double> window::mean_wait_us() const noexcept {
    return ratio(wait_us, handoffs);
}

std::optional<double> window::abort_rate() const noexcept {
    if (!commits || acquires == 0) return std::nullopt;
    // A commit may be counted one window after its acquire: then there are more of them.
    return 1.0 - *ratio(std::min(*commits, acquires), acquires);
}

std::optional<double> window::conflict_rate() const noexcept {
    return ratio(seen_conflicts, seen_writes);
}

std::optional<double> window::seen_share() const noexcept {
    return ratio(seen_writes, acquires);
}

}  // namespace hotlane::policy

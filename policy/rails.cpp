// The rails: what may stop a step that the evidence asks for, and how waiting times double.
#include <algorithm>

#include <fmt/format.h>

#include "policy/runbook.hpp"

namespace hotlane::policy {

namespace {

// Doubling stops here: any cap is reached long before.
constexpr int doublings_max = 30;

duration doubled(duration base, int times, duration cap) noexcept {
    for (int i = 0; i < std::min(times, doublings_max) && base < cap; ++i)
        base *= 2;
    return std::min(base, cap);
}

block pinned_elsewhere(const context& at, home_kind to, mover by) {
    const auto& pinned = at.state.pinned;
    if (!pinned || pinned->until <= at.now) return {};
    if (by == mover::operator_order && pinned->home == to) return {};
    return {"pin",
            fmt::format("{} pinned it to {} until {}{}{}",
                        pinned->by,
                        to_string(pinned->home),
                        text_of(pinned->until),
                        pinned->reason.empty() ? "" : ": ",
                        pinned->reason)};
}

block no_target(const context& at, home_kind to) {
    if (to == home_kind::engine || at.fleet.has_target) return {};
    return {"no_target", "the tool has no PostgreSQL home in the configuration"};
}

block too_many_running(const context& at) {
    const auto& rails = at.with.rails;
    if (at.fleet.moves_running < std::max(rails.moves_at_once, 1)) return {};
    return {"moves_at_once",
            fmt::format("{} of at most {} moves run already",
                        at.fleet.moves_running,
                        std::max(rails.moves_at_once, 1))};
}

// Whether a slow engine or storage made this and other tools hot together shows only after one more
// proof time: the first of them must not leave before the others are known.
block incident(const context& at) {
    const auto& rails = at.with.rails;
    if (rails.incident_tools <= 0) return {};
    if (at.fleet.tools_hot_together >= rails.incident_tools)
        return {
            "incident",
            fmt::format("{} tools turned hot within one proof time: this looks like the storage "
                        "or the engine, so nothing moves",
                        at.fleet.tools_hot_together)};
    if (at.state.hot_since && at.now - *at.state.hot_since < proof_time(at.with))
        return {"incident_watch",
                fmt::format("it turned hot just now; until {} it shows whether others do too",
                            text_of(*at.state.hot_since + proof_time(at.with)))};
    return {};
}

// Waiting times and counts: they bind the policy only.
block must_wait(const context& at) {
    const auto& rails = at.with.rails;
    if (auto why = incident(at)) return why;
    if (at.state.quiet_until && at.now < *at.state.quiet_until)
        return {"cooldown",
                fmt::format("cooldown until {} after {} failed or refused moves",
                            text_of(*at.state.quiet_until),
                            at.state.failures)};
    const duration stay = min_stay_of(at.state, at.with);
    if (at.state.home_since && at.now - *at.state.home_since < stay)
        return {"min_stay",
                fmt::format("it stays at {} for at least {}, until {}",
                            to_string(at.state.home),
                            text_of(stay),
                            text_of(*at.state.home_since + stay))};
    if (at.fleet.moves_last_hour >= rails.moves_per_hour)
        return {"moves_per_hour",
                fmt::format("{} moves in the last hour, {} are allowed",
                            at.fleet.moves_last_hour,
                            rails.moves_per_hour)};
    return {};
}

}  // namespace

duration min_stay_of(const runbook_state& state, const settings& with) noexcept {
    const auto& rails = with.rails;
    return doubled(rails.min_stay, state.flaps, std::max(rails.min_stay, rails.cooldown_max));
}

duration cooldown_of(const runbook_state& state, const settings& with) noexcept {
    const auto& rails = with.rails;
    return doubled(
        rails.cooldown, state.failures - 1, std::max(rails.cooldown, rails.cooldown_max));
}

block why_blocked(const context& at, home_kind to, mover by) {
    if (auto why = pinned_elsewhere(at, to, by)) return why;
    if (auto why = no_target(at, to)) return why;
    if (by == mover::policy) {
        if (auto why = must_wait(at)) return why;
    }
    return too_many_running(at);
}

int incident_size(std::vector<time_point> hot_since, duration proof_time) {
    std::sort(hot_since.begin(), hot_since.end());
    std::ptrdiff_t largest = 0;
    auto first = hot_since.begin();
    for (auto last = hot_since.begin(); last != hot_since.end(); ++last) {
        while (*last - *first > proof_time)
            ++first;
        largest = std::max(largest, last - first + 1);
    }
    return static_cast<int>(largest);
}

int incident_size(std::vector<time_point> hot_since, const settings& with, time_point now) {
    std::erase_if(hot_since, [&](time_point at) { return now - at > with.rails.incident_hold; });
    return incident_size(std::move(hot_since), with);
}

int incident_size(std::vector<time_point> hot_since, const settings& with) {
    return incident_size(std::move(hot_since), proof_time(with));
}

}  // namespace hotlane::policy

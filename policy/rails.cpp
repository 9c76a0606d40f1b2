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

block pinned_elsewhere(const context& at,
                       const std::optional<pin>& pinned,
                       home_kind to,
                       mover by) {
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

std::optional<time_point> end_of(const freeze& one, time_point now) noexcept {
    using std::chrono::days;
    if (one.begins && one.ends) {
        if (now < *one.begins || now >= *one.ends) return std::nullopt;
        return one.ends;
    }
    const auto today = std::chrono::floor<days>(now);
    // Hours that go over midnight may have begun yesterday.
    for (const auto day : {today - days{1}, today}) {
        // 1970-01-01 was a Thursday, the fourth day of a week that begins on Monday.
        const auto weekday = (day.time_since_epoch().count() % 7 + 7 + 3) % 7;
        if ((one.days >> weekday & 1U) == 0) continue;
        const time_point begins = day + one.from;
        const time_point ends = one.to > one.from ? day + one.to : day + days{1} + one.to;
        if (now >= begins && now < ends) return ends;
    }
    return std::nullopt;
}

block frozen(const context& at) {
    for (const freeze& one : at.with.rails.freezes) {
        const auto until = end_of(one, at.now);
        if (!until) continue;
        return {"freeze",
                fmt::format("the calendar freezes moves until {}{}{}",
                            text_of(*until),
                            one.reason.empty() ? "" : ": ",
                            one.reason)};
    }
    return {};
}

block too_many_away(const context& at, home_kind to) {
    if (to == home_kind::engine || at.fleet.tools <= 0) return {};
    const int cap = away_cap(at.with, at.fleet.tools);
    if (at.fleet.tools_away < cap) return {};
    return {"away",
            fmt::format("{} of {} tools are away from the engine, {} may be",
                        at.fleet.tools_away,
                        at.fleet.tools,
                        cap)};
}

block too_much_held(const context& at) {
    const auto& rails = at.with.rails;
    if (rails.hold_budget <= duration{0}) return {};
    const duration held = held_lately(at.state, at.now);
    if (held + rails.hold_max <= rails.hold_budget) return {};
    return {"hold_budget",
            fmt::format("its clients were held for {} in 24 h; another move may hold them for {}, "
                        "and the budget is {}",
                        text_of(held),
                        text_of(rails.hold_max),
                        text_of(rails.hold_budget))};
}

// Waiting times and counts: they bind the policy only.
block must_wait(const context& at, home_kind to) {
    const auto& rails = at.with.rails;
    if (auto why = frozen(at)) return why;
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
    if (auto why = too_many_away(at, to)) return why;
    return too_much_held(at);
}

}  // namespace

std::optional<time_point> frozen_until(const std::vector<freeze>& all, time_point now) noexcept {
    std::optional<time_point> until;
    for (const freeze& one : all) {
        const auto ends = end_of(one, now);
        if (ends && (!until || *ends > *until)) until = ends;
    }
    return until;
}

int away_cap(const settings& with, int tools) noexcept {
    const auto by_share = static_cast<int>(with.rails.away_share * tools);
    return std::max(1, std::min({by_share, with.rails.away_max, tools - 1}));
}

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
    if (auto why = pinned_elsewhere(at, at.state.pinned, to, by)) return why;
    if (auto why = pinned_elsewhere(at, at.with.pinned, to, by)) return why;
    if (auto why = no_target(at, to)) return why;
    if (by == mover::policy) {
        if (auto why = must_wait(at, to)) return why;
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

#include "policy/window.hpp"

#include <algorithm>

namespace hotlane::policy {

namespace {

using counter = std::optional<std::uint64_t>;

bool fell(const counter& before, const counter& after) noexcept {
    return before && after && *after < *before;
}

bool fell(const traffic& before, const traffic& after) noexcept {
    return after.transactions < before.transactions ||
           after.write_transactions < before.write_transactions ||
           after.write_conflicts < before.write_conflicts ||
           after.hold_wait_us < before.hold_wait_us;
}

counter delta(const counter& before, const counter& after) noexcept {
    if (!before || !after || *after < *before) return std::nullopt;
    return *after - *before;
}

bool knows_lane(const sample& s) noexcept {
    return s.acquires && s.handoffs && s.wait_us;
}

window mark(window made, window_quality quality, std::string note) {
    made.quality = quality;
    made.note = std::move(note);
    return made;
}

window span_of(const reading& before, const reading& after) {
    window made;
    made.from = before.counters.taken_at;
    made.to = after.counters.taken_at;
    return made;
}

void add_traffic(window& made, const traffic& before, const traffic& after) noexcept {
    made.seen_writes = after.write_transactions - before.write_transactions;
    made.seen_conflicts = after.write_conflicts - before.write_conflicts;
    made.hold_wait_us = after.hold_wait_us - before.hold_wait_us;
}

// What spoils a window whatever the counters say; empty: nothing.
std::string why_reset(const reading& before, const reading& after) {
    const sample& a = before.counters;
    const sample& b = after.counters;
    if (a.link_generation != b.link_generation) return "the link to the source broke";
    if (fell(a.acquires, b.acquires) || fell(a.handoffs, b.handoffs) ||
        fell(a.wait_us, b.wait_us) || fell(a.commits, b.commits))
        return "a counter fell: the engine restarted";
    if (fell(a.committed_lsn, b.committed_lsn)) return "the LSN fell: not the same engine";
    if (fell(before.seen, after.seen)) return "hotlane's own counters fell: it restarted";
    return {};
}

std::string why_gap(const reading& before, const reading& after, const settings& with) {
    if (after.counters.own_work) return "hotlane's own work ran meanwhile";
    const auto length = after.counters.taken_at - before.counters.taken_at;
    if (length > with.window.length * 3 / 2) return "the sampler was late";
    return {};
}

// In a hot row somebody always wins and somebody else has waited; where nobody did either, the
// lane is stuck. A source that does not know commits is judged by its waits alone.
bool is_stuck(const window& made, std::uint64_t engine_wait_us, window_quality last) noexcept {
    if (engine_wait_us > 0 || made.commits.value_or(0) > 0) return false;
    if (last == window_quality::stalled) return true;
    return made.commits ? made.acquires > 0 : made.handoffs > 0;
}

}  // namespace

window make_window(const reading& before,
                   const reading& after,
                   const settings& with,
                   window_quality last) {
    window made = span_of(before, after);
    if (made.to <= made.from) return mark(made, window_quality::stale, "no newer sample");
    if (!knows_lane(before.counters) || !knows_lane(after.counters))
        return mark(made, window_quality::stale, "a counter is unknown");
    if (auto why = why_reset(before, after); !why.empty())
        return mark(made, window_quality::reset, std::move(why));

    made.acquires = *delta(before.counters.acquires, after.counters.acquires);
    made.handoffs = *delta(before.counters.handoffs, after.counters.handoffs);
    made.commits = delta(before.counters.commits, after.counters.commits);
    const auto engine_wait_us = *delta(before.counters.wait_us, after.counters.wait_us);
    add_traffic(made, before.seen, after.seen);
    made.wait_us = engine_wait_us + made.hold_wait_us;

    if (auto why = why_gap(before, after, with); !why.empty())
        return mark(made, window_quality::gap, std::move(why));
    if (is_stuck(made, engine_wait_us, last))
        return mark(made, window_quality::stalled, "nobody got through the lane");
    if (made.acquires < with.window.min_acquires)
        return mark(made, window_quality::idle, "fewer writes than min_acquires");
    return mark(made, window_quality::good, {});
}

window make_away_window(const reading& before, const reading& after, const settings& with) {
    window made = span_of(before, after);
    if (made.to <= made.from) return mark(made, window_quality::stale, "no newer sample");
    if (fell(before.seen, after.seen))
        return mark(made, window_quality::reset, "hotlane's own counters fell: it restarted");
    add_traffic(made, before.seen, after.seen);
    made.handoffs = delta(before.counters.handoffs, after.counters.handoffs).value_or(0);
    made.acquires = delta(before.counters.acquires, after.counters.acquires).value_or(0);
    made.wait_us = delta(before.counters.wait_us, after.counters.wait_us).value_or(0);
    if (auto why = why_gap(before, after, with); !why.empty())
        return mark(made, window_quality::gap, std::move(why));
    if (made.seen_writes < with.come_back.min_writes)
        return mark(made, window_quality::idle, "fewer writes than min_writes");
    return mark(made, window_quality::good, {});
}

window pool(const std::vector<window>& parts) {
    window sum;
    if (parts.empty()) return sum;
    sum.quality = window_quality::good;
    sum.from = parts.front().from;
    sum.to = parts.front().to;
    sum.commits = 0;
    for (const window& part : parts) {
        sum.from = std::min(sum.from, part.from);
        sum.to = std::max(sum.to, part.to);
        sum.acquires += part.acquires;
        sum.handoffs += part.handoffs;
        sum.wait_us += part.wait_us;
        sum.seen_writes += part.seen_writes;
        sum.seen_conflicts += part.seen_conflicts;
        sum.hold_wait_us += part.hold_wait_us;
        if (sum.commits && part.commits)
            *sum.commits += *part.commits;
        else
            sum.commits.reset();
    }
    return sum;
}

}  // namespace hotlane::policy

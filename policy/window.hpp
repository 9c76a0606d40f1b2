// Two readings of one tool make a window: what happened in between, and whether it may count.
//
//   stale    a counter is unknown in one of the two, or the reading is not newer
//   reset    a counter or the LSN fell, or the link to the source broke
//   gap      the sampler was late by more than half a window, or hotlane itself was at work
//   stalled  somebody asked for the lane and nobody got through: stuck, which is not calm
//   idle     fewer than min_acquires: too little to say anything
//   good     the only quality that counts for or against
#pragma once

#include "policy/settings.hpp"
#include "policy/types.hpp"

namespace hotlane::policy {

// Both sides at one moment: what the engine counted and what the data plane counted.
struct reading {
    sample counters;
    traffic seen;
};

// `last` is the quality of the window before: a stuck lane shows its acquires once and is silent
// afterwards, so silence after `stalled` is still `stalled`.
window make_window(const reading& before,
                   const reading& after,
                   const settings& with,
                   window_quality last = window_quality::idle);

// The same while the tool lives on PostgreSQL: its write transactions as the data plane saw them.
// The engine is silent because the tool left, so nothing of it is read (rule: silence is no proof).
// Lock waits of PostgreSQL, where known, are kept as evidence. good: at least min_writes.
window make_away_window(const reading& before, const reading& after, const settings& with);

// Sum of windows, for pooled rates. commits is known only if all of them know it.
window pool(const std::vector<window>& parts);

}  // namespace hotlane::policy

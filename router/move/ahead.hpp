// The way out, copied ahead: all tables while the tool works, and under the hold only those that
// changed since (ahead_sums.hpp: how that is known).
#pragma once

#include "router/move/job.hpp"

namespace hotlane::move {

// The phase `ahead`: rows copied and verified, nothing held but for the moment in which the count
// begins. Refuses where the pause that is left would not fit the budget.
outcome copy_ahead(active_move& m);
// Behind the renames of the fence, before hotlane writes anything else to the engine.
outcome count_at_fence(active_move& m);
// The phase `settle`: after the fence, what changed.
outcome settle_changes(active_move& m);

}  // namespace hotlane::move

// Links to real homes over libpq: non-blocking, each statement with a deadline. A statement whose
// reply did not come in time, or whose connection broke, has an unknown fate and ends the link.
#pragma once

#include <memory>
#include <string>

#include "router/move/link.hpp"
#include "router/move/step.hpp"
#include "router/placement/route.hpp"

namespace hotlane::move {

// Connects as the route's home says. `application_name` shows in pg_stat_activity.
answer<std::unique_ptr<home_link>> open_pq_link(const placement::home& at,
                                                std::chrono::milliseconds limit,
                                                stepper& steps);

}  // namespace hotlane::move

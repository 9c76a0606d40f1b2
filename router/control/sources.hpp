// The counter sources of real homes, for the sampler.
#pragma once

#include "router/control/sampler.hpp"

namespace hotlane::control {

// `budget`: the time-out of one reading.
open_counters real_sources(std::function<policy::time_point()> now, policy::duration budget);

}  // namespace hotlane::control

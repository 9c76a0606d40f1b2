// The counter sources of real homes, for the sampler.
#pragma once

#include "router/control/sampler.hpp"

namespace hotlane::control {

// `budget`: the time-out of one reading.
open_counters real_sources(std::function<policy::time_point()> now, policy::duration budget);

// The speed of the tool's PostgreSQL home, for forecasts; nothing: it cannot be measured.
std::optional<policy::postgres_model> measure_target(const config::tool& tool,
                                                     const config::model& model,
                                                     policy::duration budget);

}  // namespace hotlane::control

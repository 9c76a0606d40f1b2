// All that a step of the runbook looks at, in one place for a test to set.
#pragma once

#include "build.hpp"
#include "policy/runbook.hpp"

namespace hotlane::policy::testing {

struct situation {
    runbook_state state;
    settings with{short_settings()};
    event what;
    evidence seen;
    fleet_view fleet;
};

inline constexpr time_point now = t0 + duration{3'600'000};

}  // namespace hotlane::policy::testing

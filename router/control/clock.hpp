// The process's clock for the policy: wall time at the start plus monotonic time since, so that it
// never steps back and is comparable across restarts.
#pragma once

#include <chrono>

#include "policy/types.hpp"

namespace hotlane::control {

class steady_wall_clock {
  public:
    steady_wall_clock()
        : wall_(std::chrono::time_point_cast<policy::duration>(std::chrono::system_clock::now())),
          steady_(std::chrono::steady_clock::now()) {}

    [[nodiscard]] policy::time_point now() const {
        const auto since = std::chrono::steady_clock::now() - steady_;
        return wall_ + std::chrono::duration_cast<policy::duration>(since);
    }

  private:
    policy::time_point wall_;
    std::chrono::steady_clock::time_point steady_;
};

}  // namespace hotlane::control

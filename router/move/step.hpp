// The one place that every statement to a home and every journal write passes: the fault points.
#pragma once

#include <cstdint>
#include <string_view>

namespace hotlane::move {

class stepper {
  public:
    virtual ~stepper() = default;
    virtual void before(std::string_view what) = 0;  // nothing is sent yet
    virtual void sent(std::string_view what) = 0;    // sent, the reply not read
};

// What HOTLANE_CRASH_AT says: N (before the N-th step) or Nr (after it is sent). 0: never.
struct crash_point {
    std::uint64_t at{0};
    bool after_send{false};
};
crash_point read_crash_point(std::string_view text) noexcept;

// Counts the steps of this process and ends it with SIGKILL at HOTLANE_CRASH_AT. With
// HOTLANE_STEP_LOG=PATH each step is written there as `number what`, so that a test knows them all.
stepper& process_steps();

}  // namespace hotlane::move

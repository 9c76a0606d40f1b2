// The single writer slot of a database, and the counters that hotlane diagnoses by.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <list>
#include <mutex>

namespace hotlane::devengine {

struct lane_counters {
    std::uint64_t acquires{};
    std::uint64_t handoffs{};
    std::uint64_t wait_us{};
};

class lane {
  public:
    // An acquisition is counted when a writer asks, a handoff when it must wait, the wait when it
    // gets in. False: the lane was closed meanwhile.
    bool acquire();
    void release();
    void close();  // nobody gets in any more
    [[nodiscard]] lane_counters counters() const;

  private:
    struct waiter {
        bool granted{false};
        std::condition_variable changed;
    };
    mutable std::mutex mutex_;
    std::list<waiter*> queue_;
    bool busy_{false};
    bool closed_{false};
    std::uint64_t picks_{0};
    lane_counters counters_;
};

}  // namespace hotlane::devengine

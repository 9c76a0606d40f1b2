// What a running move shows of itself: the rows of the pass that it is in, and what it waits for.
// Never part of a decision. THREADS: the mover writes, anybody reads.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>

namespace hotlane::move {

class live_figures {
  public:
    using clock = std::chrono::steady_clock;

    struct view {
        std::string doing;           // "copying t"; empty: no pass over rows
        std::uint64_t rows{}, of{};  // of: 0 is unknown
        clock::duration took{};      // since the pass began
        std::string waits_for;       // empty: it works

        [[nodiscard]] std::optional<double> rows_per_second() const;
        [[nodiscard]] std::optional<double> rest_seconds() const;  // of this pass
    };

    // A pass over the rows of one table begins.
    void begin(std::string doing, std::uint64_t of);
    void end();
    void count(std::uint64_t rows = 1) noexcept {
        rows_.fetch_add(rows, std::memory_order_relaxed);
    }
    void wait_for(std::string what);
    [[nodiscard]] view now() const;

  private:
    mutable std::mutex mutex_;
    std::string doing_, waits_for_;
    std::uint64_t of_{};
    clock::time_point begun_{};
    std::atomic<std::uint64_t> rows_{0};
};

// A wait that is over when the block is left. `live` may be nullptr.
class shown_wait {
  public:
    shown_wait(live_figures* live, std::string what) : live_(live) {
        if (live_) live_->wait_for(std::move(what));
    }
    ~shown_wait() {
        if (live_) live_->wait_for({});
    }
    shown_wait(const shown_wait&) = delete;
    shown_wait& operator=(const shown_wait&) = delete;

  private:
    live_figures* live_;
};

// The same for a pass over rows.
class shown_pass {
  public:
    shown_pass(live_figures* live, std::string doing, std::uint64_t of) : live_(live) {
        if (live_) live_->begin(std::move(doing), of);
    }
    ~shown_pass() {
        if (live_) live_->end();
    }
    shown_pass(const shown_pass&) = delete;
    shown_pass& operator=(const shown_pass&) = delete;
    void count() noexcept {
        if (live_) live_->count();
    }

  private:
    live_figures* live_;
};

}  // namespace hotlane::move

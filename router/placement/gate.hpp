// The gate of one tool: transactions pass it, a hold closes it.
//
// Data plane: every transaction enters before its first byte goes to a home and leaves when the
// session owes nothing and is idle. Control plane: hold() closes the gate for new transactions,
// drain() waits until none is inside, release() opens it, first in, first out.
//
// The counter of transactions inside and the closed flag form a Dekker pair (seq_cst): a session
// that entered is seen by drain(), or it sees the hold. THREADS: any; callbacks run on the thread
// that calls release() or turn_away(), without a lock, in order, and must only post.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>

namespace hotlane::placement {

enum class wake_reason {
    released,   // go on, at the home that the route now names
    timed_out,  // the hold took longer than the waiter may wait
    shut,       // the tool is not served now
};

enum class entered { yes, held, full };

class gate {
  public:
    using wake = std::function<void(wake_reason)>;
    using ticket = std::uint64_t;

    // True: inside; call leave() exactly once. False: held, use wait().
    [[nodiscard]] bool try_enter() noexcept;
    void leave() noexcept;

    // Queues a waiter. `yes`: the gate was opened meanwhile and the caller is inside, `on_wake` is
    // dropped. `full`: the bound on waiters or bytes is hit. `held`: on_wake will be called once
    // (released: the waiter is already inside), unless cancelled.
    entered wait(std::uint64_t bytes, wake on_wake, ticket& out);
    // The waiter's client is gone or timed out. False: too late, on_wake has been or will be
    // called; if it says `released` the caller is inside and must leave().
    bool cancel(ticket which);

    // Control plane.
    void set_bounds(int waiters_max, std::uint64_t bytes_max);
    void hold();                      // idempotent
    void release();                   // wakes all waiters in order, each inside
    void turn_away(wake_reason why);  // wakes all waiters, none inside; the gate stays as it is
    [[nodiscard]] bool held() const noexcept;
    [[nodiscard]] std::int64_t inside() const noexcept;
    [[nodiscard]] std::size_t waiting() const;
    // Waits until nothing is inside. False: deadline passed. Only of meaning while held.
    bool drain(std::chrono::steady_clock::time_point deadline);

  private:
    struct waiter {
        std::uint64_t bytes;
        wake on_wake;
    };
    using queue = std::map<ticket, waiter>;  // tickets grow, so the order is that of arrival

    static void call(queue& woken, wake_reason why);

    std::atomic<std::int64_t> inside_{0};
    std::atomic<bool> held_{false};  // written under mutex_ only
    mutable std::mutex mutex_;
    std::condition_variable drained_;
    queue waiters_;
    std::uint64_t waiting_bytes_{0};
    ticket next_ticket_{1};
    int waiters_max_{1'000};
    std::uint64_t bytes_max_{64 * 1024 * 1024};
};

}  // namespace hotlane::placement

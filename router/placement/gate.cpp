#include "router/placement/gate.hpp"

#include <algorithm>
#include <utility>

namespace hotlane::placement {

bool gate::try_enter() noexcept {
    if (held_.load()) return false;
    // Dekker: say "inside" first, then look at the flag again. hold() sets the flag first and then
    // looks at the counter, so at least one of the two sees the other.
    inside_.fetch_add(1);
    if (!held_.load()) return true;
    leave();
    return false;
}

void gate::leave() noexcept {
    if (inside_.fetch_sub(1) != 1 || !held_.load()) return;
    // Taking the mutex closes the gap between drain()'s look at the counter and its sleep.
    { const std::lock_guard lock(mutex_); }
    drained_.notify_all();
}

entered gate::wait(std::uint64_t bytes, wake on_wake, ticket& out) {
    const std::lock_guard lock(mutex_);
    if (!held_.load()) {  // cannot change under the mutex
        inside_.fetch_add(1);
        return entered::yes;
    }
    if (waiters_.size() >= static_cast<std::size_t>(waiters_max_)) return entered::full;
    if (bytes > bytes_max_ - std::min(bytes_max_, waiting_bytes_)) return entered::full;
    out = next_ticket_++;
    waiting_bytes_ += bytes;
    waiters_.emplace_hint(waiters_.end(), out, waiter{bytes, std::move(on_wake)});
    return entered::held;
}

bool gate::cancel(ticket which) {
    wake dropped;  // destroyed after the lock: it may own the caller
    const std::lock_guard lock(mutex_);
    const auto found = waiters_.find(which);
    if (found == waiters_.end()) return false;
    waiting_bytes_ -= found->second.bytes;
    dropped = std::move(found->second.on_wake);
    waiters_.erase(found);
    return true;
}

void gate::set_bounds(int waiters_max, std::uint64_t bytes_max) {
    const std::lock_guard lock(mutex_);
    waiters_max_ = std::max(0, waiters_max);
    bytes_max_ = bytes_max;
}

void gate::hold() {
    const std::lock_guard lock(mutex_);
    held_.store(true);
}

void gate::release() {
    queue woken;
    {
        const std::lock_guard lock(mutex_);
        woken.swap(waiters_);
        waiting_bytes_ = 0;
        // The waiters are inside before anybody can hold again: a drain waits for them too.
        inside_.fetch_add(static_cast<std::int64_t>(woken.size()));
        held_.store(false);
    }
    call(woken, wake_reason::released);
}

void gate::turn_away(wake_reason why) {
    queue woken;
    {
        const std::lock_guard lock(mutex_);
        woken.swap(waiters_);
        waiting_bytes_ = 0;
    }
    call(woken, why == wake_reason::released ? wake_reason::shut : why);
}

void gate::call(queue& woken, wake_reason why) {
    for (auto& [id, each] : woken)
        each.on_wake(why);
}

bool gate::held() const noexcept {
    return held_.load();
}

std::int64_t gate::inside() const noexcept {
    return inside_.load();
}

std::size_t gate::waiting() const {
    const std::lock_guard lock(mutex_);
    return waiters_.size();
}

bool gate::drain(std::chrono::steady_clock::time_point deadline) {
    std::unique_lock lock(mutex_);
    return drained_.wait_until(lock, deadline, [this] { return inside_.load() <= 0; });
}

}  // namespace hotlane::placement

#include "tests/devengine/lane.hpp"

#include <chrono>
#include <iterator>

namespace hotlane::devengine {

namespace {

constexpr std::uint64_t picks_per_oldest = 4;  // so that nobody waits for ever

}  // namespace

bool lane::acquire() {
    std::unique_lock lock(mutex_);
    ++counters_.acquires;
    if (!busy_ && !closed_) {
        busy_ = true;
        return true;
    }
    ++counters_.handoffs;
    const auto asked = std::chrono::steady_clock::now();
    waiter self;
    queue_.push_back(&self);
    self.changed.wait(lock, [&] { return self.granted || closed_; });
    if (!self.granted) {
        queue_.remove(&self);
        return false;
    }
    const auto waited = std::chrono::steady_clock::now() - asked;
    counters_.wait_us += static_cast<std::uint64_t>(
        std::chrono::duration_cast<std::chrono::microseconds>(waited).count());
    return true;
}

void lane::release() {
    const std::lock_guard lock(mutex_);
    if (queue_.empty()) {
        busy_ = false;
        return;
    }
    // Unfair, as measured: mostly the newest waiter gets in. Its snapshot is the freshest, which is
    // why some updates of a hot row succeed at all under sixteen writers.
    const bool oldest = ++picks_ % picks_per_oldest == 0;
    const auto next = oldest ? queue_.begin() : std::prev(queue_.end());
    (*next)->granted = true;
    waiter& chosen = **next;
    queue_.erase(next);
    chosen.changed.notify_one();  // the others sleep on: waking all would cost the lane its time
}

void lane::close() {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    for (waiter* one : queue_)
        one->changed.notify_one();
}

lane_counters lane::counters() const {
    const std::lock_guard lock(mutex_);
    return counters_;
}

}  // namespace hotlane::devengine

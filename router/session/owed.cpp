#include "router/session/owed.hpp"

namespace hotlane::session {
namespace {

// Below this many read entries moving the rest costs more than the memory is worth.
constexpr std::size_t compact_at = 256;

}  // namespace

void owed_queue::pop() {
    entries_[head_] = owed{};  // lets go of what the entry shared
    ++head_;
    if (head_ == entries_.size()) {
        clear();
    } else if (head_ >= compact_at && head_ >= entries_.size() / 2) {
        entries_.erase(entries_.begin(), entries_.begin() + static_cast<std::ptrdiff_t>(head_));
        head_ = 0;
    }
}

void owed_queue::erase(std::size_t index) {
    entries_.erase(entries_.begin() + static_cast<std::ptrdiff_t>(head_ + index));
    if (head_ == entries_.size()) clear();
}

void owed_queue::clear() {
    entries_.clear();
    head_ = 0;
}

}  // namespace hotlane::session

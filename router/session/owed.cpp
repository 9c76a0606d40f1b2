#include "router/session/owed.hpp"

#include <utility>

namespace hotlane::session {
namespace {

// Below this many read entries moving the rest costs more than the memory is worth.
constexpr std::size_t compact_at = 256;

// Memory for entries, the thread's: an idle session holds none.
constexpr std::size_t spares_max = 16;
constexpr std::size_t kept_max = 1'024;

std::vector<std::vector<owed>>& spares() {
    thread_local std::vector<std::vector<owed>> all;
    return all;
}

}  // namespace

void owed_queue::push(owed entry) {
    if (entries_.capacity() == 0 && !spares().empty()) {
        entries_ = std::move(spares().back());
        spares().pop_back();
    }
    entries_.push_back(std::move(entry));
}

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
    if (entries_.capacity() == 0) return;
    std::vector<owed> memory;
    memory.swap(entries_);
    if (memory.capacity() <= kept_max && spares().size() < spares_max)
        spares().push_back(std::move(memory));
}

}  // namespace hotlane::session

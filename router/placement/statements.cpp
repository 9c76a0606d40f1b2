#include "router/placement/statements.hpp"

#include <algorithm>

namespace hotlane::placement {

void statement_book::set_bounds(const bounds& with) {
    const std::lock_guard lock(mutex_);
    with_ = with;
}

statement_book::kept statement_book::see(std::uint64_t fingerprint,
                                         std::string_view sql,
                                         std::span<const std::uint32_t> types,
                                         policy::time_point now) {
    const std::lock_guard lock(mutex_);
    if (sql.size() > with_.sample_bytes || with_.statements == 0) {
        ++too_long_;
        return kept::too_long;
    }
    const bool is_new = entries_.count(fingerprint) == 0;
    const bool is_full = is_new && entries_.size() >= with_.statements;
    if (is_full) make_room();
    auto& at = entries_[fingerprint];
    if (is_new) at.order = next_++;
    at.what.fingerprint = fingerprint;
    at.what.sql.assign(sql);
    at.what.types.assign(types.begin(), types.end());
    at.what.at = now;
    return is_full ? kept::another_went : kept::yes;
}

void statement_book::make_room() {
    const auto oldest =
        std::min_element(entries_.begin(), entries_.end(), [](const auto& a, const auto& b) {
            return a.second.what.at < b.second.what.at;
        });
    if (oldest == entries_.end()) return;
    entries_.erase(oldest);
    ++evicted_;
}

std::vector<seen_statement> statement_book::lately(policy::time_point now) const {
    const std::lock_guard lock(mutex_);
    std::vector<const entry*> found;
    for (const auto& [fingerprint, one] : entries_)
        if (now - one.what.at <= with_.lately) found.push_back(&one);
    std::sort(found.begin(), found.end(), [](const entry* a, const entry* b) {
        return a->order < b->order;
    });
    std::vector<seen_statement> out;
    out.reserve(found.size());
    for (const auto* one : found)
        out.push_back(one->what);
    return out;
}

std::uint64_t statement_book::evicted() const {
    const std::lock_guard lock(mutex_);
    return evicted_;
}

std::uint64_t statement_book::too_long() const {
    const std::lock_guard lock(mutex_);
    return too_long_;
}

}  // namespace hotlane::placement

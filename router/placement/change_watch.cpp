#include "router/placement/change_watch.hpp"

#include <algorithm>

namespace hotlane::placement {
namespace {

std::string lower(std::string text) {
    for (char& c : text)
        if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    return text;
}

}  // namespace

std::uint64_t change_watch::begin(const std::vector<std::string>& tables) {
    const std::lock_guard lock(mutex_);
    tables_.clear();
    for (const auto& name : tables)
        tables_.push_back(lower(name));
    seen_ = {};
    seen_.changed.assign(tables.size(), false);
    number_ = ++last_;
    return last_;
}

void change_watch::end() {
    const std::lock_guard lock(mutex_);
    number_ = 0;
    tables_.clear();
    seen_ = {};
}

void change_watch::forget(std::size_t table) {
    const std::lock_guard lock(mutex_);
    if (table < seen_.changed.size()) seen_.changed[table] = false;
}

void change_watch::take(const report& one) {
    const std::lock_guard lock(mutex_);
    if (one.watch == 0 || one.watch != number_) return;
    seen_.commits += one.commits;
    seen_.doubt = seen_.doubt || one.doubt;
    seen_.ddl = seen_.ddl || one.ddl;
    bool all = one.everything;
    for (const auto& name : one.tables) {
        bool known = false;
        const auto wanted = lower(name);
        for (std::size_t i = 0; i < tables_.size(); ++i) {
            if (tables_[i] != wanted) continue;
            seen_.changed[i] = known = true;
        }
        all = all || !known;
    }
    if (all) seen_.changed.assign(tables_.size(), true);
}

change_watch::figures change_watch::now() const {
    const std::lock_guard lock(mutex_);
    return seen_;
}

}  // namespace hotlane::placement

#include "router/control/evidence.hpp"

#include <algorithm>

namespace hotlane::control {

void evidence::add(const placement::observation& seen) {
    if (seen.what != placement::observation::kind::conflict) return;
    if (!seen.table.empty()) count(seen.table);
    if (seen.sql.empty()) return;
    const auto text = seen.sql.substr(0, with_.sample_bytes);
    const auto same = std::find_if(
        samples_.begin(), samples_.end(), [&](const sample& s) { return s.sql == text; });
    if (same != samples_.end()) samples_.erase(same);
    samples_.push_front({seen.table, text});
    if (samples_.size() > with_.samples) samples_.pop_back();
}

void evidence::clear() {
    conflicts_.clear();
    samples_.clear();
}

void evidence::count(const std::string& table) {
    const auto found = conflicts_.find(table);
    if (found != conflicts_.end()) {
        if (++found->second < with_.fade_at) return;
        for (auto it = conflicts_.begin(); it != conflicts_.end();) {
            it->second /= 2;
            it = it->second == 0 ? conflicts_.erase(it) : std::next(it);
        }
        return;
    }
    if (conflicts_.size() >= with_.tables) {
        // The new one takes the place of the smallest, with its count: a table that is really hot
        // gets in and stays (space-saving).
        const auto least = std::min_element(
            conflicts_.begin(), conflicts_.end(), [](const auto& a, const auto& b) {
                return a.second < b.second;
            });
        const auto inherited = least->second;
        conflicts_.erase(least);
        conflicts_.emplace(table, inherited + 1);
        return;
    }
    conflicts_.emplace(table, 1);
}

std::vector<evidence::table_count> evidence::tables() const {
    std::uint64_t all = 0;
    for (const auto& [table, n] : conflicts_)
        all += n;
    std::vector<table_count> out;
    out.reserve(conflicts_.size());
    for (const auto& [table, n] : conflicts_)
        out.push_back({table, n, static_cast<double>(n) / static_cast<double>(all)});
    std::stable_sort(out.begin(), out.end(), [](const auto& a, const auto& b) {
        return a.conflicts > b.conflicts;
    });
    return out;
}

std::optional<std::string> evidence::hot_table() const {
    const auto ranked = tables();
    if (ranked.empty() || ranked.front().share <= 0.5) return std::nullopt;
    return ranked.front().table;
}

std::vector<std::string> evidence::samples() const {
    const auto hot = hot_table();
    std::vector<std::string> out;
    for (const auto& s : samples_) {
        if (!hot || s.table == *hot) out.push_back(s.sql);
    }
    return out;
}

}  // namespace hotlane::control

#include "router/control/fleet.hpp"

#include <algorithm>
#include <vector>

#include "policy/verdict.hpp"

namespace hotlane::control {

void fleet::remember_move(policy::time_point started) {
    const std::lock_guard lock(mutex_);
    starts_.push_back(started);
    if (starts_.size() > starts_max) starts_.pop_front();
}

void fleet::move_submitted(policy::time_point at) {
    remember_move(at);
    const std::lock_guard lock(mutex_);
    ++running_;
}

void fleet::move_ended() {
    const std::lock_guard lock(mutex_);
    --running_;
}

void fleet::set_hot(const std::string& tool, std::optional<policy::time_point> since) {
    const std::lock_guard lock(mutex_);
    if (since) {
        hot_[tool] = *since;
    } else {
        hot_.erase(tool);
    }
}

void fleet::set_storage(const std::string& tool, const std::string& storage) {
    const std::lock_guard lock(mutex_);
    storages_[tool] = storage;
}

std::string fleet::storage_of(const std::string& tool) const {
    const auto known = storages_.find(tool);
    return known == storages_.end() ? std::string{} : known->second;
}

void fleet::set_home(const std::string& tool, policy::home_kind home) {
    const std::lock_guard lock(mutex_);
    homes_[tool] = home;
}

void fleet::set_share(const std::string& tool, std::optional<policy::neighbour_view> share) {
    const std::lock_guard lock(mutex_);
    if (share) {
        shares_[tool] = *share;
    } else {
        shares_.erase(tool);
    }
}

namespace {

// Rates are pooled: a tool that writes much counts for more.
std::optional<policy::neighbour_view> pooled(const std::vector<policy::neighbour_view>& shares) {
    policy::neighbour_view out;
    double handoffs = 0;
    double wait = 0;
    for (const auto& share : shares) {
        ++out.tools;
        out.acquires_per_s += share.acquires_per_s;
        handoffs += share.acquires_per_s * share.handoff_rate;
        wait += share.acquires_per_s * share.handoff_rate * share.mean_wait_us;
    }
    if (out.tools == 0) return std::nullopt;
    if (out.acquires_per_s > 0) out.handoff_rate = handoffs / out.acquires_per_s;
    if (handoffs > 0) out.mean_wait_us = wait / handoffs;
    return out;
}

}  // namespace

policy::fleet_view fleet::view(const std::string& tool,
                               bool has_target,
                               const policy::settings& with,
                               policy::time_point now) const {
    const std::lock_guard lock(mutex_);
    const auto storage = storage_of(tool);
    std::vector<policy::time_point> hot_since;
    for (const auto& [one, since] : hot_)
        if (storage_of(one) == storage) hot_since.push_back(since);
    std::vector<policy::neighbour_view> neighbours;
    for (const auto& [one, share] : shares_)
        if (one != tool && storage_of(one) == storage) neighbours.push_back(share);
    policy::fleet_view out;
    out.moves_running = running_;
    out.moves_last_hour = static_cast<int>(
        std::count_if(starts_.begin(), starts_.end(), [now](policy::time_point at) {
            return now - at < std::chrono::hours(1);
        }));
    out.tools_hot_together = policy::incident_size(hot_since, with, now);
    out.has_target = has_target;
    out.tools = static_cast<int>(homes_.size());
    out.tools_away =
        static_cast<int>(std::count_if(homes_.begin(), homes_.end(), [](const auto& h) {
            return h.second == policy::home_kind::postgres;
        }));
    out.neighbours = pooled(neighbours);
    return out;
}

int fleet::moves_running() const {
    const std::lock_guard lock(mutex_);
    return running_;
}

}  // namespace hotlane::control

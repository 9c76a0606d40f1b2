#include "router/control/fleet.hpp"

#include <algorithm>

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

policy::fleet_view fleet::view(bool has_target,
                               const policy::settings& with,
                               policy::time_point now) const {
    const std::lock_guard lock(mutex_);
    std::vector<policy::time_point> hot_since;
    hot_since.reserve(hot_.size());
    for (const auto& [tool, since] : hot_)
        hot_since.push_back(since);
    policy::fleet_view out;
    out.moves_running = running_;
    out.moves_last_hour = static_cast<int>(
        std::count_if(starts_.begin(), starts_.end(), [now](policy::time_point at) {
            return now - at < std::chrono::hours(1);
        }));
    out.tools_hot_together = policy::incident_size(hot_since, with, now);
    out.has_target = has_target;
    return out;
}

int fleet::moves_running() const {
    const std::lock_guard lock(mutex_);
    return running_;
}

}  // namespace hotlane::control

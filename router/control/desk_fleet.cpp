// What a desk tells the others of its tool, what it asks of them, and what it keeps for a replay.
#include "policy/recording.hpp"
#include "router/control/desk.hpp"

namespace hotlane::control {

void desk::tell_fleet() {
    const auto& state = policy_.state();
    all_.set_storage(name(), entry_->settings.engine.storage);
    all_.set_hot(name(), policy::heat_since(state));
    const bool is_going = state.at == policy::stage::moving_out;
    all_.set_home(name(), is_going ? policy::home_kind::postgres : state.home);
    all_.set_share(name(), engine_share());
}

std::optional<policy::neighbour_view> desk::engine_share() const {
    const auto& state = policy_.state();
    if (state.home != policy::home_kind::engine || state.windows.empty()) return std::nullopt;
    const auto& last = state.windows.back();
    const double seconds = std::chrono::duration<double>(last.to - last.from).count();
    if (last.quality != policy::window_quality::good || seconds <= 0) return std::nullopt;
    return policy::neighbour_view{1,
                                  static_cast<double>(last.acquires) / seconds,
                                  last.handoff_rate().value_or(0.0),
                                  last.mean_wait_us().value_or(0.0)};
}

bool desk::is_hot() const {
    const std::lock_guard lock(mutex_);
    return policy_.state().hot_since.has_value();
}

policy::fleet_view desk::others() const {
    auto out = all_.view(
        name(), entry_->settings.postgres.has_value(), policy_.current_settings(), in_.now());
    out.target = target_;
    return out;
}

void desk::set_target(std::optional<policy::postgres_model> measured) {
    const std::lock_guard lock(mutex_);
    target_ = measured;
}

// What replay needs to come to the same decisions.
void desk::record_sample(policy::home_kind home,
                         const policy::sample& counters,
                         const policy::traffic& seen,
                         const std::vector<policy::write_interval>& writes) const {
    if (in_.record == nullptr) return;
    std::string lines;
    for (const auto& one : writes)
        lines += policy::recorded_line(name(), one);
    lines += policy::recorded_line(name(), home, counters, seen);
    in_.record->add(lines);
}

}  // namespace hotlane::control

// What a desk answers about its tool, and the settings it is given.
#include "router/control/desk.hpp"

namespace hotlane::control {

std::string desk::why_not(policy::home_kind to) const {
    const std::lock_guard lock(mutex_);
    const auto now = in_.now();
    const policy::event what{policy::event_kind::order, to, "", "", {}};
    const auto seen = policy_.evidence_at(now);
    const auto fleet_now = others();
    const policy::context at{
        policy_.current_settings(), policy_.state(), what, seen, fleet_now, now};
    return policy::why_blocked(at, to, policy::mover::operator_order).text;
}

std::string desk::not_stored() const {
    const std::lock_guard lock(mutex_);
    return not_stored_;
}

void desk::take_over() {
    {
        const std::lock_guard lock(mutex_);
        restore();
    }
    const auto route = entry_->current();
    if (route->served) home_found(route->at.kind);
}

void desk::save() {
    const std::lock_guard lock(mutex_);
    save_state();
}

void desk::set_settings(policy::settings with) {
    const std::lock_guard lock(mutex_);
    policy_.set_settings(std::move(with));
    set_retry();
}

policy::settings desk::settings() const {
    const std::lock_guard lock(mutex_);
    return policy_.current_settings();
}

tool_view desk::view() const {
    const std::lock_guard lock(mutex_);
    tool_view out;
    out.entry = entry_;
    out.route = entry_->current();
    out.settings = policy_.current_settings();
    out.state = policy_.state();
    out.window = policy_.last_window();
    out.verdict = policy_.last_verdict();
    out.sampling = sampling_;
    out.hot_tables = evidence_.tables();
    out.samples = evidence_.samples();
    out.explain = policy_.explain_now(in_.now());
    out.evidence_now = policy_.evidence_at(in_.now());
    out.engine = policy_.engine_model();
    out.moves_ended = moves_ended_;
    out.windows_by_quality = windows_;
    out.engine_up = engine_up_;
    out.postgres_up = postgres_up_;
    return out;
}

}  // namespace hotlane::control

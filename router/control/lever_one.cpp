#include "router/control/desk.hpp"

namespace hotlane::control {

// Lever 1 is the data plane's to pull: by the policy's word, or while the runbook is at work on a
// tool that it may act on.
void desk::set_retry() {
    const auto& with = policy_.current_settings();
    const auto& rule = with.levers.retry;
    using when = policy::settings::retry_when;
    const auto at = policy_.state().at;
    const bool at_work = at == policy::stage::flagged || at == policy::stage::sharding ||
                         at == policy::stage::remeasuring || at == policy::stage::would_move ||
                         at == policy::stage::moving_out;
    const bool flagged =
        rule.when == when::flagged && with.act_mode == policy::mode::act && at_work;
    auto& now = entry_->retry;
    now.attempts = rule.attempts;
    now.time_ms = rule.time.count();
    now.pause_first_ms = rule.pause_first.count();
    now.pause_max_ms = rule.pause_max.count();
    now.bytes_max = rule.size;
    now.on = rule.when == when::always || flagged;
}

}  // namespace hotlane::control

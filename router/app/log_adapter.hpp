// The control plane speaks in JSON fields, the log in its own: this joins them.
#pragma once

#include "metrics/log.hpp"
#include "router/control/parts.hpp"

namespace hotlane::app {

// `to` must outlive the result.
control::event_log log_into(metrics::event_log& to);

}  // namespace hotlane::app

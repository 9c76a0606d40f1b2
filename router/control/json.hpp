// The control plane's values as JSON: one shape for log, journal, API and command line. Times are
// seconds since 1970 (fractions: milliseconds); an unknown value is null, never 0.
#pragma once

#include <string>

#include <nlohmann/json.hpp>
#include <tl/expected.hpp>

#include "policy/decision.hpp"
#include "policy/state.hpp"
#include "router/control/mover.hpp"
#include "router/placement/store.hpp"

namespace hotlane::control {

nlohmann::json to_json(policy::time_point at);
nlohmann::json to_json(const std::optional<policy::time_point>& at);
nlohmann::json to_json(const policy::window& w);
nlohmann::json to_json(const policy::decision& made);
nlohmann::json to_json(const policy::pin& pinned);
nlohmann::json to_json(const move::report& ended);
nlohmann::json to_json(const placement::move_record& record);
nlohmann::json to_json(const order& given);

// The runbook's state for the store, and back.
nlohmann::json to_json(const policy::runbook_state& state);
tl::expected<policy::runbook_state, std::string> state_from_json(const nlohmann::json& body);

}  // namespace hotlane::control

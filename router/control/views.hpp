// What the API shows, as JSON. `hotlane -o json` prints it as it is.
#pragma once

#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "router/control/controller.hpp"

namespace hotlane::control {

inline constexpr std::string_view schema = "hotlane/v1";

nlohmann::json status_json(controller& at);
nlohmann::json tool_json(controller& at, const tool_view& tool);  // one line of `hotlane tools`
nlohmann::json tool_detail_json(controller& at, const tool_view& tool);  // `hotlane where`
nlohmann::json explain_json(controller& at, const tool_view& tool);
nlohmann::json moves_json(controller& at, const std::vector<placement::move_record>& records);

// What a person could do next about this tool, as commands.
std::vector<std::string> next_steps(const tool_view& tool);

}  // namespace hotlane::control

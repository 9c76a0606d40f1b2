// `hotlane explain TOOL`: how a tool stands, on what evidence, and what could be done, in words.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "router/control/desk.hpp"

namespace hotlane::control {

inline constexpr std::size_t explained_decisions = 2;

// `decisions`: newest first, as stored.
std::string explain_text(const tool_view& tool, const nlohmann::json& decisions);

// Recipes for lever 2 where the hot statement is known: [{name, title, why, text}].
nlohmann::json recipes_json(const tool_view& tool);
// Whether lever 2 can help, in words; empty: nothing is known.
std::string lever2_text(const tool_view& tool);

}  // namespace hotlane::control

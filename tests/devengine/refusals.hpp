// What the engine's dialect lacks.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tests/devengine/tokens.hpp"

namespace hotlane::devengine {

// Why a statement of these tokens is refused, or nothing.
std::optional<std::string> why_refused(const std::vector<token>& tokens);

}  // namespace hotlane::devengine

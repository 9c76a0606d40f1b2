// What SHOW answers, and what the engine's catalog tells of its tables.
#pragma once

#include <string>
#include <string_view>

#include "tests/devengine/session.hpp"

namespace hotlane::devengine {

result<cursor> answer_show(const std::string& name, const database& home, sqlite3* handle);

// A view does not stop CREATE TABLE IF NOT EXISTS of its name: the statement that makes way.
std::string shadow_view(sqlite3* handle, const std::string& name);

}  // namespace hotlane::devengine

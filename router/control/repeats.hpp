// DDL that says again what was said: what applications do at each start.
#pragma once

#include <string>
#include <vector>

namespace hotlane::control {

// CREATE .. IF NOT EXISTS once more, with nothing altered or dropped in between, changes nothing.
bool repeats(const std::vector<std::string>& kept, const std::string& sql);

}  // namespace hotlane::control

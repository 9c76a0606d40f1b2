// `hotlane run`: the process, from its configuration to its last drained session.
#pragma once

#include <string>

namespace hotlane::app {

int run(const std::string& config_path);

}  // namespace hotlane::app

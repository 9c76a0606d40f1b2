// `hotlane check FILE`: is this configuration good, and what is in force.
#pragma once

#include <string>

#include "router/app/output.hpp"

namespace hotlane::app {

int check(const std::string& path, bool effective, format as);

}  // namespace hotlane::app

// `hotlane check FILE`: is this configuration good, what is in force, what is true of it already.
#pragma once

#include <string>

#include "router/app/commands.hpp"

namespace hotlane::app {

struct check_options {
    bool effective{false};
    bool live{false};  // asks the running hotlane what it has measured
};
int check(const std::string& path, check_options what, const client_options& with);

}  // namespace hotlane::app

// What a reload may change while hotlane runs, and what needs a restart. Pure.
#pragma once

#include <string>
#include <vector>

#include "config/model.hpp"

namespace hotlane::control {

struct reload_plan {
    config::model next;  // the old model with what can be applied
    std::vector<std::string> policies_changed;
    std::vector<config::tool> tools_added;
    std::vector<std::string> needs_restart;  // paths of keys
};

// Of policies, tools and homes as they are in force: equal at sidecars that decide alike, whatever
// else their files say.
std::string policy_hash(const config::model& of);

reload_plan plan_reload(const config::model& now, const config::model& wanted);

}  // namespace hotlane::control

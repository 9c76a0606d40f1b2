// The configuration in effect as YAML that the loader accepts again: every key, its value and, as a
// comment, where it was written (file:line, or default). Secrets are shown as references only.
#pragma once

#include <string>

#include "config/load.hpp"

namespace hotlane::config {

std::string print_effective(const loaded& config);

}  // namespace hotlane::config

// One problem of a configuration file: where, what, how to mend it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "config/model.hpp"

namespace hotlane::config {

enum class severity { error, warning };

struct problem {
    location where;
    severity level{severity::error};
    std::string path;     // tools[2].engine.port
    std::string message;  // "5" needs a unit
    std::string mend;     // for example 5s or 5m
};

// file:line:column: error: path: message, mend, then the source line and a caret. An empty line is
// left out, which is how the loader hides lines that may hold a secret.
std::string render(const problem& p, std::string_view source_line);

}  // namespace hotlane::config

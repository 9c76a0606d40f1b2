// A host name to one numeric address, within a deadline. Numeric addresses come back unchanged.
#pragma once

#include "metrics/pg_link.hpp"

namespace hotlane::metrics {

sourced<std::string> resolve(const std::string& host, deadline until);

}  // namespace hotlane::metrics

// A request target ("/api/v1/tools/a%20b?limit=5") as segments and query values.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hotlane::admin {

struct target {
    std::vector<std::string> segments;
    std::map<std::string, std::string> query;
};

// nullopt: not a path, or a broken percent escape.
std::optional<target> parse_target(std::string_view text);

// Percent-encodes one path segment or query value.
std::string encode_segment(std::string_view text);

}  // namespace hotlane::admin

#include "router/control/repeats.hpp"

#include <strings.h>

#include <string_view>

namespace hotlane::control {

namespace {

bool creates(const std::string& sql) {
    constexpr std::string_view word = "create";
    const auto first = sql.find_first_not_of(" \t\r\n");
    return first != std::string::npos &&
           ::strncasecmp(sql.c_str() + first, word.data(), word.size()) == 0;
}

}  // namespace

bool repeats(const std::vector<std::string>& kept, const std::string& sql) {
    if (!creates(sql)) return false;
    for (auto it = kept.rbegin(); it != kept.rend() && creates(*it); ++it) {
        if (*it == sql) return true;
    }
    return false;
}

}  // namespace hotlane::control

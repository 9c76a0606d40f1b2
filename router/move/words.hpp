// Expressions of a schema as they are compared with key words. PURE.
#pragma once

#include <strings.h>

#include <string>
#include <string_view>

namespace hotlane::move {

// Without the blanks and parentheses around it.
inline std::string bare(std::string_view text) {
    while (!text.empty() && (text.front() == ' ' || text.front() == '('))
        text.remove_prefix(1);
    while (!text.empty() && (text.back() == ' ' || text.back() == ')'))
        text.remove_suffix(1);
    return std::string(text);
}

inline bool same_word(const std::string& a, const char* b) {
    return ::strcasecmp(a.c_str(), b) == 0;
}

}  // namespace hotlane::move

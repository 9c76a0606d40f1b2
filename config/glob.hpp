// Globs of match rules: * is any text, ? one character. An empty glob matches anything.
#pragma once

#include <string_view>

#include "config/model.hpp"

namespace hotlane::config {

bool glob_matches(std::string_view glob, std::string_view text) noexcept;

// Does `wide` match all that `narrow` matches? Never a wrong yes; a rare no where yes were true.
bool glob_covers(std::string_view wide, std::string_view narrow) noexcept;
bool rule_covers(const match_rule& wide, const match_rule& narrow) noexcept;

}  // namespace hotlane::config

// The shape of a text: its tokens without white space, comments and the values of literals, lists
// of literals collapsed. Texts of one shape have the same facts, apart from byte ranges and from
// what a literal sets (SET, set_config). Works for both dialects, also where the parser does not.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "router/sql/lexer.hpp"

namespace hotlane::sql {

std::string shape_of(std::string_view sql, const std::vector<token>& tokens);
// The same, into memory that is used again.
void shape_of(std::string_view sql, const std::vector<token>& tokens, std::string& out);
// FNV-1a of the shape; never 0 for a text that has tokens.
std::uint64_t fingerprint_of(std::string_view shape);

}  // namespace hotlane::sql

// Which row does a one-row write change? Read from the tokens, so it costs no parse on the path of
// a statement whose shape is known. What is not certain is not known.
//
// A WHERE that is only column = value, joined by AND: the values of the columns that the statement
// does not set name the row (a version that is compared and set does not). Two statements that name
// one row by different columns are not found to be one; that is the limit of reading text.
#pragma once

#include <string_view>
#include <vector>

#include "router/sql/facts.hpp"
#include "router/sql/lexer.hpp"

namespace hotlane::sql {

// Sets key_from, key and key_parameters of a statement that was analysed already.
void find_row_key(std::string_view sql, const std::vector<token>& tokens, statement& of);

// Goes on hashing `text`; begin with row_hash_begin.
inline constexpr std::uint64_t row_hash_begin = 14'695'981'039'346'656'037ULL;
std::uint64_t row_hash(std::uint64_t hash, std::string_view text) noexcept;

}  // namespace hotlane::sql

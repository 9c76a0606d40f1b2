// The two ways to a statement's facts, and what they share. Private to router/sql.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "router/sql/facts.hpp"
#include "router/sql/lexer.hpp"

namespace hotlane::sql {

// A half-open range of tokens: one statement.
struct token_span {
    std::size_t first{};
    std::size_t last{};
};

// The statements between the semicolons outside parentheses; empty ones are left out.
std::vector<token_span> split(const std::vector<token>& tokens);

// From PostgreSQL's parser: all statements of the text, ranges unset beyond what the parser says;
// nothing if it refuses the text.
std::optional<std::vector<statement>> parsed_statements(std::string_view sql,
                                                        const std::vector<token>& tokens);
// From the words alone.
statement lexical_statement(std::string_view sql,
                            const std::vector<token>& tokens,
                            token_span span);

struct analysis {
    facts found;
    std::string shape;
    // Texts of this shape have these facts, with their own byte range (one statement, nothing that
    // depends on a literal).
    bool shape_decides{false};
};
analysis analyze_tokens(std::string_view sql, const std::vector<token>& tokens, std::string shape);

}  // namespace hotlane::sql

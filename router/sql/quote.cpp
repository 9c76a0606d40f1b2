#include <cassert>

#include "router/sql/facts.hpp"
#include "router/sql/lexer.hpp"

namespace hotlane::sql {
namespace {

std::string doubled(std::string_view text, char quote) {
    assert(text.find('\0') == std::string_view::npos);
    std::string out;
    out.reserve(text.size() + 2);
    out.push_back(quote);
    for (const char c : text) {
        if (c == quote) out.push_back(quote);
        out.push_back(c);
    }
    out.push_back(quote);
    return out;
}

}  // namespace

std::optional<std::pair<std::size_t, std::size_t>> name_position(std::string_view statement) {
    const auto tokens = tokenize(statement);
    std::size_t at = 1;
    if (tokens.size() > 2 && is_word(statement, tokens[0], "deallocate") &&
        is_word(statement, tokens[1], "prepare"))
        at = 2;
    if (tokens.size() <= at) return std::nullopt;
    const bool is_name = tokens[at].what == lexeme::word || tokens[at].what == lexeme::quoted;
    if (!is_name) return std::nullopt;
    return std::pair<std::size_t, std::size_t>(tokens[at].begin, tokens[at].end);
}

std::string quote_identifier(std::string_view name) {
    return doubled(name, '"');
}
std::string quote_literal(std::string_view text) {
    return doubled(text, '\'');
}

}  // namespace hotlane::sql

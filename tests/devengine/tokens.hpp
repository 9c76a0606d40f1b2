// A statement's tokens. Enough of the lexer to find where statements end and what they begin with.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace hotlane::devengine {

enum class token_kind { word, quoted, text, number, parameter, symbol, comment, refused };

struct token {
    token_kind kind{};
    std::string_view text;
    bool space_before{false};

    // Keywords compare without case; quoted identifiers are never keywords.
    [[nodiscard]] bool is(std::string_view keyword) const noexcept;
    [[nodiscard]] bool is_symbol(std::string_view symbol) const noexcept {
        return kind == token_kind::symbol && text == symbol;
    }
    [[nodiscard]] bool is_name() const noexcept {
        return kind == token_kind::word || kind == token_kind::quoted;
    }
    [[nodiscard]] std::string name() const;  // without quotes
};

std::vector<token> tokenize(std::string_view sql);

// The statements of a simple Query, cut at semicolons outside quotes and comments.
std::vector<std::vector<token>> split_statements(std::string_view script);

std::string upper(std::string_view text);

}  // namespace hotlane::devengine

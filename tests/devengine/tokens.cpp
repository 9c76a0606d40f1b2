#include "tests/devengine/tokens.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

namespace hotlane::devengine {

namespace {

bool is_space(char c) {
    return std::isspace(static_cast<unsigned char>(c)) != 0;
}
bool is_digit(char c) {
    return std::isdigit(static_cast<unsigned char>(c)) != 0;
}
bool starts_word(char c) {
    return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_' ||
           static_cast<unsigned char>(c) >= 0x80;
}
bool goes_on_word(char c) {
    return starts_word(c) || is_digit(c) || c == '$';
}

template <typename Predicate>
std::size_t while_true(std::string_view sql, std::size_t at, Predicate holds) {
    while (at < sql.size() && holds(sql[at]))
        ++at;
    return at;
}

// The end of a quoted run, where a doubled quote stands for itself.
std::size_t end_of_quoted(std::string_view sql, std::size_t at) {
    const char quote = sql[at++];
    while (at < sql.size()) {
        if (sql[at] != quote) {
            ++at;
        } else if (at + 1 < sql.size() && sql[at + 1] == quote) {
            at += 2;
        } else {
            return at + 1;
        }
    }
    return at;
}

std::size_t end_of_block_comment(std::string_view sql, std::size_t at) {
    const auto end = sql.find("*/", at + 2);
    return end == std::string_view::npos ? sql.size() : end + 2;
}

std::size_t end_of_number(std::string_view sql, std::size_t at) {
    at = while_true(sql, at, [](char c) { return is_digit(c) || c == '.'; });
    if (at < sql.size() && (sql[at] == 'e' || sql[at] == 'E')) {
        std::size_t exponent = at + 1;
        if (exponent < sql.size() && (sql[exponent] == '+' || sql[exponent] == '-')) ++exponent;
        if (exponent < sql.size() && is_digit(sql[exponent]))
            return while_true(sql, exponent, is_digit);
    }
    return at;
}

std::size_t end_of_symbol(std::string_view sql, std::size_t at) {
    static constexpr std::array<std::string_view, 8> doubles{
        "::", "<=", ">=", "<>", "!=", "||", "->", "=="};
    const auto two = sql.substr(at, 2);
    return at + (std::find(doubles.begin(), doubles.end(), two) != doubles.end() ? 2U : 1U);
}

// E'..', x'..', B'..' and $$..$$ are literals of other dialects, which the engine refuses.
std::pair<token_kind, std::size_t> next_token(std::string_view sql, std::size_t at) {
    const char c = sql[at];
    const char after = at + 1 < sql.size() ? sql[at + 1] : '\0';
    if (c == '-' && after == '-')
        return {token_kind::comment, std::min(sql.find('\n', at), sql.size())};
    if (c == '/' && after == '*') return {token_kind::comment, end_of_block_comment(sql, at)};
    if (c == '\'') return {token_kind::text, end_of_quoted(sql, at)};
    if (c == '"') return {token_kind::quoted, end_of_quoted(sql, at)};
    if (after == '\'' && std::string_view("eExXbB").find(c) != std::string_view::npos)
        return {token_kind::refused, end_of_quoted(sql, at + 1)};
    if (c == '$' && is_digit(after))
        return {token_kind::parameter, while_true(sql, at + 1, is_digit)};
    if (c == '$') return {token_kind::refused, sql.size()};
    if (starts_word(c)) return {token_kind::word, while_true(sql, at, goes_on_word)};
    if (is_digit(c) || (c == '.' && is_digit(after)))
        return {token_kind::number, end_of_number(sql, at)};
    return {token_kind::symbol, end_of_symbol(sql, at)};
}

}  // namespace

std::string upper(std::string_view text) {
    std::string result(text);
    std::transform(result.begin(), result.end(), result.begin(), [](unsigned char c) {
        return static_cast<char>(std::toupper(c));
    });
    return result;
}

bool token::is(std::string_view keyword) const noexcept {
    return kind == token_kind::word && text.size() == keyword.size() &&
           std::equal(text.begin(), text.end(), keyword.begin(), [](char a, char b) {
               return std::toupper(static_cast<unsigned char>(a)) == b;
           });
}

std::string token::name() const {
    if (kind != token_kind::quoted) return std::string(text);
    std::string plain;
    for (std::size_t i = 1; i + 1 < text.size(); ++i) {
        plain.push_back(text[i]);
        if (text[i] == '"') ++i;
    }
    return plain;
}

std::vector<token> tokenize(std::string_view sql) {
    std::vector<token> tokens;
    std::size_t at = 0;
    while (at < sql.size()) {
        const auto begin = while_true(sql, at, is_space);
        if (begin == sql.size()) break;
        const auto [kind, end] = next_token(sql, begin);
        tokens.push_back({kind, sql.substr(begin, end - begin), begin != at});
        at = end;
    }
    return tokens;
}

std::vector<std::vector<token>> split_statements(std::string_view script) {
    std::vector<std::vector<token>> statements(1);
    for (const auto& t : tokenize(script)) {
        if (t.is_symbol(";"))
            statements.emplace_back();
        else
            statements.back().push_back(t);
    }
    std::erase_if(statements, [](const auto& tokens) { return tokens.empty(); });
    return statements;
}

}  // namespace hotlane::devengine

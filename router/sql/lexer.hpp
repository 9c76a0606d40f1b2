// The lexical rules of SQL text, once, for everything in this folder: PostgreSQL's quotes ('..',
// E'..', "..", $tag$..$tag$), nested comments, numbers, parameters, operators; on request also the
// engine dialect's `..` and [..] identifiers. Total: any bytes give tokens; what is unterminated
// becomes one `bad` token to the end. Assumes standard_conforming_strings = on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hotlane::sql {

enum class lexeme : std::uint8_t {
    word,       // identifier or keyword, not quoted
    quoted,     // quoted identifier
    string,     // any string literal
    number,     // unsigned
    parameter,  // $1, ?
    open,       // (
    close,      // )
    comma,
    semicolon,
    dot,
    op,   // a run of operator characters, or [ ] :
    bad,  // unterminated quote or comment, a control character, NUL
};

struct token {
    lexeme what{lexeme::bad};
    std::uint32_t begin{};
    std::uint32_t end{};
};

enum class dialect : std::uint8_t {
    postgres,  // ` and [ are operators
    engine,    // ` and [ quote identifiers
    backtick,  // ` quotes identifiers, [ is an operator
};

std::vector<token> tokenize(std::string_view sql, dialect rules = dialect::postgres);
// The same, into memory that is used again.
void tokenize(std::string_view sql, std::vector<token>& into, dialect rules = dialect::postgres);

// Whether `sql` is `known` with other values in its plain literals ('..' and what begins with a
// digit); then `into` gets the tokens of `sql`. Says no too often rather than wrongly: a byte that
// differs anywhere else, a comment included, is enough. `tokens`: of `known`, dialect postgres.
bool differs_in_literals_only(std::string_view known,
                              const std::vector<token>& tokens,
                              std::string_view sql,
                              std::vector<token>& into);

// The identifier that a word or quoted token stands for: words in lower case, quotes undone.
std::string identifier(std::string_view sql, const token& t);
inline std::string_view text_of(std::string_view sql, const token& t) {
    return sql.substr(t.begin, t.end - t.begin);
}
// True if the token is this word, which must be given in lower case.
bool is_word(std::string_view sql, const token& t, std::string_view lower);
std::string lower_case(std::string_view text);  // ASCII only, as PostgreSQL folds UTF-8 names

}  // namespace hotlane::sql

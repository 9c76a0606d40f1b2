#include <algorithm>

#include "router/sql/analysis.hpp"
#include "router/sql/shape.hpp"

namespace hotlane::sql {
namespace {

// The parser's ranges include white space and comments around a statement: snap to its tokens.
void snap(std::string_view sql, const std::vector<token>& tokens, statement& s) {
    const auto first = std::lower_bound(
        tokens.begin(), tokens.end(), s.begin, [](const token& t, std::uint32_t at) {
            return t.begin < at;
        });
    auto begin = first;
    while (begin != tokens.end() && begin->what == lexeme::semicolon)
        ++begin;
    const auto behind = std::lower_bound(
        begin, tokens.end(), s.end, [](const token& t, std::uint32_t at) { return t.begin < at; });
    auto last = behind;
    while (last != begin && std::prev(last)->what == lexeme::semicolon)
        --last;
    if (begin != last) {
        s.begin = begin->begin;
        s.end = std::prev(last)->end;
    }
    const auto text = sql.substr(s.begin, s.end - s.begin);
    if (s.parameter && s.parameter->sql.empty()) s.parameter->sql = std::string(text);
    if (s.what != kind::other || begin == last) return;
    for (const std::string_view word :
         {"create", "alter", "drop", "comment", "grant", "revoke", "security", "import"})
        if (is_word(sql, *begin, word)) s.what = kind::ddl;
}

// One statement by itself, where the whole text was refused.
statement piece(std::string_view sql,
                const std::vector<token>& tokens,
                token_span span,
                bool& parsed) {
    const std::uint32_t begin = tokens[span.first].begin;
    const std::string_view text = sql.substr(begin, tokens[span.last - 1].end - begin);
    const std::vector<token> own = tokenize(text);
    auto found = parsed_statements(text, own);
    if (found && found->size() == 1) {
        statement s = std::move(found->front());
        snap(text, own, s);
        s.begin += begin;
        s.end += begin;
        return s;
    }
    parsed = false;
    return lexical_statement(sql, tokens, span);
}

// The code of a DO block is a literal, too.
bool depends_on_literals(const statement& s, bool is_block) {
    return s.parameter.has_value() || s.changes_session || s.names_isolation || is_block;
}

facts unparsed(std::string_view sql) {
    facts out;
    const std::vector<token> tokens = tokenize(sql, dialect::backtick);
    const std::vector<token_span> spans = split(tokens);
    out.parsed = spans.size() > 1;  // what is one statement has been refused already
    for (const token_span span : spans) {
        if (spans.size() > 1) {
            out.statements.push_back(piece(sql, tokens, span, out.parsed));
        } else {
            out.statements.push_back(lexical_statement(sql, tokens, span));
        }
    }
    return out;
}

}  // namespace

std::vector<token_span> split(const std::vector<token>& tokens) {
    std::vector<token_span> out;
    std::size_t depth = 0;
    std::size_t first = 0;
    for (std::size_t i = 0; i <= tokens.size(); ++i) {
        const bool at_end = i == tokens.size();
        if (!at_end && tokens[i].what == lexeme::open) ++depth;
        if (!at_end && tokens[i].what == lexeme::close && depth > 0) --depth;
        if (!at_end && (tokens[i].what != lexeme::semicolon || depth > 0)) continue;
        if (i > first) out.push_back({first, i});
        first = i + 1;
    }
    return out;
}

analysis analyze_tokens(std::string_view sql, const std::vector<token>& tokens, std::string shape) {
    analysis out;
    out.shape = std::move(shape);
    if (auto statements = parsed_statements(sql, tokens)) {
        out.found.parsed = true;
        out.found.statements = std::move(*statements);
        for (statement& s : out.found.statements)
            snap(sql, tokens, s);
    } else {
        out.found = unparsed(sql);
    }
    if (!tokens.empty()) out.found.fingerprint = fingerprint_of(out.shape);
    const auto first = std::find_if(
        tokens.begin(), tokens.end(), [](const token& t) { return t.what != lexeme::semicolon; });
    const bool is_block = first != tokens.end() && is_word(sql, *first, "do");
    out.shape_decides = out.found.parsed && out.found.statements.size() == 1 &&
                        !depends_on_literals(out.found.statements.front(), is_block);
    return out;
}

facts analyze(std::string_view sql) {
    const std::vector<token> tokens = tokenize(sql);
    return analyze_tokens(sql, tokens, shape_of(sql, tokens)).found;
}

std::vector<std::string> split_statements(std::string_view script) {
    const std::vector<token> tokens = tokenize(script, dialect::backtick);
    std::vector<std::string> out;
    for (const token_span span : split(tokens)) {
        const std::uint32_t begin = tokens[span.first].begin;
        out.emplace_back(script.substr(begin, tokens[span.last - 1].end - begin));
    }
    return out;
}

}  // namespace hotlane::sql

#include "tests/devengine/refusals.hpp"

#include <algorithm>
#include <array>
#include <string_view>

namespace hotlane::devengine {

namespace {

using tokens_view = const std::vector<token>&;

std::string unsupported(std::string_view what) {
    return "unsupported statement: " + std::string(what);
}

bool names_a_relation(const token& t) {
    return t.is("FROM") || t.is("JOIN") || t.is("INTO") || t.is("UPDATE") || t.is("TABLE") ||
           t.is("EXISTS");
}

// `public.t`: a name after FROM and its kin that goes on with a point.
bool has_schema(tokens_view tokens) {
    for (std::size_t i = 0; i + 2 < tokens.size(); ++i)
        if (names_a_relation(tokens[i]) && tokens[i + 1].is_name() && tokens[i + 2].is_symbol("."))
            return true;
    return false;
}

bool names_the_catalog(const token& t) {
    if (!t.is_name()) return false;
    const auto name = upper(t.name());
    return name.starts_with("PG_") || name.starts_with("SQLITE_") || name.starts_with("PRAGMA_") ||
           name == "INFORMATION_SCHEMA";
}

// `SET a = (SELECT ..)` of an UPDATE; a subquery after FROM or WHERE is fine.
bool has_subquery_in_set(tokens_view tokens) {
    if (!tokens.front().is("UPDATE")) return false;
    int depth = 0;
    bool in_set = false;
    for (std::size_t i = 0; i < tokens.size(); ++i) {
        const auto& t = tokens[i];
        if (t.is_symbol("(")) ++depth;
        if (t.is_symbol(")")) --depth;
        if (depth == 0 && t.is("SET")) in_set = true;
        if (depth == 0 && (t.is("FROM") || t.is("WHERE") || t.is("RETURNING"))) in_set = false;
        if (in_set && depth > 0 && t.is("SELECT")) return true;
    }
    return false;
}

bool has_row_lock(tokens_view tokens) {
    for (std::size_t i = 0; i + 1 < tokens.size(); ++i) {
        const auto& next = tokens[i + 1];
        if (tokens[i].is("FOR") &&
            (next.is("UPDATE") || next.is("SHARE") || next.is("NO") || next.is("KEY")))
            return true;
    }
    return false;
}

bool has_window(tokens_view tokens) {
    for (std::size_t i = 1; i + 1 < tokens.size(); ++i)
        if (tokens[i].is("OVER") && tokens[i - 1].is_symbol(")")) return true;
    return false;
}

bool is_known_verb(const token& t) {
    static constexpr std::array<std::string_view, 26> verbs{
        "SELECT",    "VALUES",  "WITH",  "INSERT", "UPDATE",  "DELETE", "CREATE",   "DROP",
        "ALTER",     "TABLE",   "BEGIN", "START",  "COMMIT",  "END",    "ROLLBACK", "ABORT",
        "SAVEPOINT", "RELEASE", "SHOW",  "SET",    "DISCARD", "LISTEN", "UNLISTEN"};
    return std::any_of(
        verbs.begin(), verbs.end(), [&](auto verb) { return !verb.empty() && t.is(verb); });
}

bool is_known_object(tokens_view tokens) {
    const auto& verb = tokens.front();
    if (!verb.is("CREATE") && !verb.is("DROP") && !verb.is("ALTER")) return true;
    if (tokens.size() < 2) return false;
    const auto& object = tokens[1];
    if (object.is("TABLE")) return true;
    if (verb.is("ALTER")) return false;
    if (object.is("UNIQUE")) return verb.is("CREATE") && tokens.size() > 2 && tokens[2].is("INDEX");
    return object.is("VIEW") || object.is("INDEX");
}

}  // namespace

std::optional<std::string> why_refused(const std::vector<token>& tokens) {
    if (tokens.back().kind == token_kind::comment) return unsupported("trailing comment");
    const auto first = std::find_if(
        tokens.begin(), tokens.end(), [](const token& t) { return t.kind != token_kind::comment; });
    const auto any = [&](token_kind kind) {
        return std::any_of(first, tokens.end(), [&](const token& t) { return t.kind == kind; });
    };
    if (any(token_kind::refused)) return unsupported("literal");
    if (first->is_symbol("(")) return std::nullopt;
    if (!is_known_verb(*first)) return unsupported(first->text);
    if (first->is("SET") || first->is("SHOW")) return std::nullopt;
    const std::vector<token> rest(first, tokens.end());
    if (!is_known_object(rest))
        return unsupported(rest.size() > 1 ? rest[1].text : rest.front().text);
    for (const auto& t : rest)
        if (names_the_catalog(t)) return unsupported(t.text);
    if (has_schema(rest)) return unsupported("schema-qualified name");
    if (has_subquery_in_set(rest)) return unsupported("subquery in SET");
    if (has_row_lock(rest)) return unsupported("FOR UPDATE");
    if (has_window(rest)) return unsupported("window function");
    const auto without =
        std::find_if(rest.begin(), rest.end(), [](const token& t) { return t.is("WITHOUT"); });
    if (without != rest.end() && std::next(without) != rest.end() &&
        std::next(without)->is("ROWID"))
        return unsupported("WITHOUT ROWID");
    return std::nullopt;
}

}  // namespace hotlane::devengine

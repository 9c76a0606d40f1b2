#include "router/sql/rehearse.hpp"

#include <algorithm>
#include <set>

#include "router/sql/facts.hpp"
#include "router/sql/lexer.hpp"
#include "router/sql/shape.hpp"
#include "router/sql/tree.hpp"

namespace hotlane::sql {
namespace {

constexpr std::size_t shown_bytes_max = 300;
constexpr std::size_t certain_bytes = 3;  // a shorter value is only hidden where it is quoted

void replace_all(std::string& text, const std::string& what, std::string_view with) {
    for (auto at = text.find(what); at != text.npos; at = text.find(what, at + with.size()))
        text.replace(at, what.size(), with);
}

// The value that a string token stands for, as far as a message would quote it.
std::string value_of(std::string_view sql, const token& t) {
    std::string_view text = text_of(sql, t);
    const auto first = text.find('\'');
    if (t.what != lexeme::string || first == text.npos || text.back() != '\'')
        return std::string(text);
    text = text.substr(first + 1, text.size() - first - 2);
    std::string out;
    for (std::size_t i = 0; i < text.size(); ++i) {
        out.push_back(text[i]);
        if (text[i] == '\'' && i + 1 < text.size() && text[i + 1] == '\'') ++i;
    }
    return out;
}

// All relations of the statement that are not names of its own WITH.
std::vector<const PgQuery__RangeVar*> relations_in(const PgQuery__ParseResult& tree) {
    std::vector<const PgQuery__RangeVar*> found;
    std::set<std::string_view> own;
    walk(&tree.base, [&](const ProtobufCMessage* m) {
        if (const auto* r = as<PgQuery__RangeVar>(m, pg_query__range_var__descriptor))
            found.push_back(r);
        if (const auto* c =
                as<PgQuery__CommonTableExpr>(m, pg_query__common_table_expr__descriptor))
            own.insert(c->ctename);
        return true;
    });
    std::erase_if(found, [&](const PgQuery__RangeVar* r) {
        return std::string_view(r->schemaname).empty() && own.count(r->relname) > 0;
    });
    return found;
}

// The token of the relation's own name: behind its schema, where one is named.
const token* name_token(const PgQuery__RangeVar& r, const std::vector<token>& tokens) {
    const auto begin = static_cast<std::uint32_t>(std::max(0, r.location));
    auto at = std::lower_bound(
        tokens.begin(), tokens.end(), begin, [](const token& t, std::uint32_t where) {
            return t.begin < where;
        });
    if (at == tokens.end()) return nullptr;
    while (std::distance(at, tokens.end()) > 2 && std::next(at)->what == lexeme::dot)
        std::advance(at, 2);
    return &*at;
}

struct edit {
    std::uint32_t begin, end;
    std::string text;
};

// `t.c` where t is a table under its own name: the first name goes along.
void edit_columns(const PgQuery__ParseResult& tree,
                  std::string_view sql,
                  const std::vector<token>& tokens,
                  const std::map<std::string, std::string>& bare,
                  std::vector<edit>& edits) {
    walk(&tree.base, [&](const ProtobufCMessage* m) {
        const auto* c = as<PgQuery__ColumnRef>(m, pg_query__column_ref__descriptor);
        if (c == nullptr || c->n_fields != 2) return true;
        const auto to = bare.find(std::string(string_of(c->fields[0])));
        if (to == bare.end()) return true;
        const auto begin = static_cast<std::uint32_t>(c->location);
        for (const token& t : tokens)
            if (t.begin == begin && identifier(sql, t) == to->first)
                edits.push_back({t.begin, t.end, quote_identifier(to->second)});
        return true;
    });
}

}  // namespace

std::string shown(std::string_view sql) {
    auto text = shape_of(sql, tokenize(sql));
    if (!text.empty()) text.erase(0, 1);  // every token is written with a space before it
    if (text.size() <= shown_bytes_max) return text;
    std::size_t cut = shown_bytes_max;
    while (cut > 0 && (static_cast<unsigned char>(text[cut]) & 0xC0U) == 0x80U)
        --cut;
    return text.substr(0, cut) + "...";
}

std::string without_values(std::string_view message, std::string_view sql) {
    std::string out(message);
    for (const token& t : tokenize(sql)) {
        if (t.what != lexeme::string && t.what != lexeme::number && t.what != lexeme::bad) continue;
        const std::string value = value_of(sql, t);
        if (value.empty()) continue;
        replace_all(out, '"' + value + '"', "\"?\"");
        if (value.size() >= certain_bytes) replace_all(out, value, "?");
    }
    return out;
}

std::optional<std::vector<std::string>> relations_of(std::string_view sql) {
    const auto tree = parse(sql, tokenize(sql));
    if (!tree) return std::nullopt;
    std::vector<std::string> out;
    for (const auto* r : relations_in(*tree)) {
        auto name = relation_name(r);
        if (std::find(out.begin(), out.end(), name) == out.end()) out.push_back(std::move(name));
    }
    return out;
}

std::optional<std::string> with_tables(std::string_view sql,
                                       const std::map<std::string, std::string>& names) {
    const auto tokens = tokenize(sql);
    const auto tree = parse(sql, tokens);
    if (!tree) return std::nullopt;
    std::vector<edit> edits;
    std::map<std::string, std::string> bare;
    for (const auto* r : relations_in(*tree)) {
        const auto to = names.find(r->relname);
        if (to == names.end()) continue;
        const token* at = name_token(*r, tokens);
        if (at == nullptr || identifier(sql, *at) != to->first) return std::nullopt;
        edits.push_back({at->begin, at->end, quote_identifier(to->second)});
        if (r->alias == nullptr) bare.insert(*to);
    }
    edit_columns(*tree, sql, tokens, bare, edits);
    std::sort(
        edits.begin(), edits.end(), [](const edit& a, const edit& b) { return a.begin > b.begin; });
    std::string out(sql);
    auto last = static_cast<std::uint32_t>(sql.size());
    for (const auto& e : edits) {
        if (e.end > last) continue;  // the same place twice
        out.replace(e.begin, e.end - e.begin, e.text);
        last = e.begin;
    }
    return out;
}

}  // namespace hotlane::sql

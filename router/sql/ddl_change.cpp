#include "router/sql/ddl_change.hpp"

#include <algorithm>

namespace hotlane::sql {
namespace {

bool mentions(std::string_view expression, std::string_view name) {
    const std::vector<token> tokens = tokenize(expression, dialect::engine);
    return std::any_of(tokens.begin(), tokens.end(), [&](const token& t) {
        const bool named = t.what == lexeme::word || t.what == lexeme::quoted;
        return named && identifier(expression, t) == name;
    });
}

// The expression with one column called otherwise; function names stay.
std::string renamed(const std::string& expression, std::string_view from, std::string_view to) {
    const std::vector<token> tokens = tokenize(expression, dialect::engine);
    std::string out;
    std::size_t copied = 0;
    for (std::size_t i = 0; i < tokens.size(); ++i) {
        const token& t = tokens[i];
        if (t.what != lexeme::word && t.what != lexeme::quoted) continue;
        const bool called = i + 1 < tokens.size() && tokens[i + 1].what == lexeme::open;
        if (called || identifier(expression, t) != from) continue;
        out.append(expression, copied, t.begin - copied);
        out.append(quote_identifier(to));
        copied = t.end;
    }
    out.append(expression, copied);
    return out;
}

std::string own_columns(const std::string& foreign_key) {
    return foreign_key.substr(0, foreign_key.find(')'));
}

// A REFERENCES clause, alone or in a foreign key, names this table.
bool refers_to(const std::string& text, std::string_view table) {
    const std::size_t clause = lower_case(text).find("references");
    return clause != std::string::npos && mentions(text.substr(clause), table);
}

column_definition* find_column(table_definition& table, std::string_view name) {
    const auto at = std::find_if(table.columns.begin(),
                                 table.columns.end(),
                                 [&](const column_definition& c) { return c.name == name; });
    return at == table.columns.end() ? nullptr : &*at;
}

bool contains(const std::vector<std::string>& names, std::string_view name) {
    return std::find(names.begin(), names.end(), name) != names.end();
}

// As PostgreSQL does: constraints that involve the column go with it.
void drop_column(table_definition& table, const std::string& name) {
    const auto involves = [&](const std::string& text) { return mentions(text, name); };
    std::erase_if(table.columns, [&](const column_definition& c) { return c.name == name; });
    if (contains(table.primary_key, name)) table.primary_key.clear();
    std::erase_if(table.uniques, [&](const auto& columns) { return contains(columns, name); });
    std::erase_if(table.checks, involves);
    std::erase_if(table.foreign_keys,
                  [&](const std::string& key) { return mentions(own_columns(key), name); });
    for (column_definition& c : table.columns)
        std::erase_if(c.checks, involves);
}

bool rename_column(schema_definition& schema,
                   table_definition& table,
                   const std::string& from,
                   const std::string& to,
                   const std::string& written) {
    column_definition* column = find_column(table, from);
    if (column == nullptr || find_column(table, to) != nullptr) return false;
    column->name = to;
    column->written_name = written;
    std::replace(table.primary_key.begin(), table.primary_key.end(), from, to);
    for (auto& columns : table.uniques)
        std::replace(columns.begin(), columns.end(), from, to);
    for (std::string& check : table.checks)
        check = renamed(check, from, to);
    for (column_definition& c : table.columns)
        for (std::string& check : c.checks)
            check = renamed(check, from, to);
    // Texts that this reader keeps but does not take apart.
    const auto involves = [&](const std::string& text) { return mentions(text, from); };
    return !is_referenced(schema, table.name) &&
           std::none_of(table.foreign_keys.begin(), table.foreign_keys.end(), involves) &&
           std::none_of(table.not_understood.begin(), table.not_understood.end(), involves);
}

bool rename_table(schema_definition& schema, table_definition& table, const qualified_name& to) {
    const std::string from = table.name;
    if (to.name.empty() || find_table(schema, to.name) != nullptr) return false;
    const bool referenced = is_referenced(schema, from);
    const auto involves = [&](const std::string& text) { return mentions(text, from); };
    const bool qualified = std::any_of(table.checks.begin(), table.checks.end(), involves);
    table.name = to.name;
    table.written_name = to.written;
    return !referenced && !qualified;
}

bool rename(cursor& at, schema_definition& schema, table_definition& table) {
    if (at.skip({"to"})) return rename_table(schema, table, read_name(at)) && at.at_end();
    if (at.is("constraint") && at.is("to", 2)) return true;  // names of constraints are not kept
    if (!at.skip({"column"}) && at.is("to")) return false;
    const std::string from = at.name();
    if (!at.skip({"to"})) return false;
    const std::string written = at.written();
    const std::string to = at.name();
    return !to.empty() && rename_column(schema, table, from, to, written) && at.at_end();
}

bool add(cursor& at, table_definition& table) {
    if (starts_table_constraint(at)) {
        read_table_constraint(at, table);
        return true;
    }
    at.skip({"column"});
    if (at.skip({"if", "not", "exists"})) {
        const std::size_t from = at.place();
        if (find_column(table, at.name()) != nullptr) {
            at.to_element_end();
            return true;
        }
        at.go_back(from);
    }
    const std::size_t before = table.columns.size();
    read_column(at, table);
    return table.columns.size() == before + 1;
}

bool drop(cursor& at, table_definition& table) {
    if (at.is("constraint")) return false;  // which one it is, nobody has kept
    at.skip({"column"});
    const bool if_exists = at.skip({"if", "exists"});
    const std::string name = at.name();
    if (at.is_any({"cascade", "restrict"})) at.next();
    if (find_column(table, name) == nullptr) return if_exists;
    drop_column(table, name);
    return true;
}

bool alter_column(cursor& at, table_definition& table) {
    at.skip({"column"});
    column_definition* column = find_column(table, at.name());
    if (column == nullptr) return false;
    if (at.skip({"set", "default"})) {
        column->default_expression = read_expression(at);
    } else if (at.skip({"drop", "default"})) {
        column->default_expression.reset();
    } else if (at.skip({"set", "not", "null"})) {
        column->not_null = true;
    } else if (at.skip({"drop", "not", "null"})) {
        column->not_null = false;
    } else if (at.skip({"type"}) || at.skip({"set", "data", "type"})) {
        const std::size_t from = at.place();
        while (!at.at_end() && !at.is(lexeme::comma) && !at.is("using") && !at.is("collate"))
            at.next_balanced();
        column->type = at.since(from);
        if (at.is("using")) at.to_element_end();
    } else {
        return false;
    }
    return true;
}

bool alter_one(cursor& at, table_definition& table) {
    if (at.skip({"add"})) return add(at, table);
    if (at.skip({"drop"})) return drop(at, table);
    if (at.skip({"alter"})) return alter_column(at, table);
    return false;
}

}  // namespace

bool is_referenced(const schema_definition& schema, std::string_view table) {
    return std::any_of(schema.tables.begin(), schema.tables.end(), [&](const table_definition& t) {
        const bool by_column =
            std::any_of(t.columns.begin(), t.columns.end(), [&](const column_definition& c) {
                return c.references && refers_to(*c.references, table);
            });
        return by_column || std::any_of(t.foreign_keys.begin(),
                                        t.foreign_keys.end(),
                                        [&](const auto& key) { return refers_to(key, table); });
    });
}

void drop_references(schema_definition& schema, std::string_view table) {
    for (table_definition& t : schema.tables) {
        for (column_definition& c : t.columns)
            if (c.references && refers_to(*c.references, table)) c.references.reset();
        std::erase_if(t.foreign_keys, [&](const auto& key) { return refers_to(key, table); });
    }
}

bool alter_table(cursor& at, schema_definition& schema) {
    const bool if_exists = at.skip({"if", "exists"});
    at.skip({"only"});
    table_definition* table = find_table(schema, read_name(at).name);
    if (table == nullptr) return if_exists;
    if (at.skip({"rename"})) return rename(at, schema, *table);
    do {
        if (!alter_one(at, *table)) return false;
    } while (at.skip(lexeme::comma));
    return at.at_end();
}

}  // namespace hotlane::sql

#include "router/sql/ddl_read.hpp"

namespace hotlane::sql {
namespace {

bool starts_column_constraint(const cursor& at) {
    return at.is_any({"constraint",
                      "not",
                      "null",
                      "primary",
                      "unique",
                      "default",
                      "check",
                      "references",
                      "collate",
                      "generated",
                      "as",
                      "deferrable",
                      "initially",
                      "autoincrement",
                      "on",
                      "match",
                      "storage",
                      "compression"});
}

bool is_serial(std::string_view type) {
    const std::string lower = lower_case(type);
    return lower == "serial" || lower == "bigserial" || lower == "smallserial" ||
           lower == "serial4" || lower == "serial8" || lower == "serial2";
}

// ON CONFLICT x, [NOT] DEFERRABLE, INITIALLY x, NULLS NOT DISTINCT, NO INHERIT: they change what
// the constraint before them means, and nothing here can say it.
void read_trailer(cursor& at, table_definition& table) {
    const std::size_t from = at.place();
    bool more = true;
    while (more) {
        more = at.skip({"not", "deferrable"}) || at.skip({"deferrable"}) ||
               at.skip({"nulls", "not", "distinct"}) || at.skip({"nulls", "distinct"}) ||
               at.skip({"no", "inherit"}) || at.skip({"not", "valid"});
        if (at.is("initially") || at.is("on")) {
            at.next();
            at.skip({"conflict"});
            at.next();
            more = true;
        }
    }
    if (at.place() != from) table.not_understood.push_back(at.since(from));
}

std::string read_references(cursor& at) {
    const std::size_t from = at.place();
    at.next();  // REFERENCES
    read_name(at);
    if (at.is(lexeme::open)) at.next_balanced();
    bool more = true;
    while (more) {
        more = at.skip({"not", "deferrable"}) || at.skip({"deferrable"});
        if (at.is_any({"match", "initially"})) {
            at.next();
            at.next();
            more = true;
        } else if (at.is("on")) {
            at.next();
            at.next();  // DELETE or UPDATE
            if (at.is("set") || at.is("no")) at.next();
            at.next();
            if (at.is(lexeme::open)) at.next_balanced();
            more = true;
        }
    }
    return at.since(from);
}

void read_generated(cursor& at, column_definition& column, table_definition& table) {
    const std::size_t from = at.place();
    at.skip({"generated"});
    if (!at.skip({"always"})) at.skip({"by", "default"});
    at.skip({"as"});
    if (at.skip({"identity"})) {
        column.autoincrement = true;
        column.not_null = true;
        if (at.is(lexeme::open)) table.not_understood.push_back("IDENTITY (" + at.inside() + ")");
        return;
    }
    if (at.is(lexeme::open)) at.next_balanced();
    if (at.is_any({"stored", "virtual"})) at.next();
    table.not_understood.push_back(at.since(from));
}

void read_collation(cursor& at, column_definition& column) {
    at.next();  // COLLATE
    std::string name = at.name();
    while (at.skip(lexeme::dot))
        name = at.name();
    column.collation = name;
}

// One constraint of a column; false if the words there are none that is known.
bool read_column_constraint(cursor& at, column_definition& column, table_definition& table) {
    if (at.skip({"constraint"})) {
        at.name();
        return true;
    }
    if (at.skip({"not", "null"})) {
        column.not_null = true;
    } else if (at.skip({"null"})) {
        return true;
    } else if (at.skip({"primary", "key"})) {
        column.primary_key = true;
        if (at.is_any({"asc", "desc"})) at.next();
    } else if (at.is("autoincrement") || at.is("auto_increment")) {
        at.next();
        column.autoincrement = true;
    } else if (at.skip({"unique"})) {
        column.unique = true;
    } else if (at.skip({"default"})) {
        column.default_expression = read_expression(at);
        return true;
    } else if (at.is("check") && at.is(lexeme::open, 1)) {
        at.next();
        column.checks.push_back(at.inside());
    } else if (at.is("references")) {
        column.references = read_references(at);
        return true;
    } else if (at.is("collate")) {
        read_collation(at, column);
        return true;
    } else if (at.is("generated") || (at.is("as") && at.is(lexeme::open, 1))) {
        read_generated(at, column, table);
        return true;
    } else {
        return false;
    }
    read_trailer(at, table);
    return true;
}

// An expression takes at least one token, so that DEFAULT NULL is read as what it is.
bool ends_expression(const cursor& at) {
    return at.at_end() || at.is(lexeme::comma) || at.is(lexeme::close) ||
           starts_column_constraint(at);
}

}  // namespace

qualified_name read_name(cursor& at) {
    qualified_name out;
    out.written = at.written();
    out.name = at.name();
    while (at.is(lexeme::dot)) {
        at.next();
        out.written = at.written();
        const std::string inner = at.name();
        out.name = out.name == "public" ? inner : out.name + "." + inner;
    }
    return out;
}

std::string read_type(cursor& at) {
    const std::size_t from = at.place();
    while (!at.at_end() && !at.is(lexeme::comma) && !at.is(lexeme::close) &&
           !starts_column_constraint(at))
        at.next_balanced();
    return at.since(from);
}

std::string read_expression(cursor& at) {
    const std::size_t from = at.place();
    if (at.is(lexeme::op)) at.next();  // a sign
    at.next_balanced();
    while (!ends_expression(at))
        at.next_balanced();
    return at.since(from);
}

bool read_column_list(cursor& at, std::vector<std::string>& columns) {
    const std::size_t from = at.place();
    if (at.skip(lexeme::open)) {
        while (at.is_name()) {
            columns.push_back(at.name());
            if (at.is_any({"asc", "desc"})) at.next();
            if (at.skip(lexeme::close)) return true;
            if (!at.skip(lexeme::comma)) break;
        }
    }
    columns.clear();
    at.go_back(from);
    at.next_balanced();
    return false;
}

void read_column(cursor& at, table_definition& table) {
    column_definition column;
    const std::size_t from = at.place();
    column.written_name = at.written();
    column.name = at.name();
    if (column.name.empty()) {
        at.to_element_end();
        table.not_understood.push_back(at.since(from));
        return;
    }
    column.type = read_type(at);
    if (is_serial(column.type)) {
        column.autoincrement = true;
        column.not_null = true;
    }
    while (!at.at_end() && !at.is(lexeme::comma) && !at.is(lexeme::close)) {
        const std::size_t rest = at.place();
        if (read_column_constraint(at, column, table)) continue;
        at.to_element_end();
        table.not_understood.push_back(at.since(rest));
    }
    table.columns.push_back(std::move(column));
}

bool starts_table_constraint(const cursor& at) {
    if (at.is("constraint") || at.is("like")) return true;
    if (at.is("exclude") && (at.is("using", 1) || at.is(lexeme::open, 1))) return true;
    return (at.is("primary") && at.is("key", 1)) || (at.is("foreign") && at.is("key", 1)) ||
           (at.is_any({"unique", "check"}) && (at.is(lexeme::open, 1) || at.is("nulls", 1)));
}

void read_table_constraint(cursor& at, table_definition& table) {
    if (at.skip({"constraint"})) at.name();
    const std::size_t from = at.place();
    std::vector<std::string> columns;
    if (at.skip({"primary", "key"}) && read_column_list(at, columns)) {
        table.primary_key = columns;
    } else if (at.skip({"unique"}) && read_column_list(at, columns)) {
        table.uniques.push_back(columns);
    } else if (at.is("check") && at.is(lexeme::open, 1)) {
        at.next();
        table.checks.push_back(at.inside());
    } else if (at.skip({"foreign", "key"})) {
        at.next_balanced();
        if (at.is("references")) read_references(at);
        table.foreign_keys.push_back(at.since(from));
    } else {
        at.to_element_end();
        table.not_understood.push_back(at.since(from));
        return;
    }
    read_trailer(at, table);
    if (at.at_end() || at.is(lexeme::comma) || at.is(lexeme::close)) return;
    const std::size_t rest = at.place();
    at.to_element_end();
    table.not_understood.push_back(at.since(rest));
}

namespace {

// WITHOUT ROWID and STRICT say how the engine stores a row, not which rows there may be.
void read_table_options(cursor& at, table_definition& table) {
    while (!at.at_end()) {
        if (at.skip({"without", "rowid"}) || at.skip({"strict"}) || at.skip(lexeme::comma))
            continue;
        const std::size_t rest = at.place();
        while (!at.at_end())
            at.next();
        table.not_understood.push_back(at.since(rest));
    }
}

}  // namespace

std::optional<table_definition> read_create_table(cursor& at) {
    table_definition table;
    if (at.is_any({"global", "local"})) at.next();
    if (at.is_any({"temp", "temporary"})) {
        table.temporary = true;
        at.next();
    }
    at.skip({"unlogged"});
    if (!at.skip({"table"})) return std::nullopt;
    table.if_not_exists = at.skip({"if", "not", "exists"});
    const qualified_name name = read_name(at);
    table.name = name.name;
    table.written_name = name.written;
    if (table.name.empty() || !at.skip(lexeme::open)) return std::nullopt;
    while (!at.at_end() && !at.is(lexeme::close)) {
        if (starts_table_constraint(at)) {
            read_table_constraint(at, table);
        } else {
            read_column(at, table);
        }
        if (!at.skip(lexeme::comma)) break;
    }
    if (!at.skip(lexeme::close)) return std::nullopt;
    if (at.is("as")) return std::nullopt;  // CREATE TABLE t (a, b) AS SELECT
    read_table_options(at, table);
    return table;
}

}  // namespace hotlane::sql

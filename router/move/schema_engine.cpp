#include <fmt/format.h>
#include <algorithm>
#include <cctype>

#include "router/move/names.hpp"
#include "router/move/schema.hpp"
#include "router/sql/lexer.hpp"

namespace hotlane::move {
namespace {

constexpr std::size_t identifier_bytes_max = 63;  // PostgreSQL: NAMEDATALEN - 1, cut silently
constexpr std::size_t columns_max = 800;          // both homes, with typeof beside each column

std::string lower(std::string_view text) {
    std::string out(text);
    for (char& c : out)
        c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return out;
}

const sql::table_definition* find_definition(const sql::schema_definition& ddl,
                                             const std::string& name) {
    for (const auto& t : ddl.tables)
        if (t.name == name && !t.temporary) return &t;
    for (const auto& t : ddl.tables)
        if (lower(t.name) == lower(name) && !t.temporary) return &t;  // case is kept, not compared
    return nullptr;
}

const sql::column_definition* find_column(const sql::table_definition& t, const std::string& name) {
    for (const auto& c : t.columns)
        if (c.name == name || lower(c.name) == lower(name)) return &c;
    return nullptr;
}

bool same_columns(const table& t, const sql::table_definition& d) {
    return t.columns.size() == d.columns.size() &&
           std::all_of(t.columns.begin(), t.columns.end(), [&](const column& c) {
               return find_column(d, c.name) != nullptr;
           });
}

// Names in constraints are written as the table has them.
std::vector<std::string> as_in_table(const table& t, const std::vector<std::string>& names) {
    std::vector<std::string> out;
    for (const auto& n : names) {
        const auto at = std::find_if(t.columns.begin(), t.columns.end(), [&](const column& c) {
            return lower(c.name) == lower(n);
        });
        out.push_back(at == t.columns.end() ? n : at->name);
    }
    return out;
}

void take_definition(table& t, const sql::table_definition& d) {
    for (auto& c : t.columns) {
        const auto* seen = find_column(d, c.name);
        if (!seen) continue;
        if (affinity(seen->type) == c.type) c.declared = seen->type;
        c.autoincrement = seen->autoincrement;
        c.not_null = c.not_null || seen->not_null;
        c.unique = c.unique || seen->unique;
        c.checks = seen->checks;
        if (seen->default_expression) c.default_expression = seen->default_expression;
        if (seen->references) c.references = seen->references;
    }
    t.checks = d.checks;
    if (!d.primary_key.empty()) t.key = as_in_table(t, d.primary_key);
    t.uniques.clear();
    for (const auto& u : d.uniques)
        t.uniques.push_back(as_in_table(t, u));
}

refusal unsupported(std::string message, std::string mend) {
    return {"unsupported_object", std::move(message), std::move(mend)};
}

bool uses_word(const std::string& expression, std::string_view word) {
    const auto tokens = sql::tokenize(expression, sql::dialect::engine);
    return std::any_of(tokens.begin(), tokens.end(), [&](const sql::token& t) {
        return sql::is_word(expression, t, word);
    });
}

// The engine finds t under "T"; PostgreSQL folds what is not quoted.
void note_capitals(const table& t, schema_view& out) {
    std::string names = lower(t.name) == t.name ? std::string() : "\"" + t.name + "\"";
    for (const auto& c : t.columns)
        if (lower(c.name) != c.name && names.size() < 200)
            names += (names.empty() ? "\"" : ", \"") + c.name + "\"";
    if (!names.empty())
        out.notes.push_back(
            fmt::format("table \"{}\" has names with capitals ({}): statements that write them "
                        "without double quotes do not find them on PostgreSQL",
                        t.name,
                        names));
}

// What both homes accept and each understands in its own way.
void check_meaning(const table& t, const sql::table_definition& seen, schema_view& out) {
    for (const auto& c : seen.columns)
        if (c.collation && lower(*c.collation) != "binary")
            out.refusals.push_back(
                unsupported(fmt::format("column \"{}\".\"{}\" has the collation {}, by which its "
                                        "values would be equal on the engine only",
                                        t.name,
                                        c.name,
                                        *c.collation),
                            "keep this tool on the engine, or store the value in one case"));
    std::vector<std::string> checks = t.checks;
    for (const auto& c : t.columns)
        checks.insert(checks.end(), c.checks.begin(), c.checks.end());
    for (const auto& check : checks)
        if (uses_word(check, "like"))
            out.refusals.push_back(unsupported(
                fmt::format("table \"{}\": CHECK ({}) uses LIKE, which tells upper from lower case "
                            "on PostgreSQL and not on the engine",
                            t.name,
                            check),
                "keep this tool on the engine, or write the check without LIKE"));
}

// A statement that changes what a table is: one that was not followed leaves the plan in doubt.
bool concerns_tables(const std::string& statement) {
    const std::string head = lower(statement.substr(0, 400));
    if (head.find("create index") != std::string::npos) return false;  // nothing is enforced by it
    return head.find("table") != std::string::npos || head.find("view") != std::string::npos ||
           head.find("trigger") != std::string::npos || head.find("unique") != std::string::npos ||
           head.find("type") != std::string::npos || head.find("domain") != std::string::npos;
}

refusal text_proves_nothing(const std::string& name) {
    return {
        "no_schema",
        fmt::format("table \"{}\" was there before hotlane recorded the tool's DDL: CREATE TABLE "
                    "IF NOT EXISTS may have changed nothing, and the engine's catalog does not "
                    "show CHECK and UNIQUE constraints",
                    name),
        "give the tool's DDL as `schema:`, or declare `no_hidden_constraints: true`"};
}

void read_columns(const std::vector<catalog_column>& columns,
                  const std::string& name,
                  table& t,
                  schema_view& out) {
    for (const auto& c : columns) {
        column made;
        made.name = c.name;
        made.not_null = c.not_null;
        made.unique = c.unique && !c.key;
        made.default_expression = c.default_expression;
        if (const auto type = value_type_from(lower(c.type))) {
            made.type = *type;
        } else {
            out.refusals.push_back(
                {"unsupported_type",
                 fmt::format("column \"{}\".\"{}\" has type {}, which cannot be moved",
                             name,
                             c.name,
                             c.type),
                 "keep this tool on the engine, or change the column to INTEGER, REAL, TEXT or "
                 "BLOB"});
        }
        if (c.key) t.key.push_back(c.name);
        t.columns.push_back(std::move(made));
    }
}

}  // namespace

std::optional<value_type> affinity(std::string_view declared) {
    const std::string t = lower(declared);
    const auto has = [&](std::string_view word) { return t.find(word) != std::string::npos; };
    if (t.empty() || has("blob") || has("bytea")) return value_type::blob;
    if (has("vector")) return std::nullopt;
    if (has("int") || has("serial")) return value_type::integer;
    if (has("char") || has("clob") || has("text") || has("json") || has("time") || has("date") ||
        has("uuid"))
        return value_type::text;
    if (has("real") || has("floa") || has("doub") || has("numeric") || has("decimal"))
        return value_type::real;
    return std::nullopt;  // BOOLEAN: text or integer, the catalog knows
}

std::vector<refusal> check_names(const table& t) {
    std::vector<refusal> out;
    const auto check = [&](const std::string& name, const std::string& what) {
        if (!is_valid_utf8(name) || name.find('\0') != std::string::npos)
            out.push_back({"name_encoding", "a name is not valid UTF-8", "rename it"});
        if (name.empty() || name.size() > identifier_bytes_max)
            out.push_back({"name_too_long",
                           fmt::format("{} has {} bytes; PostgreSQL keeps {}",
                                       what,
                                       name.size(),
                                       identifier_bytes_max),
                           "rename it to at most 63 bytes"});
    };
    check(t.name, fmt::format("table name \"{}\"", t.name));
    for (const auto& c : t.columns) {
        check(c.name, fmt::format("column name \"{}\".\"{}\"", t.name, c.name));
        static constexpr std::string_view system_columns[] = {
            "tableoid", "xmin", "cmin", "xmax", "cmax", "ctid"};
        if (std::find(std::begin(system_columns), std::end(system_columns), c.name) !=
            std::end(system_columns))
            out.push_back({"name_reserved",
                           fmt::format("column \"{}\".\"{}\" bears the name of a system column of "
                                       "PostgreSQL",
                                       t.name,
                                       c.name),
                           "rename the column"});
    }
    if (t.columns.size() > columns_max)
        out.push_back(unsupported(fmt::format("table \"{}\" has {} columns, the limit is {}",
                                              t.name,
                                              t.columns.size(),
                                              columns_max),
                                  "split the table"));
    return out;
}

schema_view read_engine_schema(const engine_catalog& catalog,
                               const std::vector<relationship>& relationships,
                               const sql::schema_definition& ddl,
                               bool no_hidden_constraints,
                               const older_tables& older) {
    schema_view out;
    for (const auto& [name, columns] : catalog) {
        if (is_own_name(name)) continue;
        table t;
        t.name = name;
        read_columns(columns, name, t, out);
        const auto* seen = find_definition(ddl, name);
        if (seen && seen->if_not_exists && !no_hidden_constraints &&
            (!older || older->count(lower(name)) != 0)) {
            out.refusals.push_back(text_proves_nothing(name));
        } else if (seen && same_columns(t, *seen)) {
            take_definition(t, *seen);
            check_meaning(t, *seen, out);
            for (const auto& what : seen->not_understood)
                out.refusals.push_back(
                    unsupported(fmt::format("table \"{}\": not understood: {}", name, what),
                                "describe the table in the tool's schema file without it"));
        } else if (seen && !seen->not_understood.empty() && !no_hidden_constraints) {
            for (const auto& what : seen->not_understood)
                out.refusals.push_back(
                    unsupported(fmt::format("table \"{}\": not understood: {}", name, what),
                                "make it a plain column, or describe the table in the tool's "
                                "schema file without it"));
        } else if (seen && !no_hidden_constraints) {
            out.refusals.push_back(
                {"schema_mismatch",
                 fmt::format("table \"{}\" has other columns than the DDL that was seen", name),
                 "give the tool's present DDL as `schema:`"});
        } else if (!no_hidden_constraints) {
            out.refusals.push_back(
                {"no_schema",
                 fmt::format("table \"{}\": its CHECK and UNIQUE constraints are not known; the "
                             "engine's catalog does not show them and no DDL was seen",
                             name),
                 "give the tool's DDL as `schema:`, or declare `no_hidden_constraints: true`"});
        }
        for (const auto& c : t.columns)
            if (c.autoincrement && &c != t.identity())
                out.refusals.push_back(unsupported(
                    fmt::format(
                        "column \"{}\".\"{}\" numbers itself and is not the key", name, c.name),
                    "make it the primary key, or give it a plain type"));
        for (auto& refused : check_names(t))
            out.refusals.push_back(std::move(refused));
        note_capitals(t, out);
        out.tables.push_back(std::move(t));
    }
    for (const auto& statement : ddl.not_followed)
        if (!no_hidden_constraints && concerns_tables(statement))
            out.refusals.push_back(
                unsupported(fmt::format("DDL that is not understood: {}", statement.substr(0, 200)),
                            "give the tool's DDL as `schema:`, or declare "
                            "`no_hidden_constraints: true`"));
    for (const auto& r : relationships)
        if (!is_own_name(r.table))
            out.notes.push_back(
                fmt::format("foreign key \"{}\"({}) to \"{}\" is not enforced by the engine and is "
                            "not created on PostgreSQL",
                            r.table,
                            r.columns,
                            r.foreign_table));
    return out;
}

void adopt_ddl(schema_view& view, const sql::schema_definition& ddl) {
    const auto checks = [](const table& t) {
        std::size_t n = t.checks.size();
        for (const auto& c : t.columns)
            n += c.checks.size();
        return n;
    };
    for (auto& t : view.tables) {
        const auto* seen = find_definition(ddl, t.name);
        if (!seen || !same_columns(t, *seen) || !seen->not_understood.empty()) continue;
        const table before = t;
        take_definition(t, *seen);
        const bool same_checks = checks(t) == checks(before);
        // Keys, uniques and NOT NULL are PostgreSQL's to tell: it enforces them now. Of checks and
        // defaults only the wording is taken.
        t.key = before.key;
        t.uniques = before.uniques;
        if (!same_checks) t.checks = before.checks;
        for (std::size_t i = 0; i < t.columns.size(); ++i) {
            column& c = t.columns[i];
            const column& was = before.columns[i];
            c.unique = was.unique;
            c.not_null = was.not_null;
            if (!same_checks) c.checks = was.checks;
            if (c.default_expression.has_value() != was.default_expression.has_value())
                c.default_expression = was.default_expression;
        }
    }
}

}  // namespace hotlane::move

#include "router/move/read_postgres.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <charconv>
#include <map>
#include <nlohmann/json.hpp>

#include "router/move/fence_sql.hpp"
#include "router/sql/facts.hpp"

namespace hotlane::move {
namespace {

std::string text(const row& r, std::size_t i) {
    return i < r.size() ? r[i].value_or("") : "";
}

std::vector<std::string> names_from(const std::string& json) {
    std::vector<std::string> out;
    const auto list = nlohmann::json::parse(json, nullptr, false);
    if (list.is_array())
        for (const auto& n : list)
            if (n.is_string()) out.push_back(n.get<std::string>());
    return out;
}

void refuse(schema_view& view, std::string code, std::string message, std::string mend) {
    view.refusals.push_back({std::move(code), std::move(message), std::move(mend)});
}

void take_column(schema_view& view, table& t, const row& r, const type_overrides& types) {
    column c;
    c.name = text(r, 1);
    const std::string type = text(r, 2);
    auto mapped = engine_type_of(type);
    const auto as = held_as_of(type);
    const auto said = types.find(t.name + "." + c.name);
    if (!mapped && as && said != types.end() && said->second == to_string(*as)) {
        c.as = *as;
        mapped = engine_type{engine_side(*as), {}};
    }
    if (!mapped)
        refuse(view,
               "unsupported_type",
               fmt::format("column \"{}\".\"{}\" has type {}, which the engine cannot hold",
                           t.name,
                           c.name,
                           type),
               fmt::format("change it to bigint, double precision, text or bytea{}, or leave the "
                           "tool on PostgreSQL",
                           as ? fmt::format("; or say `types: {{{}.{}: {}}}` in the tool's "
                                            "settings",
                                            t.name,
                                            c.name,
                                            to_string(*as))
                              : std::string()));
    else
        c.type = mapped->type;
    c.not_null = text(r, 3) == "t";
    if (!text(r, 5).empty())
        refuse(view,
               "unsupported_object",
               fmt::format("column \"{}\".\"{}\" is generated", t.name, c.name),
               "make it a plain column");
    const std::string expression = text(r, 6);
    c.autoincrement = !text(r, 4).empty() || expression.rfind("nextval(", 0) == 0;
    if (!expression.empty() && !c.autoincrement)
        c.default_expression = default_here(c.as, expression).value_or(engine_default(expression));
    if (mapped && mapped->length)
        c.checks.push_back(
            fmt::format("length({}) <= {}", sql::quote_identifier(c.name), *mapped->length));
    t.columns.push_back(std::move(c));
}

void take_constraint(schema_view& view, table& t, const row& r) {
    const std::string kind = text(r, 1), name = text(r, 5);
    const auto columns = names_from(text(r, 3));
    if (text(r, 2) == "t")
        refuse(view,
               "unsupported_object",
               fmt::format("constraint \"{}\" of table \"{}\" is deferrable", name, t.name),
               "make it not deferrable");
    if (kind == "p") {
        t.key = columns;
    } else if (kind == "u") {
        t.uniques.push_back(columns);
    } else if (kind == "c") {
        t.checks.push_back(text(r, 4));
    } else {
        refuse(view,
               "unsupported_object",
               fmt::format("constraint \"{}\" of table \"{}\" ({}) is not enforced by the engine",
                           name,
                           t.name,
                           kind == "f" ? "foreign key" : "exclusion"),
               fmt::format("ALTER TABLE \"{}\" DROP CONSTRAINT \"{}\"", t.name, name));
    }
}

struct question {
    const char* sql;
    const char* what;
    const char* mend;
};
// Each asks for (table, name) of something that could not go over. $1 schema, $2 the tool's role.
const question refused_objects[] = {
    {"SELECT c.relname, CASE c.relkind WHEN 'p' THEN 'partitioned table' WHEN 'f' THEN 'foreign "
     "table' ELSE 'materialized view' END FROM pg_class c JOIN pg_namespace n ON n.oid = "
     "c.relnamespace WHERE n.nspname = $1 AND c.relkind IN ('p', 'f', 'm') AND $2 <> ''",
     "is a",
     "drop it, or leave the tool on PostgreSQL"},
    {"SELECT c.relname, 'view of the tool' FROM pg_class c JOIN pg_namespace n ON n.oid = "
     "c.relnamespace JOIN pg_roles r ON r.oid = c.relowner WHERE n.nspname = $1 AND c.relkind = "
     "'v' AND r.rolname = $2 AND NOT r.rolsuper",
     "is a",
     "drop the view before the tool goes back"},
    {"SELECT c.relname, 'sequence of its own' FROM pg_class c JOIN pg_namespace n ON n.oid = "
     "c.relnamespace WHERE n.nspname = $1 AND c.relkind = 'S' AND $2 <> '' AND NOT EXISTS (SELECT "
     "1 FROM pg_depend d WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype "
     "IN ('a', 'i', 'e'))",
     "is a",
     "drop the sequence; the engine has none"},
    {"SELECT c.relname, t.tgname FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid JOIN "
     "pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = $1 AND c.relkind = 'r' AND NOT "
     "t.tgisinternal AND $2 <> ''",
     "has a trigger",
     "drop the trigger; the engine has none"},
    {"SELECT c.relname, 'row security' FROM pg_class c JOIN pg_namespace n ON n.oid = "
     "c.relnamespace WHERE n.nspname = $1 AND c.relkind = 'r' AND (c.relrowsecurity OR "
     "c.relhasrules) AND $2 <> ''",
     "has rules or",
     "drop them; the engine has none"},
    {"SELECT c.relname, 'inheritance' FROM pg_inherits i JOIN pg_class c ON c.oid IN (i.inhrelid, "
     "i.inhparent) JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = $1 AND "
     "c.relkind = 'r' AND $2 <> ''",
     "takes part in",
     "make it an independent table"},
    {"SELECT c.relname, x.relname FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid JOIN "
     "pg_class x ON x.oid = i.indexrelid JOIN pg_namespace n ON n.oid = c.relnamespace WHERE "
     "n.nspname = $1 AND c.relkind = 'r' AND i.indisunique AND (i.indexprs IS NOT NULL OR "
     "i.indpred IS NOT NULL OR i.indnullsnotdistinct) AND $2 <> ''",
     "has a unique index over an expression or a part:",
     "drop the index"},
};

answer<void> take_refused_objects(home_link& postgres,
                                  const std::vector<param>& where,
                                  schema_view& view) {
    for (const auto& q : refused_objects) {
        auto reply = postgres.exec(q.sql, where);
        if (!reply) return tl::unexpected(reply.error());
        for (const auto& r : reply->data)
            refuse(view,
                   "unsupported_object",
                   fmt::format("\"{}\" {} {}", text(r, 0), q.what, text(r, 1)),
                   q.mend);
    }
    return {};
}

answer<void> take_columns(home_link& postgres,
                          const std::vector<param>& where,
                          const type_overrides& types,
                          std::map<std::string, table>& tables,
                          schema_view& view) {
    auto names =
        postgres.exec(fmt::format("SELECT c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = "
                                  "c.relnamespace WHERE n.nspname = $1 AND {}",
                                  is_tool_table()),
                      where);
    if (!names) return tl::unexpected(names.error());
    for (const auto& r : names->data)
        tables[text(r, 0)].name = text(r, 0);
    auto columns = postgres.exec(
        fmt::format("SELECT c.relname, a.attname, format_type(a.atttypid, a.atttypmod), "
                    "a.attnotnull, a.attidentity, a.attgenerated, pg_get_expr(d.adbin, d.adrelid) "
                    "FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace JOIN "
                    "pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped "
                    "LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum WHERE "
                    "n.nspname = $1 AND {} ORDER BY c.relname, a.attnum",
                    is_tool_table()),
        where);
    if (!columns) return tl::unexpected(columns.error());
    for (const auto& r : columns->data)
        take_column(view, tables[text(r, 0)], r, types);
    return {};
}

answer<void> take_constraints(home_link& postgres,
                              const std::vector<param>& where,
                              std::map<std::string, table>& tables,
                              schema_view& view) {
    auto constraints = postgres.exec(
        fmt::format(
            "SELECT c.relname, k.contype, k.condeferrable, (SELECT json_agg(a.attname ORDER "
            "BY u.n) FROM unnest(k.conkey) WITH ORDINALITY u(attnum, n) JOIN pg_attribute a "
            "ON a.attrelid = c.oid AND a.attnum = u.attnum), pg_get_expr(k.conbin, "
            "k.conrelid), k.conname FROM pg_constraint k JOIN pg_class c ON c.oid = "
            "k.conrelid JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = $1 "
            "AND {} AND k.contype IN ('p', 'u', 'c', 'f', 'x') ORDER BY c.relname, k.conname",
            is_tool_table()),
        where);
    if (!constraints) return tl::unexpected(constraints.error());
    for (const auto& r : constraints->data)
        if (const auto at = tables.find(text(r, 0)); at != tables.end())
            take_constraint(view, at->second, r);
    // Unique indexes that are no constraint enforce as well.
    auto indexes = postgres.exec(
        fmt::format(
            "SELECT c.relname, (SELECT json_agg(a.attname ORDER BY u.n) FROM "
            "unnest(i.indkey::smallint[]) WITH ORDINALITY u(attnum, n) JOIN pg_attribute a "
            "ON a.attrelid = c.oid AND a.attnum = u.attnum WHERE u.n <= i.indnkeyatts) FROM "
            "pg_index i JOIN pg_class c ON c.oid = i.indrelid JOIN pg_namespace n ON n.oid = "
            "c.relnamespace WHERE n.nspname = $1 AND {} AND i.indisunique AND NOT EXISTS "
            "(SELECT 1 FROM pg_constraint k WHERE k.conindid = i.indexrelid) AND i.indexprs "
            "IS NULL AND i.indpred IS NULL",
            is_tool_table()),
        where);
    if (!indexes) return tl::unexpected(indexes.error());
    for (const auto& r : indexes->data)
        if (const auto at = tables.find(text(r, 0)); at != tables.end())
            at->second.uniques.push_back(names_from(text(r, 1)));
    return {};
}

void check_table(schema_view& view, const table& t) {
    if (t.columns.empty())
        refuse(view,
               "unsupported_object",
               fmt::format("table \"{}\" has no columns", t.name),
               "drop the table");
    for (const auto& c : t.columns)
        if (c.autoincrement && &c != t.identity())
            refuse(view,
                   "unsupported_object",
                   fmt::format(
                       "column \"{}\".\"{}\" numbers itself and is not the key", t.name, c.name),
                   "make it the primary key, or drop its default");
    for (auto& r : check_names(t))
        view.refusals.push_back(std::move(r));
}

}  // namespace

std::optional<engine_type> engine_type_of(const std::string& type) {
    if (type == "bigint" || type == "integer" || type == "smallint")
        return engine_type{value_type::integer, {}};
    if (type == "double precision" || type == "real") return engine_type{value_type::real, {}};
    if (type == "text" || type == "character varying") return engine_type{value_type::text, {}};
    if (type == "bytea") return engine_type{value_type::blob, {}};
    constexpr std::string_view bounded = "character varying(";
    if (type.rfind(bounded, 0) == 0) {
        int length = 0;
        std::from_chars(type.data() + bounded.size(), type.data() + type.size(), length);
        if (length > 0) return engine_type{value_type::text, length};
    }
    return std::nullopt;
}

std::string engine_default(const std::string& expression) {
    if (expression.rfind("to_char(timezone('UTC'", 0) == 0) {  // our own, see postgres_default
        const bool date = expression.find("YYYY-MM-DD") != std::string::npos;
        const bool time = expression.find("HH24:MI:SS") != std::string::npos;
        return date && time ? "CURRENT_TIMESTAMP" : date ? "CURRENT_DATE" : "CURRENT_TIME";
    }
    // 'x'::text and '5'::bigint: the engine gives the column's type anyway.
    const auto cast = expression.rfind("::");
    if (cast != std::string::npos && cast > 1 && expression.front() == '\'' &&
        expression[cast - 1] == '\'')
        return expression.substr(0, cast);
    return expression.find_first_not_of("-0123456789.") == std::string::npos
               ? expression
               : "(" + expression + ")";
}

answer<schema_view> read_postgres_schema(home_link& postgres,
                                         const std::string& schema,
                                         const std::string& role,
                                         const type_overrides& types) {
    schema_view view;
    const std::vector<param> where{{param_type::text, schema}};
    std::map<std::string, table> tables;
    if (auto took = take_columns(postgres, where, types, tables, view); !took)
        return tl::unexpected(took.error());
    if (auto took = take_constraints(postgres, where, tables, view); !took)
        return tl::unexpected(took.error());
    if (auto took = take_refused_objects(
            postgres, {{param_type::text, schema}, {param_type::text, role}}, view);
        !took)
        return tl::unexpected(took.error());
    for (auto& [name, t] : tables) {
        check_table(view, t);
        view.tables.push_back(std::move(t));
    }
    return view;
}

}  // namespace hotlane::move

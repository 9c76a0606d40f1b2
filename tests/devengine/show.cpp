#include "tests/devengine/show.hpp"

#include <array>

#include "tests/devengine/values.hpp"

namespace hotlane::devengine {

namespace {

constexpr std::array<std::pair<std::string_view, std::string_view>, 10> settings{{
    {"server_version", "15.0"},
    {"server_encoding", "UTF8"},
    {"client_encoding", "UTF8"},
    {"datestyle", "ISO, MDY"},
    {"standard_conforming_strings", "on"},
    {"application_name", ""},
    {"transaction_isolation", "repeatable read"},
    {"integer_datetimes", "on"},
    {"timezone", "UTC"},
    {"is_superuser", "on"},
}};

// The schema's own query functions do the work; names of SQLite's own tables stay hidden.
constexpr auto catalog_sql = R"(
SELECT m.name, c.name, c.type, c."notnull", c.pk > 0,
       EXISTS (SELECT 1 FROM pragma_index_list(m.name) i WHERE i."unique" AND i.origin = 'u'
               AND (SELECT count(*) FROM pragma_index_info(i.name)) = 1
               AND (SELECT name FROM pragma_index_info(i.name)) = c.name), c.dflt_value
FROM sqlite_master m JOIN pragma_table_info(m.name) c
WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite!_%' ESCAPE '!' ORDER BY m.name, c.cid)";

constexpr auto relationships_sql = R"(
SELECT m.name, m.name || '_fk_' || f.id, group_concat(f."from"), f."table", group_concat(f."to")
FROM sqlite_master m JOIN pragma_foreign_key_list(m.name) f
WHERE m.type = 'table' GROUP BY m.name, f.id, f."table" ORDER BY m.name, f.id)";

std::vector<row> rows_of(sqlite3* handle, const char* sql) {
    std::vector<row> rows;
    sqlite3_stmt* raw = nullptr;
    sqlite3_prepare_v2(handle, sql, -1, &raw, nullptr);
    const stmt_handle query(raw);
    while (raw != nullptr && sqlite3_step(raw) == SQLITE_ROW) {
        rows.emplace_back();
        for (int i = 0; i < sqlite3_column_count(raw); ++i)
            rows.back().push_back(column_value(raw, i));
    }
    return rows;
}

cursor table_answer(std::vector<column_info> columns, std::vector<row> rows) {
    return {std::move(columns), std::move(rows), "SHOW", false};
}

}  // namespace

result<cursor> answer_show(const std::string& name, const database& home, sqlite3* handle) {
    const auto key = upper(name);
    if (key == "TWILL.STATS") {
        std::vector<row> rows;
        for (const auto& [metric, number] : home.stats())
            rows.push_back({metric, number});
        return table_answer({{"metric", oid::text}, {"value", oid::int8}}, std::move(rows));
    }
    if (key == "TWILL.CATALOG") {
        auto rows = rows_of(handle, catalog_sql);
        for (auto& r : rows)
            if (const auto* type = std::get_if<std::string>(&r[2])) r[2] = storage_type(*type);
        return table_answer({{"tbl", oid::text},
                             {"col", oid::text},
                             {"typ", oid::text},
                             {"notnull", oid::int8},
                             {"pk", oid::int8},
                             {"uniq", oid::int8},
                             {"dflt", oid::text}},
                            std::move(rows));
    }
    if (key == "TWILL.RELATIONSHIPS")
        return table_answer({{"tbl", oid::text},
                             {"name", oid::text},
                             {"cols", oid::text},
                             {"ftable", oid::text},
                             {"fcols", oid::text}},
                            rows_of(handle, relationships_sql));
    std::string known;
    for (const auto& [setting, text] : settings)
        if (upper(setting) == key) known = text;
    return table_answer({{name, oid::text}}, {{known}});
}

std::string shadow_view(sqlite3* handle, const std::string& name) {
    std::string literal;
    for (const char c : name)
        literal += c == '\'' ? std::string("''") : std::string(1, c);
    const bool view =
        ask_number(handle,
                   "SELECT count(*) FROM sqlite_master WHERE type = 'view' AND name = '" + literal +
                       "' COLLATE NOCASE") > 0;
    return view ? "DROP VIEW " + quote_name(name) + "; " : "";
}

}  // namespace hotlane::devengine

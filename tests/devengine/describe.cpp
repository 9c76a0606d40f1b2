// What a statement would answer and what its parameters are, and the engine's habit of evaluating
// expressions per row.
#include <algorithm>

#include "tests/devengine/session.hpp"
#include "tests/devengine/values.hpp"

namespace hotlane::devengine {

namespace {

// The select list of `SELECT a, b FROM ..`, one name a column.
std::vector<column_info> columns_by_text(const statement& s) {
    std::vector<column_info> columns;
    int depth = 0;
    std::string name;
    for (std::size_t i = 1; i < s.tokens.size(); ++i) {
        const auto& t = s.tokens[i];
        if (t.is_symbol("(")) ++depth;
        if (t.is_symbol(")")) --depth;
        if (depth == 0 && (t.is("FROM") || t.is_symbol(","))) {
            columns.push_back({name, oid::text});
            name.clear();
            if (t.is("FROM")) break;
        } else {
            name += t.name();
        }
    }
    return columns;
}

std::uint32_t declared_type(sqlite3* handle,
                            const std::vector<std::string>& tables,
                            const std::string& column) {
    for (const auto& table : tables) {
        const char* type = nullptr;
        if (sqlite3_table_column_metadata(handle,
                                          nullptr,
                                          table.c_str(),
                                          column.c_str(),
                                          &type,
                                          nullptr,
                                          nullptr,
                                          nullptr,
                                          nullptr) == SQLITE_OK)
            return type_of_declared(type);
    }
    return 0;
}

bool is_operator(const token& t) {
    static constexpr std::string_view operators[]{
        "=", "<", ">", "<=", ">=", "<>", "!=", "+", "-", "*"};
    return t.kind == token_kind::symbol &&
           std::find(std::begin(operators), std::end(operators), t.text) != std::end(operators);
}

std::size_t parameter_index(const token& t) {
    return static_cast<std::size_t>(
        std::max(0, std::atoi(std::string(t.text.substr(1)).c_str()) - 1));
}

// `column = $1`, `column + $1`: the parameter is of the column's type.
void types_by_operator(sqlite3* handle, const statement& s, std::vector<std::uint32_t>& types) {
    for (std::size_t i = 2; i < s.tokens.size(); ++i) {
        if (s.tokens[i].kind != token_kind::parameter || !is_operator(s.tokens[i - 1])) continue;
        const auto at = parameter_index(s.tokens[i]);
        if (at < types.size() && types[at] == 0 && s.tokens[i - 2].is_name())
            types[at] = declared_type(handle, s.tables, s.tokens[i - 2].name());
    }
}

std::vector<std::string> all_columns(sqlite3* handle, const std::string& table) {
    std::vector<std::string> names;
    sqlite3_stmt* raw = nullptr;
    const auto sql = "SELECT name FROM pragma_table_info(?1)";
    if (sqlite3_prepare_v2(handle, sql, -1, &raw, nullptr) != SQLITE_OK) return names;
    const stmt_handle query(raw);
    bind(raw, 1, table);
    while (sqlite3_step(raw) == SQLITE_ROW)
        names.emplace_back(reinterpret_cast<const char*>(sqlite3_column_text(raw, 0)));
    return names;
}

// `INSERT INTO t (a, b) VALUES ($1, $2)`: each parameter has the type of its column.
void types_by_position(sqlite3* handle, const statement& s, std::vector<std::uint32_t>& types) {
    if (s.verb != "INSERT" || s.tables.empty()) return;
    std::vector<std::string> columns;
    std::size_t at = 3;
    if (at < s.tokens.size() && s.tokens[at].is_symbol("("))
        for (++at; at < s.tokens.size() && !s.tokens[at].is_symbol(")"); ++at)
            if (s.tokens[at].is_name()) columns.push_back(s.tokens[at].name());
    if (columns.empty()) columns = all_columns(handle, s.tables.front());
    while (at < s.tokens.size() && !s.tokens[at].is("VALUES"))
        ++at;
    int depth = 0;
    std::size_t position = 0;
    for (; at < s.tokens.size(); ++at) {
        const auto& t = s.tokens[at];
        if (t.is("ON") || t.is("RETURNING")) return;
        if (t.is_symbol("(") && depth++ == 0) position = 0;
        if (t.is_symbol(")")) --depth;
        if (t.is_symbol(",") && depth == 1) ++position;
        if (t.kind != token_kind::parameter || depth != 1 || position >= columns.size()) continue;
        const auto index = parameter_index(t);
        if (index < types.size() && types[index] == 0)
            types[index] = declared_type(handle, s.tables, columns[position]);
    }
}

}  // namespace

std::vector<std::uint32_t> session::parameter_types(const statement& s) {
    std::vector<std::uint32_t> types(static_cast<std::size_t>(s.parameters), 0);
    for (std::size_t i = 0; i < types.size() && i < s.parameter_casts.size(); ++i)
        if (!s.parameter_casts[i].empty())
            types[i] = type_of_declared(s.parameter_casts[i].c_str());
    types_by_position(reader_.get(), s, types);
    types_by_operator(reader_.get(), s, types);
    return types;
}

// Expressions are evaluated per row: an unknown column hurts only where there is a row.
std::optional<cursor> session::answer_of_empty_table(const statement& s, const sql_error& error) {
    if (!error.message.starts_with("no such column") || s.tables.empty()) return std::nullopt;
    if (s.verb != "SELECT" && s.verb != "DELETE" && s.verb != "UPDATE") return std::nullopt;
    sqlite3* handle = writing_ || s.verb != "SELECT" ? home_.writer() : reader_.get();
    sqlite3_stmt* raw = nullptr;
    const auto sql = "SELECT EXISTS (SELECT 1 FROM " + quote_name(s.tables.front()) + ")";
    if (sqlite3_prepare_v2(handle, sql.c_str(), -1, &raw, nullptr) != SQLITE_OK)
        return std::nullopt;
    const stmt_handle query(raw);
    if (sqlite3_step(raw) != SQLITE_ROW || sqlite3_column_int(raw, 0) != 0) return std::nullopt;
    if (s.verb != "SELECT") return cursor(s.verb + " 0");
    return cursor(columns_by_text(s), {}, "SELECT", true);
}

result<void> session::check(const statement& s) {
    if (s.kind != statement_kind::read && s.kind != statement_kind::write) return {};
    if (s.uses_stats) fill_stats();
    const auto prepared = prepare(reader_.get(), access_, s.sql);
    // An unknown column is found out when a row is there to evaluate it for.
    if (prepared || prepared.error().message.starts_with("no such column")) return {};
    return tl::unexpected(prepared.error());
}

result<std::vector<column_info>> session::describe(const statement& s) {
    using columns = std::vector<column_info>;
    if (s.kind == statement_kind::show) {
        const auto answer = show(s);
        if (!answer) return tl::unexpected(answer.error());
        return answer->columns();
    }
    if (s.kind != statement_kind::read && s.kind != statement_kind::write) return columns{};
    if (s.uses_stats) fill_stats();
    auto prepared = prepare(reader_.get(), access_, s.sql);
    if (!prepared) {
        if (!prepared.error().message.starts_with("no such column") || s.tables.empty())
            return tl::unexpected(prepared.error());
        // Whether it fails is found out when it runs.
        return s.verb == "SELECT" ? columns_by_text(s) : columns{};
    }
    if (s.kind == statement_kind::read) {
        cursor trial(std::move(*prepared), "");
        (void)trial.open(reader_.get());
        return trial.columns();
    }
    columns found;
    for (int i = 0; i < sqlite3_column_count(prepared->get()); ++i) {
        const auto type = type_of_declared(sqlite3_column_decltype(prepared->get(), i));
        found.push_back({sqlite3_column_name(prepared->get(), i), type == 0 ? oid::text : type});
    }
    return found;
}

}  // namespace hotlane::devengine

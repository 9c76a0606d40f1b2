// SQLite handles that close themselves, and the engine's idea of an error and of a value.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <sqlite3.h>
#include <tl/expected.hpp>

namespace hotlane::devengine {

struct close_database {
    void operator()(sqlite3* handle) const noexcept { sqlite3_close_v2(handle); }
};
struct close_statement {
    void operator()(sqlite3_stmt* handle) const noexcept { sqlite3_finalize(handle); }
};
using db_handle = std::unique_ptr<sqlite3, close_database>;
using stmt_handle = std::unique_ptr<sqlite3_stmt, close_statement>;

struct sql_error {
    std::string sqlstate;
    std::string message;
};

template <typename Value>
using result = tl::expected<Value, sql_error>;

inline tl::unexpected<sql_error> fail(std::string sqlstate, std::string message) {
    return tl::unexpected(sql_error{std::move(sqlstate), std::move(message)});
}
// Everything that is not a conflict or a misuse of transactions has this one code.
inline tl::unexpected<sql_error> plain_error(std::string message) {
    return fail("42601", std::move(message));
}

struct blob {
    std::string bytes;
};
using value = std::variant<std::monostate, std::int64_t, double, std::string, blob>;
using row = std::vector<value>;

struct column_info {
    std::string name;
    std::uint32_t type{0};  // 0: unknown until a row was seen
};

}  // namespace hotlane::devengine

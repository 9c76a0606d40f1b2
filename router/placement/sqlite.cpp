#include "router/placement/sqlite.hpp"

#include <sqlite3.h>

namespace hotlane::placement {

void sqlite_close::operator()(sqlite3* db) const noexcept {
    sqlite3_close_v2(db);
}

void sqlite_finalize::operator()(sqlite3_stmt* statement) const noexcept {
    sqlite3_finalize(statement);
}

sqlite_query::sqlite_query(sqlite3* db, std::string_view sql) : db_(db) {
    sqlite3_stmt* made = nullptr;
    const int code =
        sqlite3_prepare_v2(db, sql.data(), static_cast<int>(sql.size()), &made, nullptr);
    statement_.reset(made);
    if (code != SQLITE_OK) fail(code);
}

sqlite_query& sqlite_query::bind(std::string_view text) {
    if (failed_) return *this;
    // Static: the caller's text outlives the statement, which never leaves one function.
    const char* const at = text.empty() ? "" : text.data();
    const int code =
        sqlite3_bind_text64(statement_.get(), ++bound_, at, text.size(), nullptr, SQLITE_UTF8);
    if (code != SQLITE_OK) fail(code);
    return *this;
}

sqlite_query& sqlite_query::bind(std::int64_t number) {
    if (failed_) return *this;
    const int code = sqlite3_bind_int64(statement_.get(), ++bound_, number);
    if (code != SQLITE_OK) fail(code);
    return *this;
}

sqlite_step sqlite_query::step() {
    if (failed_) return sqlite_step::failed;
    const int code = sqlite3_step(statement_.get());
    if (code == SQLITE_ROW) return sqlite_step::row;
    if (code == SQLITE_DONE) return sqlite_step::done;
    fail(code);
    return sqlite_step::failed;
}

bool sqlite_query::run() {
    while (true) {
        const auto stepped = step();
        if (stepped != sqlite_step::row) return stepped == sqlite_step::done;
    }
}

std::string sqlite_query::text(int column) const {
    const auto* const bytes = sqlite3_column_text(statement_.get(), column);
    if (bytes == nullptr) return {};
    const auto size = static_cast<std::size_t>(sqlite3_column_bytes(statement_.get(), column));
    return {reinterpret_cast<const char*>(bytes), size};
}

std::int64_t sqlite_query::number(int column) const {
    return sqlite3_column_int64(statement_.get(), column);
}

void sqlite_query::fail(int code) {
    failed_ = true;
    code_ = code & 0xff;
    error_ = sqlite3_errmsg(db_);
}

std::string sqlite_script(sqlite3* db, const char* sql) {
    char* message = nullptr;
    if (sqlite3_exec(db, sql, nullptr, nullptr, &message) == SQLITE_OK) return {};
    std::string what = message == nullptr ? sqlite3_errmsg(db) : message;
    sqlite3_free(message);
    // A failed script must not leave its transaction open.
    if (sqlite3_get_autocommit(db) == 0) sqlite3_exec(db, "ROLLBACK", nullptr, nullptr, nullptr);
    return what;
}

}  // namespace hotlane::placement

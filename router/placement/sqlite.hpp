// A thin owner of one SQLite connection and of one running statement. Errors are values.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include <tl/expected.hpp>

struct sqlite3;
struct sqlite3_stmt;

namespace hotlane::placement {

struct sqlite_close {
    void operator()(sqlite3* db) const noexcept;
};
struct sqlite_finalize {
    void operator()(sqlite3_stmt* statement) const noexcept;
};
using sqlite_handle = std::unique_ptr<sqlite3, sqlite_close>;

enum class sqlite_step { row, done, failed };

// One statement, prepared, bound in order, stepped. After a failure every call is a no-op and
// error() says what happened.
class sqlite_query {
  public:
    sqlite_query(sqlite3* db, std::string_view sql);

    sqlite_query& bind(std::string_view text);
    sqlite_query& bind(std::int64_t number);
    sqlite_step step();
    // Steps to the end. False: failed; nothing was changed.
    bool run();

    [[nodiscard]] std::string text(int column) const;
    [[nodiscard]] std::int64_t number(int column) const;
    [[nodiscard]] bool failed() const noexcept { return failed_; }
    [[nodiscard]] const std::string& error() const noexcept { return error_; }
    [[nodiscard]] int code() const noexcept { return code_; }

  private:
    void fail(int code);

    sqlite3* db_;
    std::unique_ptr<sqlite3_stmt, sqlite_finalize> statement_;
    int bound_{0};
    bool failed_{false};
    int code_{0};
    std::string error_;
};

// Runs several statements. nullopt-like: empty text is success.
std::string sqlite_script(sqlite3* db, const char* sql);

}  // namespace hotlane::placement

// Opens, locks, checks and migrates a state file.
#pragma once

#include <string>

#include "router/placement/sqlite.hpp"
#include "router/placement/store.hpp"

namespace hotlane::placement {

// An flock on FILE.lock for life: the kernel drops it when the process dies, however it dies.
class file_lock {
  public:
    file_lock() = default;
    explicit file_lock(int descriptor) noexcept : descriptor_(descriptor) {}
    file_lock(file_lock&& other) noexcept;
    file_lock& operator=(file_lock&& other) noexcept;
    ~file_lock();

  private:
    int descriptor_{-1};
};

struct opened_sqlite {
    file_lock lock;  // declared first: released after the database is closed
    sqlite_handle db;
};

stored<opened_sqlite> open_sqlite(const std::string& path);

// A file that was deleted or replaced takes every write and forgets it with this process.
stored<void> still_there(sqlite3* db);

}  // namespace hotlane::placement

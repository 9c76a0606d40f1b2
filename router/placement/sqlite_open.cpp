#include "router/placement/sqlite_open.hpp"

#include <fcntl.h>
#include <sqlite3.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "router/placement/sqlite_schema.hpp"

namespace hotlane::placement {

namespace {

template <typename... Args>
tl::unexpected<store_error> failure(fmt::format_string<Args...> text, Args&&... args) {
    return tl::unexpected(store_error{fmt::format(text, std::forward<Args>(args)...)});
}

stored<file_lock> take_lock(const std::string& path) {
    const std::string name = path + ".lock";
    const int descriptor = ::open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (descriptor < 0) return failure("{}: cannot make it: {}", name, std::strerror(errno));
    file_lock held(descriptor);
    if (::flock(descriptor, LOCK_EX | LOCK_NB) == 0) {
        // The number is for the one who is refused; the lock itself is the kernel's.
        const std::string number = std::to_string(::getpid()) + "\n";
        if (::ftruncate(descriptor, 0) != 0 ||
            ::pwrite(descriptor, number.data(), number.size(), 0) < 0) {
            return failure("{}: cannot write it: {}", name, std::strerror(errno));
        }
        return held;
    }
    if (errno != EWOULDBLOCK) return failure("{}: cannot lock it: {}", name, std::strerror(errno));
    char number[16] = {};
    const auto read = ::pread(descriptor, number, sizeof number - 1, 0);
    std::string owner(number, read > 0 ? static_cast<std::size_t>(read) : 0);
    while (!owner.empty() && owner.back() == '\n')
        owner.pop_back();
    return failure("{}: another process{} has this state file open; each process needs its own",
                   path,
                   owner.empty() ? owner : " (" + owner + ")");
}

stored<std::int64_t> ask(sqlite3* db, const std::string& path, std::string_view sql) {
    sqlite_query query(db, sql);
    if (query.step() == sqlite_step::row) return query.number(0);
    if (query.code() == SQLITE_NOTADB) return failure("{}: is not a hotlane state file", path);
    if (query.code() == SQLITE_CORRUPT) return failure("{}: is damaged: {}", path, query.error());
    return failure("{}: cannot read it: {}", path, query.error());
}

// Version 0 of nobody's file with no table in it is a new file; anything else must be ours.
stored<std::int64_t> known_version(sqlite3* db, const std::string& path) {
    const auto owner = ask(db, path, "PRAGMA application_id");
    if (!owner) return owner;
    const auto version = ask(db, path, "PRAGMA user_version");
    if (!version) return version;
    const auto tables = ask(db, path, "SELECT count(*) FROM sqlite_master");
    if (!tables) return tables;
    const bool is_new = *owner == 0 && *version == 0 && *tables == 0;
    if (!is_new && *owner != sqlite_application_id) {
        return failure("{}: is not a hotlane state file", path);
    }
    if (*version > sqlite_version) {
        return failure("{}: was written by a newer hotlane (format {}, this one knows {})",
                       path,
                       *version,
                       sqlite_version);
    }
    return version;
}

stored<void> check(sqlite3* db, const std::string& path) {
    sqlite_query query(db, "PRAGMA quick_check(1)");
    if (query.step() != sqlite_step::row) {
        return failure("{}: cannot check it: {}", path, query.error());
    }
    const auto verdict = query.text(0);
    if (verdict != "ok") return failure("{}: is damaged: {}", path, verdict);
    return {};
}

stored<void> migrate(sqlite3* db, const std::string& path, std::int64_t version) {
    for (auto next = version; next < sqlite_version; ++next) {
        const auto script = fmt::format(
            "BEGIN IMMEDIATE; {} PRAGMA application_id = {}; PRAGMA user_version = {}; COMMIT;",
            sqlite_migrations[next],
            sqlite_application_id,
            next + 1);
        const auto error = sqlite_script(db, script.c_str());
        if (!error.empty()) return failure("{}: cannot set it up: {}", path, error);
    }
    return {};
}

}  // namespace

file_lock::file_lock(file_lock&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)) {}

file_lock& file_lock::operator=(file_lock&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
}

file_lock::~file_lock() {
    if (descriptor_ >= 0) ::close(descriptor_);
}

stored<opened_sqlite> open_sqlite(const std::string& path) {
    auto lock = take_lock(path);
    if (!lock) return tl::unexpected(std::move(lock).error());
    // Made by us first, so that nobody else may read it whatever the umask is.
    const int made = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (made < 0) return failure("{}: cannot open it: {}", path, std::strerror(errno));
    ::close(made);
    sqlite3* raw = nullptr;
    const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX;
    const int code = sqlite3_open_v2(path.c_str(), &raw, flags, nullptr);
    sqlite_handle db(raw);
    if (code != SQLITE_OK) {
        return failure("{}: cannot open it: {}", path, raw ? sqlite3_errmsg(raw) : "no memory");
    }
    sqlite3_extended_result_codes(raw, 1);
    // Exclusive mode keeps SQLite's own lock too and needs no shared-memory file beside the log.
    auto error = sqlite_script(raw, "PRAGMA locking_mode = EXCLUSIVE");
    const auto version = known_version(raw, path);
    if (!version) return tl::unexpected(version.error());
    error = sqlite_script(raw,
                          "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;"
                          "PRAGMA foreign_keys = ON; PRAGMA trusted_schema = OFF");
    if (!error.empty()) return failure("{}: cannot set it up: {}", path, error);
    if (auto sound = check(raw, path); !sound) return tl::unexpected(sound.error());
    if (auto ready = migrate(raw, path, *version); !ready) return tl::unexpected(ready.error());
    return opened_sqlite{std::move(*lock), std::move(db)};
}

stored<void> still_there(sqlite3* db) {
    int moved = 0;
    if (sqlite3_file_control(db, "main", SQLITE_FCNTL_HAS_MOVED, &moved) != SQLITE_OK || moved == 0)
        return {};
    return failure(
        "state file: it was deleted or replaced while hotlane ran; put it back, or restart hotlane "
        "(it then asks the homes)");
}

}  // namespace hotlane::placement

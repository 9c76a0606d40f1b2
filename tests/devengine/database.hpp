// One database: its file, its lane, what was committed when, and the thread that makes commits
// durable in batches.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <vector>

#include "tests/devengine/lane.hpp"
#include "tests/devengine/options.hpp"
#include "tests/devengine/sqlite.hpp"

namespace hotlane::devengine {

// Which tables the last prepared statement of a connection reads and changes.
struct access_list {
    std::set<std::string> reads;
    std::set<std::string> changes;
    void clear() {
        reads.clear();
        changes.clear();
    }
};

struct table_facts {
    std::int64_t rows{0};
    bool keyed{false};  // has a primary key or a UNIQUE: each insert scans for it
};

class database {
  public:
    database(database_options where, costs cost);
    ~database();
    database(const database&) = delete;
    database& operator=(const database&) = delete;

    [[nodiscard]] const costs& cost() const noexcept { return cost_; }
    [[nodiscard]] const database_options& where() const noexcept { return where_; }

    // A connection of one client, for reading. Throws when the file cannot be opened.
    db_handle open_reader(access_list& access) const;

    // The number of the last durable change: what a snapshot taken now is sure to see.
    [[nodiscard]] std::uint64_t take_snapshot();
    void drop_snapshot(std::uint64_t snapshot);

    // ---- the lane. Between enter() and leave_*() the caller alone uses writer(). ----
    [[nodiscard]] bool enter(std::uint64_t snapshot);
    [[nodiscard]] sqlite3* writer() const noexcept { return writer_.get(); }
    [[nodiscard]] access_list& writer_access() noexcept { return writer_access_; }
    // Row changes so far, to be cut back when a statement or a savepoint is undone.
    [[nodiscard]] std::size_t change_count() const noexcept { return changes_.size(); }
    void cut_changes(std::size_t count) { changes_.resize(count); }
    // The commit that a changed row collided with since the last call, 0 for none.
    [[nodiscard]] std::uint64_t take_conflict() noexcept { return std::exchange(conflict_, 0); }
    [[nodiscard]] bool has_conflict() const noexcept { return conflict_ != 0; }
    [[nodiscard]] bool inserted_since(const std::string& table) const;
    // Commits and hands the lane off. The number to wait for; 0 when nothing was changed.
    result<std::uint64_t> leave_committed();
    void leave_rolled_back();
    void wait_durable(std::uint64_t number);

    // Runs one DDL statement alone: a barrier behind everything in flight.
    result<void> run_ddl(const std::string& sql, const std::string& from, const std::string& to);
    [[nodiscard]] std::uint64_t ddl_epoch() const noexcept { return ddl_epoch_.load(); }
    [[nodiscard]] table_facts facts_of(const std::string& table) const;

    [[nodiscard]] std::vector<std::pair<std::string, std::int64_t>> stats() const;
    void close();  // no writer gets in any more

  private:
    struct change {
        std::string table;
        std::int64_t rowid;
        int rows;  // -1, 0, +1
    };
    struct batch {
        std::uint64_t number;
        std::uint64_t commits;
        std::chrono::steady_clock::time_point due;
    };
    struct table_log {
        std::unordered_map<std::int64_t, std::uint64_t> written;
        std::uint64_t last_insert{0};
    };

    static void on_change(void* self,
                          sqlite3* handle,
                          int operation,
                          const char* schema,
                          const char* table,
                          sqlite3_int64 before,
                          sqlite3_int64 after);
    void note(const char* table, std::int64_t rowid, int operation);
    void remember(std::uint64_t number);
    void forget_old();
    void refresh_facts();
    std::uint64_t queue(bool counts);
    result<void> execute_ddl(const std::string& sql,
                             const std::string& from,
                             const std::string& to);
    void make_durable();  // the committer thread
    void sync_batch(std::unique_lock<std::mutex>& lock);
    void acknowledge_due();

    database_options where_;
    costs cost_;
    db_handle writer_;
    access_list writer_access_;
    access_list checkpointer_access_;
    db_handle checkpointer_;  // of the committer thread
    lane lane_;
    int wal_{-1};

    // Owned by whoever is in the lane.
    std::uint64_t snapshot_{0};
    std::uint64_t conflict_{0};
    std::vector<change> changes_;

    mutable std::mutex mutex_;  // guards what follows
    std::condition_variable durable_changed_;
    std::condition_variable work_;
    std::uint64_t queued_{0};   // the last number whose records were written
    std::uint64_t synced_{0};   // the last number whose records are on disk
    std::uint64_t durable_{0};  // the last number that was acknowledged
    std::uint64_t commits_queued_{0};
    std::uint64_t commits_{0};
    std::uint64_t batches_{0};
    std::uint64_t checkpoint_at_{0};
    std::deque<batch> batches_in_flight_;
    std::uint64_t records_{0};
    std::multiset<std::uint64_t> snapshots_;
    std::map<std::string, table_log> log_;
    std::size_t log_size_{0};
    std::map<std::string, table_facts> facts_;
    bool stopping_{false};

    std::atomic<std::uint64_t> ddl_epoch_{0};
    std::thread committer_;
};

// Runs SQL whose failure would be a bug of the engine; throws then.
void must(sqlite3* handle, const std::string& sql);
std::int64_t ask_number(sqlite3* handle, const std::string& sql);
std::string quote_name(std::string_view name);

}  // namespace hotlane::devengine

#include "tests/devengine/database.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <stdexcept>

namespace hotlane::devengine {

namespace {

constexpr std::uint64_t batches_per_checkpoint = 200;

int note_access(
    void* target, int action, const char* table, const char*, const char*, const char*) {
    auto& access = *static_cast<access_list*>(target);
    if (action == SQLITE_READ && table != nullptr) access.reads.insert(table);
    if ((action == SQLITE_INSERT || action == SQLITE_UPDATE || action == SQLITE_DELETE) &&
        table != nullptr)
        access.changes.insert(table);
    return SQLITE_OK;
}

// Functions that applications of the other home use and the engine knows as well.
void configure(sqlite3* handle, access_list& access) {
    sqlite3_db_config(handle, SQLITE_DBCONFIG_DQS_DML, 0, nullptr);
    sqlite3_db_config(handle, SQLITE_DBCONFIG_DQS_DDL, 0, nullptr);
    sqlite3_db_config(handle, SQLITE_DBCONFIG_LEGACY_ALTER_TABLE, 1, nullptr);
    sqlite3_db_config(handle, SQLITE_DBCONFIG_ENABLE_FKEY, 0, nullptr);
    sqlite3_busy_timeout(handle, 10'000);
    must(handle, "PRAGMA synchronous = OFF");  // the committer syncs the log itself
    must(handle, "PRAGMA wal_autocheckpoint = 0");
    sqlite3_set_authorizer(handle, note_access, &access);
}

db_handle open_file(const std::filesystem::path& file) {
    sqlite3* raw = nullptr;
    const int code = sqlite3_open(file.c_str(), &raw);
    db_handle handle(raw);
    if (code != SQLITE_OK) throw std::runtime_error("cannot open " + file.string());
    return handle;
}

}  // namespace

void must(sqlite3* handle, const std::string& sql) {
    if (sqlite3_exec(handle, sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK)
        throw std::runtime_error(sql + ": " + sqlite3_errmsg(handle));
}

std::int64_t ask_number(sqlite3* handle, const std::string& sql) {
    sqlite3_stmt* raw = nullptr;
    sqlite3_prepare_v2(handle, sql.c_str(), -1, &raw, nullptr);
    const stmt_handle query(raw);
    return raw != nullptr && sqlite3_step(raw) == SQLITE_ROW ? sqlite3_column_int64(raw, 0) : 0;
}

std::string quote_name(std::string_view name) {
    std::string quoted = "\"";
    for (const char c : name) {
        if (c == '"') quoted.push_back('"');
        quoted.push_back(c);
    }
    return quoted + "\"";
}

database::database(database_options where, costs cost) : where_(std::move(where)), cost_(cost) {
    writer_ = open_file(where_.file);
    must(writer_.get(), "PRAGMA journal_mode = WAL");
    configure(writer_.get(), writer_access_);
    // The number of the last change lives in the file's header and changes with the data.
    queued_ = synced_ = durable_ =
        static_cast<std::uint64_t>(ask_number(writer_.get(), "PRAGMA user_version"));
    must(writer_.get(), "PRAGMA user_version = " + std::to_string(durable_));  // makes the log file
    refresh_facts();
    wal_ = ::open((where_.file.string() + "-wal").c_str(), O_RDONLY | O_CLOEXEC);
    sqlite3_preupdate_hook(writer_.get(), &database::on_change, this);
    checkpointer_ = open_reader(checkpointer_access_);
    committer_ = std::thread([this] { make_durable(); });
}

database::~database() {
    close();
    {
        const std::lock_guard lock(mutex_);
        stopping_ = true;
        work_.notify_all();
    }
    committer_.join();
    if (wal_ >= 0) ::close(wal_);
}

void database::close() {
    lane_.close();
}

db_handle database::open_reader(access_list& access) const {
    auto handle = open_file(where_.file);
    configure(handle.get(), access);
    return handle;
}

std::uint64_t database::take_snapshot() {
    const std::lock_guard lock(mutex_);
    snapshots_.insert(durable_);
    return durable_;
}

void database::drop_snapshot(std::uint64_t snapshot) {
    const std::lock_guard lock(mutex_);
    snapshots_.erase(snapshots_.find(snapshot));
}

bool database::enter(std::uint64_t snapshot) {
    if (!lane_.acquire()) return false;
    snapshot_ = snapshot;
    conflict_ = 0;
    changes_.clear();
    must(writer_.get(), "BEGIN IMMEDIATE");
    return true;
}

result<std::uint64_t> database::leave_committed() {
    if (changes_.empty()) {
        leave_rolled_back();
        return 0U;
    }
    std::uint64_t number = 0;
    {
        const std::lock_guard lock(mutex_);
        number = queued_ + 1;
    }
    must(writer_.get(), "PRAGMA user_version = " + std::to_string(number));
    remember(number);
    must(writer_.get(), "COMMIT");
    queue(true);
    lane_.release();
    return number;
}

void database::leave_rolled_back() {
    must(writer_.get(), "ROLLBACK");
    changes_.clear();
    lane_.release();
}

std::uint64_t database::queue(bool counts) {
    const std::lock_guard lock(mutex_);
    ++queued_;
    ++records_;
    if (counts) ++commits_queued_;
    work_.notify_one();
    return queued_;
}

void database::wait_durable(std::uint64_t number) {
    std::unique_lock lock(mutex_);
    durable_changed_.wait(lock, [&] { return durable_ >= number; });
}

// Syncs whatever was queued meanwhile as one batch; batches overlap, as uploads do, and each is
// acknowledged when its latency is over.
void database::make_durable() {
    std::unique_lock lock(mutex_);
    for (;;) {
        const auto ready = [&] { return stopping_ || queued_ > synced_; };
        if (batches_in_flight_.empty())
            work_.wait(lock, ready);
        else
            work_.wait_until(lock, batches_in_flight_.front().due, ready);
        if (queued_ > synced_) sync_batch(lock);
        acknowledge_due();
        if (stopping_ && queued_ == durable_) return;
        if (batches_ < checkpoint_at_) continue;
        checkpoint_at_ = batches_ + batches_per_checkpoint;
        lock.unlock();
        sqlite3_wal_checkpoint_v2(
            checkpointer_.get(), nullptr, SQLITE_CHECKPOINT_PASSIVE, nullptr, nullptr);
        lock.lock();
    }
}

void database::sync_batch(std::unique_lock<std::mutex>& lock) {
    const auto due = std::chrono::steady_clock::now() + cost_.commit_latency;
    const batch next{.number = queued_, .commits = commits_queued_, .due = due};
    lock.unlock();
    if (wal_ >= 0) ::fdatasync(wal_);
    lock.lock();
    synced_ = next.number;
    ++batches_;
    batches_in_flight_.push_back(next);
}

void database::acknowledge_due() {
    const auto now = std::chrono::steady_clock::now();
    while (!batches_in_flight_.empty() && batches_in_flight_.front().due <= now) {
        durable_ = batches_in_flight_.front().number;
        commits_ = batches_in_flight_.front().commits;
        batches_in_flight_.pop_front();
        durable_changed_.notify_all();
    }
}

std::vector<std::pair<std::string, std::int64_t>> database::stats() const {
    const auto lane = lane_.counters();
    const std::lock_guard lock(mutex_);
    const auto number = [](std::uint64_t n) { return static_cast<std::int64_t>(n); };
    return {{"twill_commit_total", number(commits_)},
            {"twill_durable_append_total", number(batches_)},
            {"twill_committed_lsn", number(durable_)},
            {"twill_write_lane_acquire_total", number(lane.acquires)},
            {"twill_write_handoff_total", number(lane.handoffs)},
            {"twill_write_wait_us_total", number(lane.wait_us)},
            {"twill_storage_wal_appends_total", number(records_)},
            {"twill_storage_wal_bytes_total", number(records_ * 4096)},
            {"twill_storage_page_reads_total", 0},
            {"twill_storage_page_read_bytes_total", 0},
            {"twill_storage_cache_hits_total", 0},
            {"twill_storage_cache_misses_total", 0},
            {"twill_storage_fetch_latency_us_total", 0},
            {"twill_storage_fsync_total", number(batches_)}};
}

}  // namespace hotlane::devengine

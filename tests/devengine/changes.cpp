// What a writer changed, which rows were written by whom since, and DDL.
#include <algorithm>

#include "tests/devengine/database.hpp"

namespace hotlane::devengine {

namespace {

constexpr std::size_t log_size_max = 200'000;  // rows remembered before old ones are forgotten

}  // namespace

void database::on_change(void* self,
                         sqlite3*,
                         int operation,
                         const char* schema,
                         const char* table,
                         sqlite3_int64 before,
                         sqlite3_int64 after) {
    if (std::string_view(schema) != "main") return;
    auto& owner = *static_cast<database*>(self);
    owner.note(table, operation == SQLITE_INSERT ? after : before, operation);
    if (operation == SQLITE_UPDATE && before != after) owner.note(table, after, operation);
}

// First committer wins: a row that somebody else wrote after our snapshot is not ours to write. A
// new row is checked by its key instead (inserted_since), since its number may be reused.
void database::note(const char* table, std::int64_t rowid, int operation) {
    const int rows = operation == SQLITE_INSERT ? 1 : operation == SQLITE_DELETE ? -1 : 0;
    changes_.push_back({table, rowid, rows});
    if (operation == SQLITE_INSERT) return;
    const std::lock_guard lock(mutex_);
    const auto log = log_.find(table);
    if (log == log_.end()) return;
    const auto last = log->second.written.find(rowid);
    if (last != log->second.written.end() && last->second > snapshot_)
        conflict_ = std::max(conflict_, last->second);
}

bool database::inserted_since(const std::string& table) const {
    const std::lock_guard lock(mutex_);
    const auto log = log_.find(table);
    return log != log_.end() && log->second.last_insert > snapshot_;
}

void database::remember(std::uint64_t number) {
    const std::lock_guard lock(mutex_);
    for (const auto& c : changes_) {
        auto& log = log_[c.table];
        log_size_ += log.written.insert_or_assign(c.rowid, number).second ? 1U : 0U;
        if (c.rows > 0) log.last_insert = number;
        facts_[c.table].rows += c.rows;
    }
    if (log_size_ > log_size_max) forget_old();
}

// A row that every snapshot in use has seen can conflict with nobody.
void database::forget_old() {
    const auto oldest = snapshots_.empty() ? durable_ : *snapshots_.begin();
    log_size_ = 0;
    for (auto& [table, log] : log_) {
        std::erase_if(log.written, [&](const auto& entry) { return entry.second <= oldest; });
        log_size_ += log.written.size();
    }
}

table_facts database::facts_of(const std::string& table) const {
    const std::lock_guard lock(mutex_);
    for (const auto& [name, facts] : facts_)
        if (sqlite3_stricmp(name.c_str(), table.c_str()) == 0) return facts;
    return {};
}

void database::refresh_facts() {
    std::map<std::string, table_facts> fresh;
    sqlite3_stmt* raw = nullptr;
    sqlite3_prepare_v2(writer_.get(),
                       "SELECT name, EXISTS (SELECT 1 FROM pragma_table_info(m.name) WHERE pk > 0) "
                       "OR EXISTS (SELECT 1 FROM pragma_index_list(m.name) WHERE \"unique\") "
                       "FROM sqlite_master m WHERE type = 'table' AND name NOT LIKE 'sqlite!_%' "
                       "ESCAPE '!'",
                       -1,
                       &raw,
                       nullptr);
    const stmt_handle tables(raw);
    while (raw != nullptr && sqlite3_step(raw) == SQLITE_ROW) {
        const std::string name = reinterpret_cast<const char*>(sqlite3_column_text(raw, 0));
        fresh[name].keyed = sqlite3_column_int(raw, 1) != 0;
        const auto known = facts_.find(name);
        fresh[name].rows =
            known != facts_.end()
                ? known->second.rows
                : ask_number(writer_.get(), "SELECT count(*) FROM " + quote_name(name));
    }
    const std::lock_guard lock(mutex_);
    facts_ = std::move(fresh);
}

result<void> database::execute_ddl(const std::string& sql,
                                   const std::string& from,
                                   const std::string& to) {
    const auto schema_before = ask_number(writer_.get(), "PRAGMA schema_version");
    if (sqlite3_exec(writer_.get(), sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) {
        const std::string message = sqlite3_errmsg(writer_.get());
        leave_rolled_back();
        return plain_error(message);
    }
    if (ask_number(writer_.get(), "PRAGMA schema_version") == schema_before && changes_.empty()) {
        leave_rolled_back();
        return {};
    }
    std::uint64_t number = 0;
    {
        const std::lock_guard lock(mutex_);
        number = queued_ + 1;
        if (!to.empty()) {
            const auto move_entry = [&](auto& map) {
                auto node = map.extract(from);
                map.erase(to);
                if (node.empty()) return;
                node.key() = to;
                map.insert(std::move(node));
            };
            move_entry(log_);
            move_entry(facts_);
        }
    }
    must(writer_.get(), "PRAGMA user_version = " + std::to_string(number));
    must(writer_.get(), "COMMIT");
    changes_.clear();
    refresh_facts();
    ++ddl_epoch_;
    queue(false);
    lane_.release();
    wait_durable(number);
    return {};
}

result<void> database::run_ddl(const std::string& sql,
                               const std::string& from,
                               const std::string& to) {
    if (!enter(take_snapshot())) return plain_error("the engine is stopping");
    drop_snapshot(snapshot_);
    std::uint64_t in_flight = 0;
    {
        const std::lock_guard lock(mutex_);
        in_flight = queued_;
    }
    wait_durable(in_flight);
    return execute_ddl(sql, from, to);
}

}  // namespace hotlane::devengine

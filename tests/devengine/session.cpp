#include "tests/devengine/session.hpp"

#include <thread>

#include "tests/devengine/show.hpp"
#include "tests/devengine/values.hpp"

namespace hotlane::devengine {

namespace {

constexpr std::chrono::microseconds cost_min{20};  // a shorter sleep lasts longer than that

std::string message_of(sqlite3* handle) {
    return sqlite3_errmsg(handle);
}

bool is_unique_failure(sqlite3* handle) {
    const int code = sqlite3_extended_errcode(handle);
    return code == SQLITE_CONSTRAINT_UNIQUE || code == SQLITE_CONSTRAINT_PRIMARYKEY ||
           code == SQLITE_CONSTRAINT_ROWID;
}

}  // namespace

session::session(database& home) : home_(home), reader_(home.open_reader(access_)) {}

session::~session() {
    if (in_block_) (void)rollback();
}

wire::transaction_status session::status() const noexcept {
    if (!in_block_) return wire::transaction_status::idle;
    return failed_ ? wire::transaction_status::failed : wire::transaction_status::in_block;
}

void session::note_failure() noexcept {
    failed_ = in_block_;
}

result<stmt_handle> session::prepare(sqlite3* handle, access_list& access, const std::string& sql) {
    access.clear();
    sqlite3_stmt* raw = nullptr;
    const int size = static_cast<int>(sql.size());
    if (sqlite3_prepare_v2(handle, sql.data(), size, &raw, nullptr) != SQLITE_OK)
        return plain_error(message_of(handle));
    if (raw == nullptr) return plain_error("syntax error");
    return stmt_handle(raw);
}

result<cursor> session::execute(const statement& s, const std::vector<value>& parameters) {
    auto answer = execute_inner(s, parameters);
    if (!answer) note_failure();
    return answer;
}

result<cursor> session::execute_inner(const statement& s, const std::vector<value>& parameters) {
    switch (s.kind) {
        case statement_kind::empty:
            return cursor("");
        case statement_kind::read:
            return read(s, parameters);
        case statement_kind::write:
            return write(s, parameters);
        case statement_kind::ddl:
            return ddl(s);
        case statement_kind::begin:
            return begin(s);
        case statement_kind::commit:
            return commit();
        case statement_kind::rollback:
            return rollback();
        case statement_kind::savepoint:
        case statement_kind::release:
        case statement_kind::rollback_to:
            return change_savepoint(s);
        case statement_kind::show:
            return show(s);
        case statement_kind::nothing:
            return cursor(s.verb);
    }
    return plain_error("unsupported statement");
}

// ---- transactions ----

result<cursor> session::begin(const statement& s) {
    if (in_block_) return fail("25000", "cannot start a transaction within a transaction");
    in_block_ = true;
    failed_ = false;
    return cursor(s.verb);
}

// The snapshot's number is taken first, so that what is read holds at least what it promises.
void session::begin_snapshot() {
    if (!has_snapshot_) {
        snapshot_ = home_.take_snapshot();
        has_snapshot_ = true;
        ddl_epoch_ = home_.ddl_epoch();
        must(reader_.get(), "BEGIN");
    } else if (!writing_ && ddl_epoch_ != home_.ddl_epoch()) {
        // Names are not part of a snapshot: after a rename a transaction finds the new ones.
        ddl_epoch_ = home_.ddl_epoch();
        if (sqlite3_exec(reader_.get(), "COMMIT", nullptr, nullptr, nullptr) == SQLITE_OK)
            must(reader_.get(), "BEGIN");
    }
}

void session::end_block() {
    if (has_snapshot_) {
        home_.drop_snapshot(snapshot_);
        sqlite3_exec(reader_.get(), "ROLLBACK", nullptr, nullptr, nullptr);
    }
    in_block_ = failed_ = has_snapshot_ = writing_ = false;
    savepoints_.clear();
}

result<cursor> session::commit() {
    if (!in_block_) return fail("25000", "cannot commit: no transaction is active");
    std::uint64_t number = 0;
    if (writing_) {
        const auto committed = home_.leave_committed();
        if (committed) number = *committed;
    }
    end_block();
    home_.wait_durable(number);
    return cursor("COMMIT");
}

result<cursor> session::rollback() {
    if (!in_block_) return fail("25000", "cannot rollback: no transaction is active");
    if (writing_) home_.leave_rolled_back();
    end_block();
    return cursor("ROLLBACK");
}

bool session::enter_block() {
    if (writing_) return true;
    if (!home_.enter(snapshot_)) return false;
    writing_ = true;
    for (const auto& point : savepoints_)
        must(home_.writer(), "SAVEPOINT " + quote_name(point.name));
    return true;
}

result<cursor> session::change_savepoint(const statement& s) {
    if (!in_block_) return fail("25000", "savepoints need a transaction");
    if (s.kind == statement_kind::savepoint) {
        savepoints_.push_back({s.name, writing_ ? home_.change_count() : 0});
        if (writing_) must(home_.writer(), "SAVEPOINT " + quote_name(s.name));
        return cursor("SAVEPOINT");
    }
    auto at = savepoints_.size();
    while (at > 0 && sqlite3_stricmp(savepoints_[at - 1].name.c_str(), s.name.c_str()) != 0)
        --at;
    if (at == 0) return plain_error("no such savepoint: " + s.name);
    if (s.kind == statement_kind::release) {
        if (writing_) must(home_.writer(), "RELEASE " + quote_name(s.name));
        savepoints_.resize(at - 1);
        return cursor("RELEASE");
    }
    if (writing_) {
        must(home_.writer(), "ROLLBACK TO " + quote_name(s.name));
        home_.cut_changes(savepoints_[at - 1].changes);
    }
    savepoints_.resize(at);
    return cursor("ROLLBACK");
}

// ---- statements ----

result<cursor> session::read(const statement& s, const std::vector<value>& parameters) {
    if (in_block_) begin_snapshot();
    if (s.uses_stats) fill_stats();
    sqlite3* handle = writing_ && !s.uses_stats ? home_.writer() : reader_.get();
    auto& access = writing_ && !s.uses_stats ? home_.writer_access() : access_;
    auto prepared = prepare(handle, access, s.sql);
    if (!prepared) {
        if (auto empty = answer_of_empty_table(s, prepared.error())) return std::move(*empty);
        return tl::unexpected(prepared.error());
    }
    if (sqlite3_stmt_readonly(prepared->get()) == 0) return plain_error("unsupported statement");
    for (std::size_t i = 0; i < parameters.size(); ++i)
        bind(prepared->get(), static_cast<int>(i) + 1, parameters[i]);
    nanoseconds scan{0};
    for (const auto& table : access.reads)
        scan += home_.cost().read_scan * home_.facts_of(table).rows;
    if (scan > cost_min) std::this_thread::sleep_for(scan);
    cursor answer(std::move(*prepared), "SELECT");
    answer.charge(home_.cost().returned_row);
    if (const auto opened = answer.open(handle); !opened) return tl::unexpected(opened.error());
    return answer;
}

result<cursor> session::write(const statement& s, const std::vector<value>& parameters) {
    return in_block_ ? write_in_block(s, parameters) : write_alone(s, parameters);
}

// An autocommit write takes its snapshot when it arrives and then queues for the lane.
result<cursor> session::write_alone(const statement& s, const std::vector<value>& parameters) {
    const auto snapshot = home_.take_snapshot();
    spend_before_lane(s);
    if (!home_.enter(snapshot)) return plain_error("the engine is stopping");
    auto answer = run_in_lane(s, parameters);
    const auto collided = home_.take_conflict();
    if (!answer) {
        home_.leave_rolled_back();
        home_.drop_snapshot(snapshot);
        home_.wait_durable(collided);  // whether the other one stays is known only then
        return answer;
    }
    const auto number = home_.leave_committed();
    home_.drop_snapshot(snapshot);
    if (!number) return tl::unexpected(number.error());
    home_.wait_durable(*number);
    return answer;
}

result<cursor> session::write_in_block(const statement& s, const std::vector<value>& parameters) {
    begin_snapshot();
    spend_before_lane(s);
    if (!enter_block()) return plain_error("the engine is stopping");
    const auto changes = home_.change_count();
    must(home_.writer(), "SAVEPOINT twill_statement");
    auto answer = run_in_lane(s, parameters);
    (void)home_.take_conflict();
    if (!answer) {
        must(home_.writer(), "ROLLBACK TO twill_statement");
        home_.cut_changes(changes);
    }
    must(home_.writer(), "RELEASE twill_statement");
    return answer;
}

result<cursor> session::run_in_lane(const statement& s, const std::vector<value>& parameters) {
    sqlite3* handle = home_.writer();
    auto prepared = prepare(handle, home_.writer_access(), s.sql);
    if (!prepared) {
        if (auto empty = answer_of_empty_table(s, prepared.error())) return std::move(*empty);
        return tl::unexpected(prepared.error());
    }
    spend_in_lane(s);
    for (std::size_t i = 0; i < parameters.size(); ++i)
        bind(prepared->get(), static_cast<int>(i) + 1, parameters[i]);
    const auto changes_before = sqlite3_total_changes64(handle);
    const auto inserted_table = s.tables.empty() ? std::string() : s.tables.front();
    auto answer = collect(handle, std::move(*prepared), s.verb);
    const auto conflict = fail("40001", "write conflict: row changed since the snapshot");
    const bool same_key =
        !answer && is_unique_failure(handle) && home_.inserted_since(inserted_table);
    if (home_.has_conflict() || same_key) {
        std::this_thread::sleep_for(home_.cost().conflict);
        return conflict;
    }
    if (!answer) return answer;
    const auto changed = sqlite3_total_changes64(handle) - changes_before;
    // A single row costs this much anyway.
    if (s.verb == "INSERT" && changed > 1)
        std::this_thread::sleep_for(home_.cost().inserted_row * changed);
    answer->set_tag((s.verb == "INSERT" ? "INSERT 0 " : s.verb + " ") + std::to_string(changed));
    return answer;
}

nanoseconds session::scan_cost(const statement& s, const access_list& access) const {
    auto tables = access.reads;
    for (const auto& table : access.changes)
        if (s.verb != "INSERT" || home_.facts_of(table).keyed) tables.insert(table);
    nanoseconds cost{0};
    for (const auto& table : tables)
        cost += home_.cost().write_scan * home_.facts_of(table).rows;
    return cost;
}

void session::spend_before_lane(const statement& s) {
    if (!prepare(reader_.get(), access_, s.sql)) return;
    const auto cost = scan_cost(s, access_) * (100 - home_.cost().scan_in_lane_percent) / 100;
    if (cost > cost_min) std::this_thread::sleep_for(cost);
}

void session::spend_in_lane(const statement& s) const {
    auto cost = scan_cost(s, home_.writer_access()) * home_.cost().scan_in_lane_percent / 100;
    if (s.verb != "INSERT") cost += home_.cost().update_base;
    if (cost > cost_min) std::this_thread::sleep_for(cost);
}

result<cursor> session::ddl(const statement& s) {
    if (in_block_) return fail("25000", "DDL cannot run inside a transaction");
    auto sql = s.sql;
    if (!s.create_if_absent.empty()) sql = shadow_view(reader_.get(), s.create_if_absent) + sql;
    const auto from = s.tables.empty() ? std::string() : s.tables.front();
    const auto done = home_.run_ddl(sql, from, s.rename_to);
    if (!done) return tl::unexpected(done.error());
    return cursor(s.verb);
}

result<cursor> session::show(const statement& s) {
    if (in_block_) begin_snapshot();
    return answer_show(s.name, home_, writing_ ? home_.writer() : reader_.get());
}

void session::fill_stats() {
    must(reader_.get(), "CREATE TEMP TABLE IF NOT EXISTS twill_stats (metric text, value integer)");
    must(reader_.get(), "DELETE FROM temp.twill_stats");
    for (const auto& [metric, number] : home_.stats())
        must(reader_.get(),
             "INSERT INTO temp.twill_stats VALUES ('" + metric + "', " + std::to_string(number) +
                 ")");
}

}  // namespace hotlane::devengine

// One pass of a copy that runs ahead (ahead_back.hpp): every staged table is brought to one
// snapshot.
#include <fmt/format.h>
#include <algorithm>
#include <charconv>

#include "router/move/ahead_back.hpp"
#include "router/move/ahead_parts.hpp"
#include "router/sql/facts.hpp"

namespace hotlane::move {
namespace {

constexpr std::string_view undefined_table = "42P01";

}  // namespace

outcome ahead_back::pass(pass_figures& out) {
    const auto start = steady::now();
    if (auto looked = look_around(); !looked) return looked;
    auto ready = take_snapshot(out);
    if (!ready || out.yielded) return ready;
    if (auto read = changes_.read_to_mark(); !read) return read;
    auto changed = changes_.feed().take_pass();
    if (auto went = bring_up(changed, out); !went || out.yielded) return went;
    if (auto ended = send(*reader_, "COMMIT"); !ended)
        return postgres_failed("reading the tables", ended.error());
    // Behind the end of the transaction: reading back takes long, and locks nobody then.
    for (std::size_t i = 0; i < tables_.size(); ++i)
        if (tables_[i].followed && changed[i].whole() && commits_then_)
            if (auto same = read_back(i); !same) return same;
    out.took = since(start);
    return {};
}

outcome ahead_back::open_reader() {
    if (reader_ && reader_->alive()) return {};
    auto opened = m_.with.homes.open(policy::home_kind::postgres, m_.with.limit.connect);
    if (!opened) return postgres_failed("connecting", opened.error());
    reader_ = std::move(*opened);
    reader_->set_deadline(m_.with.limit.scan);
    const auto pid = ask_one(*reader_, "SELECT pg_backend_pid()");
    if (!pid) return postgres_failed("connecting", pid.error());
    std::from_chars(pid->data(), pid->data() + pid->size(), reader_pid_);
    return {};
}

// The locks come before the snapshot, so that no TRUNCATE falls between the two: it would empty a
// table for a snapshot that is older than itself.
outcome ahead_back::take_snapshot(pass_figures& out) {
    const plan& p = m_.made();
    std::string tables;
    for (std::size_t i = 0; i < tables_.size(); ++i)
        if (tables_[i].followed)
            tables += fmt::format("{}{}.{}",
                                  tables.empty() ? "" : ", ",
                                  sql::quote_identifier(p.schema),
                                  sql::quote_identifier(p.tables[i].name));
    const auto start = steady::now();
    for (;;) {
        if (auto opened = open_reader(); !opened) return opened;
        auto begun = send(*reader_,
                          fmt::format("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL "
                                      "lock_timeout = {}; LOCK TABLE {} IN ACCESS SHARE MODE",
                                      m_.with.limit.lock.count(),
                                      tables));
        if (!begun && begun.error().sqlstate == lock_not_available) return give_way(out);
        if (!begun && begun.error().sqlstate == undefined_table)
            return tl::unexpected(tables_changed());
        if (!begun) return postgres_failed("reading the tables", begun.error());
        const auto text = ask_one(*reader_, "SELECT pg_current_snapshot()");
        if (!text) return postgres_failed("reading a snapshot", text.error());
        const auto snapshot = snapshot_view::read(*text);
        if (!snapshot)
            return postgres_failed("reading a snapshot", {"", snapshot.error(), fate::refused});
        if (changes_.feed().read_at(*snapshot)) return {};
        rollback(*reader_);
        if (auto late = may_go_on(m_); !late) return late;
        if (since(start) > limits_.snapshot_wait)
            return tl::unexpected(refusal{"open_transactions",
                                          "transactions that are committed stay invisible",
                                          "see what their COMMITs wait for (a standby?)"});
        if (auto slept = send(*reader_, "SELECT pg_sleep(0.005)"); !slept)
            return postgres_failed("waiting", slept.error());
    }
}

// Somebody's statement and our reading are in each other's way: ours ends, so that a migration
// never waits for a copy, nor the tool for the migration.
outcome ahead_back::give_way(pass_figures& out) {
    reader_.reset();
    gives_way_ = false;
    out.yielded = true;
    if (++yields_ <= limits_.yields_max) return may_go_on(m_);
    return tl::unexpected(refusal{"schema_changed",
                                  "statements that lock whole tables are at work",
                                  "try again when no migration runs"});
}

outcome ahead_back::bring_up(std::vector<key_set>& changed, pass_figures& out) {
    const rows_from from{*reader_, m_.made().schema, [this] { return go_on(); }};
    for (std::size_t i = 0; i < tables_.size(); ++i) {
        if (!tables_[i].followed || changed[i].empty()) continue;
        out.whole += changed[i].whole() ? 1U : 0U;
        out.keys += changed[i].size();
        const auto went = bring_table(i, changed[i], from);
        if (went) continue;
        if (!gives_way_) return went;
        // Half of it may be done.
        changes_.feed().count_whole(i);
        for (auto k = i + 1; k < tables_.size(); ++k)
            if (tables_[k].followed) changes_.feed().put_back(k, changed[k]);
        return give_way(out);
    }
    return {};
}

outcome ahead_back::bring_table(std::size_t i, const key_set& changed, const rows_from& from) {
    if (changed.whole()) return copy_whole(i, from);
    auto& s = tables_[i];
    if (auto went = settle(i, changed.keys(), from); !went) return went;
    return check_rows(m_, m_.made().tables[i], s.name, s.keys, s.row_bytes, s.settled);
}

outcome ahead_back::settle(std::size_t i, std::vector<key_values> keys, const rows_from& from) {
    auto& s = tables_[i];
    table& t = m_.made().tables[i];
    s.keys = std::move(keys);
    if (auto went = settle_rows(m_, t, from, s.name, s.keys, s.row_bytes, s.settled); !went)
        return went;
    commits_ += s.settled.commits;
    t.rows = t.rows - s.settled.went + s.settled.came;
    t.sum.subtract(s.settled.gone);
    t.sum.add(s.settled.put);
    return {};
}

outcome ahead_back::copy_whole(std::size_t i, const rows_from& from) {
    auto& s = tables_[i];
    table& t = m_.made().tables[i];
    if (s.filled) {
        auto emptied = m_.engine().exec("DELETE FROM " + sql::quote_identifier(s.name));
        if (!emptied) return engine_failed("emptying the copy of " + t.name, emptied.error());
        commits_ += emptied->affected > 0 ? 1U : 0U;
    }
    s.filled = true;
    s.keys.clear();
    s.settled = {};
    copied_figures figures;
    if (auto copied = copy_rows_back(m_, t, from, s.name, figures); !copied) return copied;
    commits_ += figures.statements;
    s.row_bytes = std::max<std::uint64_t>(figures.bytes / std::max<std::uint64_t>(t.rows, 1), 16);
    return {};
}

}  // namespace hotlane::move

#include "router/move/decoding.hpp"

#include <fmt/format.h>
#include <charconv>

#include "router/move/names.hpp"
#include "router/move/postgres_home.hpp"
#include "router/sql/facts.hpp"

namespace hotlane::move {
namespace {

using policy::home_kind;
using std::chrono::milliseconds;

constexpr std::string_view lock_not_available = "55P03";

std::string ident(std::string_view name) {
    return sql::quote_identifier(name);
}
std::string literal(std::string_view text) {
    return sql::quote_literal(text);
}
std::string text(const row& r, std::size_t i) {
    return i < r.size() ? r[i].value_or("") : "";
}
std::uint64_t number(const std::string& digits) {
    std::uint64_t out = 0;
    std::from_chars(digits.data(), digits.data() + digits.size(), out);
    return out;
}

auto failed(std::string_view doing, const link_error& e) {
    return tl::unexpected(home_failed(home_kind::postgres, doing, e));
}
auto decoding_failed(std::string what) {
    return tl::unexpected(refusal{"decoding_failed",
                                  "logical decoding: " + std::move(what),
                                  "try again, or copy under the hold (`copy: held`)"});
}

// With its session the slot is gone, and with the slot what it would have shown.
tl::unexpected<refusal> session_failed(const home_link& link,
                                       std::string_view doing,
                                       const link_error& e) {
    auto out = home_failed(home_kind::postgres, doing, e);
    if (link.alive()) return tl::unexpected(std::move(out));
    return tl::unexpected(
        refusal{"slot_lost",
                "the session of the slot ended: " + out.message,
                "see PostgreSQL's log: a slot that keeps too much WAL is ended (raise "
                "max_slot_wal_keep_size, or move when less is written)"});
}

int hex_digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return -1;
}

// bytea in its hex form.
bool unhex(std::string_view hex, std::string& out) {
    out.clear();
    if (hex.size() % 2 != 0 || hex.substr(0, 2) != "\\x") return false;
    for (std::size_t i = 2; i < hex.size(); i += 2) {
        const int high = hex_digit(hex[i]), low = hex_digit(hex[i + 1]);
        if (high < 0 || low < 0) return false;
        out += static_cast<char>(high * 16 + low);
    }
    return true;
}

// Who holds a transaction's number: what the making of a slot waits for.
std::string name_open_transactions(home_link& link) {
    auto reply = link.exec(
        "SELECT coalesce('pid ' || l.pid, 'a prepared transaction'), a.usename, a.datname, "
        "date_trunc('second', now() - a.xact_start) FROM pg_locks l LEFT JOIN pg_stat_activity a "
        "ON a.pid = l.pid WHERE l.locktype = 'transactionid' AND l.granted AND l.mode = "
        "'ExclusiveLock' AND l.pid IS DISTINCT FROM pg_backend_pid() ORDER BY a.xact_start LIMIT "
        "5");
    std::string out;
    if (reply)
        for (const auto& r : reply->data)
            out += fmt::format("{}{} ({}, database {}, for {})",
                               out.empty() ? "" : ", ",
                               text(r, 0),
                               text(r, 1),
                               text(r, 2),
                               text(r, 3));
    return out.empty() ? "transactions that are over now" : out;
}

}  // namespace

decoding::decoding(active_move& m, decode_limits limits) : m_(m), limits_(limits) {}
decoding::~decoding() {
    end();
}

outcome decoding::begin() {
    begun_ = steady::now();
    const plan& p = m_.made();
    auto tables = read_followed_tables(m_.postgres(), p, p.schema);
    if (!tables) return failed("reading the catalog", tables.error());
    tables_ = std::move(*tables);
    std::vector<watched_table> watched;
    for (std::size_t i = 0; i < p.tables.size(); ++i)
        watched.push_back({tables_[i].why_not.empty() ? tables_[i].oid : 0U, p.tables[i].key});
    feed_ = std::make_unique<change_feed>(std::move(watched));
    for (const auto step : {&decoding::publish, &decoding::make_slot, &decoding::wait_for_running})
        if (auto went = (this->*step)(); !went) return went;
    return {};
}

outcome decoding::too_long(std::string_view what) {
    if (auto late = may_go_on(m_); !late) return late;
    if (steady::now() - begun_ < limits_.wait) return {};
    return tl::unexpected(
        refusal{"open_transactions",
                fmt::format("{} waited {} s for {}",
                            what,
                            std::chrono::duration_cast<std::chrono::seconds>(limits_.wait).count(),
                            name_open_transactions(m_.postgres())),
                "end those transactions, or move when they are done"});
}

// Under the marker, like everything that a move changes at PostgreSQL: a leader that was replaced
// makes none.
outcome decoding::publish() {
    const plan& p = m_.made();
    const marker serving = *m_.found.at_start;
    const auto sql = publication_sql(m_.postgres(), p, tables_);
    if (!sql) return failed("reading the server's version", sql.error());
    const shown_wait shown(m_.with.around.live, "locks on the tables, for a publication");
    for (;;) {
        if (auto begun = move::begin(m_.postgres(), m_.with.limit.lock); !begun)
            return failed("publishing", begun.error());
        auto mine = change_marker(m_.postgres(), p.tool, serving, serving);
        if (mine && !*mine) {
            rollback(m_.postgres());
            return tl::unexpected(refusal{"another_move",
                                          "the marker at the PostgreSQL home changed meanwhile",
                                          "see `hotlane moves`; another hotlane may be at work"});
        }
        auto made = mine ? send(m_.postgres(), *sql) : tl::unexpected(mine.error());
        if (made) made = commit(m_.postgres());
        if (made) return {};
        rollback(m_.postgres());
        if (made.error().sqlstate != lock_not_available) return failed("publishing", made.error());
        if (auto late = too_long("the publication"); !late) return late;
    }
}

outcome decoding::make_slot() {
    auto opened = m_.with.homes.open(home_kind::postgres, m_.with.limit.connect);
    if (!opened) return failed("connecting", opened.error());
    link_ = std::move(*opened);
    link_->set_deadline(m_.with.limit.statement);
    // A hotlane whose machine is gone must not keep WAL until TCP notices by itself, hours later.
    auto set = send(*link_,
                    fmt::format("SET bytea_output = hex; SET lock_timeout = {}; SET "
                                "tcp_keepalives_idle = 10; SET tcp_keepalives_interval = 5; SET "
                                "tcp_keepalives_count = 3",
                                limits_.slice.count()));
    if (!set) return failed("connecting", set.error());
    const shown_wait shown(m_.with.around.live, "open transactions to end, for a slot");
    for (;;) {
        auto made = link_->exec(
            fmt::format("SELECT pg_create_logical_replication_slot({}, 'pgoutput', true)",
                        literal(decoding_name(m_.made().move))));
        if (made) break;
        if (made.error().sqlstate != lock_not_available)
            return failed("making a slot", made.error());
        if (auto late = too_long("the slot"); !late) return late;
    }
    link_->set_deadline(limits_.read);
    return {};
}

// A transaction whose COMMIT the slot is just too young to show may still be unseen by snapshots
// (it waits for a standby): those that run now are waited for.
outcome decoding::wait_for_running() {
    const auto first = snapshot_now();
    if (!first) return session_failed(*link_, "reading a snapshot", first.error());
    const shown_wait shown(m_.with.around.live, "transactions that began before the slot");
    for (;;) {
        const auto now = snapshot_now();
        if (!now) return session_failed(*link_, "reading a snapshot", now.error());
        bool over = true;
        for (const auto xid : first->running())
            over = over && now->sees(xid);
        if (over) return {};
        if (auto late = too_long("the slot"); !late) return late;
        if (auto slept = send(*link_, "SELECT pg_sleep(0.01)"); !slept)
            return session_failed(*link_, "waiting", slept.error());
    }
}

answer<snapshot_view> decoding::snapshot_now() {
    auto reply = link_->exec("SELECT pg_current_snapshot()");
    if (!reply) return tl::unexpected(reply.error());
    auto read = snapshot_view::read(reply->data.empty() ? "" : text(reply->data[0], 0));
    if (!read) return tl::unexpected(link_error{"", read.error(), fate::refused});
    return *read;
}

// Reading moves the slot on before the reply is here. A reply that is lost ends the link, the slot
// and the move with it, so no change is ever skipped.
outcome decoding::read_changes() {
    std::string bytes, wrong;
    const auto on_row = [&](const row_view& r) {
        if (r.size() != 1 || !r[0] || !unhex(*r[0], bytes)) {
            wrong = "a row that is no message";
            return false;
        }
        if (auto taken = feed_->take(bytes); !taken) wrong = taken.error();
        return wrong.empty();
    };
    const auto name = literal(decoding_name(m_.made().move));
    auto read = link_->read(
        fmt::format("SELECT data FROM pg_logical_slot_get_binary_changes({}, NULL, NULL, "
                    "'proto_version', '1', 'publication_names', {}, 'messages', 'true')",
                    name,
                    name),
        on_row);
    if (!wrong.empty()) return decoding_failed(wrong);
    if (!read) return session_failed(*link_, "decoding", read.error());
    return {};
}

outcome decoding::read_on() {
    if (auto read = read_changes(); !read) return read;
    const auto now = snapshot_now();
    if (!now) return session_failed(*link_, "reading a snapshot", now.error());
    feed_->forget_seen(*now);
    return {};
}

outcome decoding::read_to_mark() {
    constexpr int readings_max = 100;
    const auto mark = fmt::format("{}/{}", m_.made().move, ++marks_);
    // Durable before the reply, so that decoding, which reads what is flushed, comes as far.
    auto put =
        send(*link_,
             fmt::format("SET synchronous_commit = local; SELECT pg_logical_emit_message(true, "
                         "{}, {})",
                         literal(change_feed::prefix),
                         literal(mark)));
    if (!put) return session_failed(*link_, "writing a mark", put.error());
    for (int i = 0; i < readings_max; ++i) {
        if (auto read = read_changes(); !read) return read;
        if (feed_->mark() == mark) return {};
    }
    return decoding_failed("the mark that was written to the WAL does not come");
}

outcome decoding::check(const std::string& schema) {
    auto reply = m_.postgres().exec(
        "SELECT wal_status, pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn)::bigint, (SELECT "
        "setting::bigint FROM pg_settings WHERE name = 'max_slot_wal_keep_size') FROM "
        "pg_replication_slots WHERE slot_name = $1",
        {{param_type::text, decoding_name(m_.made().move)}});
    if (!reply) return failed("looking at the slot", reply.error());
    const bool is_there = !reply->data.empty();
    const std::string status = is_there ? text(reply->data[0], 0) : "gone";
    retained_ = is_there ? number(text(reply->data[0], 1)) : 0;
    const std::string keep = is_there ? text(reply->data[0], 2) : "-1";
    auto most = limits_.retained_bytes;
    if (!keep.empty() && keep[0] != '-')
        most = std::min(most, (number(keep) << 20U) / 100 * limits_.retained_percent);
    if (status != "reserved" && status != "extended")
        return tl::unexpected(
            refusal{"slot_lost",
                    fmt::format("PostgreSQL gave up the slot of the copy (wal_status {})", status),
                    "raise max_slot_wal_keep_size, or move when less is written"});
    if (retained_ > most)
        return tl::unexpected(
            refusal{"slot_wal",
                    fmt::format("the slot of the copy keeps {} MiB of WAL; {} MiB are allowed",
                                retained_ >> 20U,
                                most >> 20U),
                    "raise max_slot_wal_keep_size, end long transactions, or move when less is "
                    "written"});
    const auto changed = [] {
        return tl::unexpected(refusal{"schema_changed",
                                      "the tables changed since preflight",
                                      "try again when no migration runs"});
    };
    auto now = read_followed_tables(m_.postgres(), m_.made(), schema);
    if (!now) return failed("reading the catalog", now.error());
    for (std::size_t i = 0; i < tables_.size(); ++i) {
        const auto &was = tables_[i], &is = (*now)[i];
        if (is.oid != was.oid || is.identity != was.identity || is.persistence != was.persistence)
            return changed();
        if (is.file != was.file && was.why_not.empty()) feed_->count_whole(i);
        tables_[i].file = is.file;
    }
    return {};
}

answer<bool> decoding::somebody_waits_for(int pid) {
    auto reply =
        m_.postgres().exec(fmt::format("SELECT 1 FROM pg_locks WHERE NOT granted AND {} = ANY "
                                       "(pg_blocking_pids(pid)) LIMIT 1",
                                       pid));
    if (!reply) return tl::unexpected(reply.error());
    return !reply->data.empty();
}

void decoding::set_deadline(milliseconds limit) {
    if (link_) link_->set_deadline(limit);
}

void decoding::end() noexcept {
    try {
        const auto name = decoding_name(m_.made().move);
        set_deadline(m_.with.limit.connect);
        if (link_ && link_->alive())
            static_cast<void>(
                send(*link_, fmt::format("SELECT pg_drop_replication_slot({})", literal(name))));
        link_.reset();
        if (!feed_) return;  // nothing was published
        feed_.reset();
        if (m_.found.postgres && m_.postgres().alive())
            static_cast<void>(
                send(m_.postgres(), fmt::format("DROP PUBLICATION IF EXISTS {}", ident(name))));
    } catch (...) {
        link_.reset();  // recovery drops the rest
    }
}

}  // namespace hotlane::move

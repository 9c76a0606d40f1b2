#include "router/placement/postgres_store.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <charconv>

#include <fmt/format.h>

#include "router/placement/postgres_schema.hpp"

namespace hotlane::placement {

namespace {

constexpr std::uint64_t decisions_kept = 10'000;  // of one tool
constexpr std::uint64_t trim_every = 64;
constexpr std::string_view move_columns =
    "id, tool, source, target, epoch, phase, outcome, reason, ordered_by, started_ms, ended_ms, "
    "plan";

policy::time_point time_of(const pg_cell& cell) {
    return policy::time_point{policy::duration{number_of(cell)}};
}
policy::home_kind home_of(const pg_cell& cell) {
    return number_of(cell) == 1 ? policy::home_kind::postgres : policy::home_kind::engine;
}

// PostgreSQL takes no zero byte and no broken UTF-8 in a text; samples of statements may have both.
std::string clean(const std::string& text) {
    const nlohmann::json quoted = text;
    auto out = quoted.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    out = nlohmann::json::parse(out).get<std::string>();
    std::erase(out, '\0');
    return out;
}
std::string body_text(const nlohmann::json& body) {
    return body.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

move_record move_of(const std::vector<pg_cell>& row) {
    return {.id = string_of(row.at(0)),
            .tool = string_of(row.at(1)),
            .from = home_of(row.at(2)),
            .to = home_of(row.at(3)),
            .epoch = static_cast<std::uint64_t>(number_of(row.at(4))),
            .phase = string_of(row.at(5)),
            .outcome = string_of(row.at(6)),
            .reason = string_of(row.at(7)),
            .ordered_by = string_of(row.at(8)),
            .started = time_of(row.at(9)),
            .ended = time_of(row.at(10)),
            .plan = nlohmann::json::parse(string_of(row.at(11)), nullptr, false)};
}

std::vector<move_record> moves_of(const pg_rows& rows) {
    std::vector<move_record> out;
    for (const auto& row : rows)
        out.push_back(move_of(row));
    return out;
}

tl::unexpected<store_error> failure(store_error::kind why, const std::string& what) {
    return tl::unexpected(store_error{"state store: " + what, why});
}

}  // namespace

std::int64_t number_of(const pg_cell& cell) {
    std::int64_t out = 0;
    if (cell) std::from_chars(cell->data(), cell->data() + cell->size(), out);
    return out;
}
std::string string_of(const pg_cell& cell) {
    return cell.value_or("");
}
placement_record placement_of(const std::vector<pg_cell>& row, std::size_t first) {
    return {.tool = string_of(row.at(first)),
            .home = home_of(row.at(first + 1)),
            .epoch = static_cast<std::uint64_t>(number_of(row.at(first + 2))),
            .since = time_of(row.at(first + 3)),
            .move = string_of(row.at(first + 4))};
}

postgres_store::postgres_store(postgres_target at)
    : at_(std::move(at)), wake_up_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {}

postgres_store::~postgres_store() {
    if (wake_up_ >= 0) ::close(wake_up_);
}

// ---- the session

stored<void> postgres_store::reach() {
    if (reachable()) return {};
    auto made = pg_session::connect(at_);  // without the mutex: others fail fast meanwhile
    if (made) {
        if (auto ready = prepare_postgres(**made, at_); !ready)
            made = tl::unexpected(ready.error());
    }
    const std::lock_guard lock(mutex_);
    if (!made) {
        away_reason_ = made.error().what;
        return failure(store_error::kind::away, made.error().what);
    }
    session_ = std::move(*made);
    fresh_ = true;
    return {};
}

bool postgres_store::reachable() const {
    const std::lock_guard lock(mutex_);
    return session_ != nullptr;
}

void postgres_store::drop_session() {
    number_ = 0;
    session_.reset();
}

stored<pg_rows> postgres_store::run_locked(const std::string& sql,
                                           const std::vector<pg_cell>& params) {
    if (!session_) return failure(store_error::kind::away, away_reason_);
    auto got = session_->exec(sql, params);
    if (got) {
        if (session_->pending()) wake();
        return std::move(*got);
    }
    // Tables that are gone are made again when the next session is made ready.
    const bool are_gone = got.error().sqlstate == "42P01" || got.error().sqlstate == "3F000";
    if (!got.error().lost && !are_gone) return failure(store_error::kind::failed, got.error().what);
    away_reason_ = got.error().what;
    drop_session();
    wake();
    return failure(store_error::kind::away, got.error().what);
}

stored<pg_rows> postgres_store::run(const std::string& sql, const std::vector<pg_cell>& params) {
    const std::lock_guard lock(mutex_);
    return run_locked(sql, params);
}

stored<pg_rows> postgres_store::run_as_leader(const std::string& sql, std::vector<pg_cell> params) {
    const std::lock_guard lock(mutex_);
    if (!session_) return failure(store_error::kind::away, away_reason_);
    const auto number = number_.load();
    if (number == 0) return failure(store_error::kind::not_leader, "this sidecar does not lead");
    params.insert(params.begin(), text_of(number));
    auto got = run_locked(
        "WITH term AS (SELECT 1 FROM hotlane_state.leader WHERE number = "
        "$1::bigint FOR SHARE)" +
            sql,
        params);
    if (got && (got->empty() || number_of((*got)[0].at(0)) == 0)) {
        // Whatever this session still holds (the lock of a store that lost its tail) goes with it.
        away_reason_ = "another sidecar leads now";
        drop_session();
        wake();
        return failure(store_error::kind::not_leader, away_reason_);
    }
    return got;
}

void postgres_store::wake() {
    const std::uint64_t one = 1;
    static_cast<void>(!::write(wake_up_, &one, sizeof one));
}

bool postgres_store::wait(std::chrono::milliseconds longest) {
    int socket = -1;
    {
        const std::lock_guard lock(mutex_);
        if (session_) socket = session_->socket();
    }
    // Another thread may read the socket or replace the session meanwhile: it wakes us.
    pollfd both[2] = {{wake_up_, POLLIN, 0}, {socket, POLLIN, 0}};
    ::poll(both, 2, static_cast<int>(longest.count()));
    std::uint64_t ignored = 0;
    static_cast<void>(!::read(wake_up_, &ignored, sizeof ignored));
    const std::lock_guard lock(mutex_);
    if (!session_) return false;
    const auto any = session_->announced();
    if (any) return *any;
    away_reason_ = any.error().what;
    drop_session();
    return false;
}

// ---- records

stored<std::vector<placement_record>> postgres_store::placements() {
    auto got =
        run("SELECT tool, home, epoch, since_ms, move FROM hotlane_state.placements "
            "ORDER BY tool COLLATE \"C\"");
    if (!got) return tl::unexpected(got.error());
    std::vector<placement_record> out;
    for (const auto& row : *got)
        out.push_back(placement_of(row, 0));
    return out;
}

stored<std::optional<placement_record>> postgres_store::placement(const std::string& tool) {
    auto got =
        run("SELECT tool, home, epoch, since_ms, move FROM hotlane_state.placements WHERE "
            "tool = $1",
            {tool});
    if (!got) return tl::unexpected(got.error());
    if (got->empty()) return std::optional<placement_record>{};
    return std::optional(placement_of((*got)[0], 0));
}

stored<bool> postgres_store::put_placement(const placement_record& record) {
    auto got = run_as_leader(
        fmt::format(
            ", now AS (UPDATE hotlane_state.news SET version = version + 1 FROM term RETURNING "
            "version), put AS (INSERT INTO hotlane_state.placements AS p (tool, home, epoch, "
            "since_ms, move, version) SELECT $2, $3::smallint, $4::bigint, $5::bigint, $6, version "
            "FROM now ON CONFLICT (tool) DO UPDATE SET home = excluded.home, epoch = "
            "excluded.epoch, since_ms = excluded.since_ms, move = excluded.move, version = "
            "excluded.version WHERE excluded.epoch > p.epoch RETURNING 1) "
            "SELECT (SELECT count(*) FROM term), (SELECT count(*) FROM put), pg_notify('{}', '')",
            news_channel),
        {record.tool,
         text_of(record.home),
         text_of(record.epoch),
         text_of(record.since),
         record.move});
    if (!got) return tl::unexpected(got.error());
    return number_of((*got)[0].at(1)) == 1;
}

stored<void> postgres_store::put_move(const move_record& record) {
    auto got = run_as_leader(
        ", put AS (INSERT INTO hotlane_state.moves (id, tool, source, target, epoch, phase, "
        "outcome, reason, ordered_by, started_ms, ended_ms, plan) SELECT $2, $3, $4::smallint, "
        "$5::smallint, $6::bigint, $7, $8, $9, $10, $11::bigint, $12::bigint, $13 FROM term ON "
        "CONFLICT (id) DO UPDATE SET tool = excluded.tool, source = excluded.source, target = "
        "excluded.target, epoch = excluded.epoch, phase = excluded.phase, outcome = "
        "excluded.outcome, reason = excluded.reason, ordered_by = excluded.ordered_by, started_ms "
        "= excluded.started_ms, ended_ms = excluded.ended_ms, plan = excluded.plan RETURNING 1) "
        "SELECT (SELECT count(*) FROM term), (SELECT count(*) FROM put)",
        {record.id,
         record.tool,
         text_of(record.from),
         text_of(record.to),
         text_of(record.epoch),
         record.phase,
         record.outcome,
         clean(record.reason),
         clean(record.ordered_by),
         text_of(record.started),
         text_of(record.ended),
         body_text(record.plan)});
    if (!got) return tl::unexpected(got.error());
    return {};
}

stored<std::optional<move_record>> postgres_store::move(const std::string& id) {
    auto got =
        run(fmt::format("SELECT {} FROM hotlane_state.moves WHERE id = $1", move_columns), {id});
    if (!got) return tl::unexpected(got.error());
    if (got->empty()) return std::optional<move_record>{};
    return std::optional(move_of((*got)[0]));
}

stored<std::vector<move_record>> postgres_store::unfinished_moves() {
    auto got = run(fmt::format(
        "SELECT {} FROM hotlane_state.moves WHERE outcome = '' ORDER BY serial", move_columns));
    if (!got) return tl::unexpected(got.error());
    return moves_of(*got);
}

stored<std::vector<move_record>> postgres_store::recent_moves(std::size_t limit) {
    auto got =
        run(fmt::format("SELECT {} FROM hotlane_state.moves ORDER BY serial DESC LIMIT $1::bigint",
                        move_columns),
            {text_of(limit)});
    if (!got) return tl::unexpected(got.error());
    return moves_of(*got);
}

stored<std::uint64_t> postgres_store::add_decision(const decision_record& record) {
    auto got = run_as_leader(
        ", put AS (INSERT INTO hotlane_state.decisions (tool, at_ms, body) SELECT $2, $3::bigint, "
        "$4 FROM term RETURNING id) SELECT (SELECT count(*) FROM term), (SELECT id FROM put)",
        {record.tool, text_of(record.at), body_text(record.body)});
    if (!got) return tl::unexpected(got.error());
    const auto id = static_cast<std::uint64_t>(number_of((*got)[0].at(1)));
    // Old ones go; failing to forget one is no reason to say that the new one was not kept.
    if (id % trim_every == 0)
        static_cast<void>(
            run("DELETE FROM hotlane_state.decisions WHERE tool = $1 AND id <= (SELECT id FROM "
                "hotlane_state.decisions WHERE tool = $1 ORDER BY id DESC LIMIT 1 OFFSET "
                "$2::bigint)",
                {record.tool, text_of(decisions_kept)}));
    return id;
}

stored<std::vector<decision_record>> postgres_store::decisions(const std::string& tool,
                                                               std::size_t limit) {
    auto got =
        run("SELECT id, tool, at_ms, body FROM hotlane_state.decisions WHERE tool = $1 "
            "ORDER BY id DESC LIMIT $2::bigint",
            {tool, text_of(limit)});
    if (!got) return tl::unexpected(got.error());
    std::vector<decision_record> out;
    for (const auto& row : *got)
        out.push_back({.id = static_cast<std::uint64_t>(number_of(row.at(0))),
                       .tool = string_of(row.at(1)),
                       .at = time_of(row.at(2)),
                       .body = nlohmann::json::parse(string_of(row.at(3)), nullptr, false)});
    return out;
}

stored<void> postgres_store::add_ddl(const std::string& tool, const std::string& sql) {
    auto got =
        run("INSERT INTO hotlane_state.ddl (tool, statement) VALUES ($1, $2)", {tool, clean(sql)});
    if (!got) return tl::unexpected(got.error());
    return {};
}

stored<std::vector<std::string>> postgres_store::ddl(const std::string& tool) {
    auto got =
        run("SELECT statement FROM hotlane_state.ddl WHERE tool = $1 ORDER BY serial", {tool});
    if (!got) return tl::unexpected(got.error());
    std::vector<std::string> out;
    for (const auto& row : *got)
        out.push_back(string_of(row.at(0)));
    return out;
}

stored<void> postgres_store::put_document(const std::string& kind,
                                          const std::string& name,
                                          const nlohmann::json& body) {
    // What is there already is not written again: most of what is saved in turns has not changed.
    auto got = run_as_leader(
        ", put AS (INSERT INTO hotlane_state.documents AS d (kind, name, body) SELECT $2, $3, $4 "
        "FROM term ON CONFLICT (kind, name) DO UPDATE SET body = excluded.body WHERE d.body <> "
        "excluded.body RETURNING 1) SELECT (SELECT count(*) FROM term), (SELECT count(*) FROM put)",
        {kind, name, body_text(body)});
    if (!got) return tl::unexpected(got.error());
    return {};
}

stored<std::optional<nlohmann::json>> postgres_store::document(const std::string& kind,
                                                               const std::string& name) {
    auto got =
        run("SELECT body FROM hotlane_state.documents WHERE kind = $1 AND name = $2", {kind, name});
    if (!got) return tl::unexpected(got.error());
    if (got->empty()) return std::optional<nlohmann::json>{};
    return std::optional(nlohmann::json::parse(string_of((*got)[0].at(0)), nullptr, false));
}

stored<std::unique_ptr<fleet_store>> open_postgres_store(const postgres_target& at) {
    if (const auto wrong = check_dsn(at.dsn); !wrong.empty())
        return tl::unexpected(store_error{"state.postgres: " + wrong});
    return std::unique_ptr<fleet_store>(std::make_unique<postgres_store>(at));
}

}  // namespace hotlane::placement

// The embedded state store. Each write is one statement or one transaction, so a full disk or a
// crash leaves what was there before.
#include <sqlite3.h>

#include <mutex>
#include <utility>

#include "router/placement/sqlite_store.hpp"

namespace hotlane::placement {

namespace {

constexpr std::int64_t decisions_kept = 10'000;  // of one tool

constexpr std::string_view placement_columns = "tool, home, epoch, since_ms, move";
constexpr std::string_view move_columns =
    "id, tool, source, target, epoch, phase, outcome, reason, ordered_by, started_ms, ended_ms, "
    "plan";

move_record read_move(const sqlite_query& row) {
    return {.id = row.text(0),
            .tool = row.text(1),
            .from = to_home(row.number(2)),
            .to = to_home(row.number(3)),
            .epoch = static_cast<std::uint64_t>(row.number(4)),
            .phase = row.text(5),
            .outcome = row.text(6),
            .reason = row.text(7),
            .ordered_by = row.text(8),
            .started = to_time(row.number(9)),
            .ended = to_time(row.number(10)),
            .plan = to_json(row.text(11))};
}

}  // namespace

stored<std::vector<placement_record>> sqlite_store::placements() {
    const std::lock_guard lock(mutex_);
    auto query = ask("SELECT {} FROM placements ORDER BY tool", placement_columns);
    return read_all(query, read_placement);
}

stored<std::optional<placement_record>> sqlite_store::placement(const std::string& tool) {
    const std::lock_guard lock(mutex_);
    auto query = ask("SELECT {} FROM placements WHERE tool = ?", placement_columns);
    query.bind(tool);
    return read_one(query, read_placement);
}

stored<std::optional<move_record>> sqlite_store::move(const std::string& id) {
    const std::lock_guard lock(mutex_);
    auto query = ask("SELECT {} FROM moves WHERE id = ?", move_columns);
    query.bind(id);
    return read_one(query, read_move);
}

stored<std::vector<move_record>> sqlite_store::unfinished_moves() {
    const std::lock_guard lock(mutex_);
    auto query = ask("SELECT {} FROM moves WHERE outcome = '' ORDER BY serial", move_columns);
    return read_all(query, read_move);
}

stored<std::vector<move_record>> sqlite_store::recent_moves(std::size_t limit) {
    const std::lock_guard lock(mutex_);
    auto query = ask("SELECT {} FROM moves ORDER BY serial DESC LIMIT ?", move_columns);
    query.bind(static_cast<std::int64_t>(limit));
    return read_all(query, read_move);
}

stored<bool> sqlite_store::put_placement(const placement_record& record) {
    const std::lock_guard lock(mutex_);
    if (auto there = still_there(db()); !there) return tl::unexpected(there.error());
    sqlite_query query(db(),
                       "INSERT INTO placements (tool, home, epoch, since_ms, move, version) "
                       "VALUES (?, ?, ?, ?, ?, (SELECT version + 1 FROM leader)) "
                       "ON CONFLICT (tool) DO UPDATE SET "
                       "home = excluded.home, epoch = excluded.epoch, "
                       "since_ms = excluded.since_ms, move = excluded.move, "
                       "version = excluded.version "
                       "WHERE excluded.epoch > placements.epoch RETURNING 1");
    query.bind(record.tool)
        .bind(to_number(record.home))
        .bind(to_number(record.epoch))
        .bind(to_number(record.since))
        .bind(record.move);
    const auto stepped = query.step();
    if (stepped == sqlite_step::done) return false;
    // The change is committed when the statement has been stepped to its end.
    if (stepped == sqlite_step::failed || !query.run()) return failed(query);
    static_cast<void>(announce());  // nobody but this process could want to know
    return true;
}

stored<void> sqlite_store::put_move(const move_record& record) {
    const std::lock_guard lock(mutex_);
    if (auto there = still_there(db()); !there) return tl::unexpected(there.error());
    const auto plan = to_text(record.plan);
    sqlite_query query(db(),
                       "INSERT INTO moves (id, tool, source, target, epoch, phase, outcome, "
                       "reason, ordered_by, started_ms, ended_ms, plan) "
                       "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET "
                       "tool = excluded.tool, source = excluded.source, target = excluded.target, "
                       "epoch = excluded.epoch, phase = excluded.phase, "
                       "outcome = excluded.outcome, reason = excluded.reason, "
                       "ordered_by = excluded.ordered_by, started_ms = excluded.started_ms, "
                       "ended_ms = excluded.ended_ms, plan = excluded.plan");
    query.bind(record.id)
        .bind(record.tool)
        .bind(to_number(record.from))
        .bind(to_number(record.to))
        .bind(to_number(record.epoch))
        .bind(record.phase)
        .bind(record.outcome)
        .bind(record.reason)
        .bind(record.ordered_by)
        .bind(to_number(record.started))
        .bind(to_number(record.ended))
        .bind(plan);
    return run(query);
}

stored<std::uint64_t> sqlite_store::add_decision(const decision_record& record) {
    const std::lock_guard lock(mutex_);
    const auto body = to_text(record.body);
    sqlite_query insert(db(), "INSERT INTO decisions (tool, at_ms, body) VALUES (?, ?, ?)");
    insert.bind(record.tool).bind(to_number(record.at)).bind(body);
    if (!insert.run()) return failed(insert);
    const auto id = static_cast<std::uint64_t>(sqlite3_last_insert_rowid(db()));
    // Old ones go; failing to forget one is no reason to say that the new one was not kept.
    sqlite_query forget(db(),
                        "DELETE FROM decisions WHERE tool = ?1 AND id <= (SELECT id FROM decisions "
                        "WHERE tool = ?1 ORDER BY id DESC LIMIT 1 OFFSET ?2)");
    forget.bind(record.tool).bind(decisions_kept);
    forget.run();
    return id;
}

stored<std::vector<decision_record>> sqlite_store::decisions(const std::string& tool,
                                                             std::size_t limit) {
    const std::lock_guard lock(mutex_);
    sqlite_query query(db(),
                       "SELECT id, tool, at_ms, body FROM decisions WHERE tool = ? "
                       "ORDER BY id DESC LIMIT ?");
    query.bind(tool).bind(static_cast<std::int64_t>(limit));
    return read_all(query, [](const sqlite_query& row) {
        return decision_record{.id = static_cast<std::uint64_t>(row.number(0)),
                               .tool = row.text(1),
                               .at = to_time(row.number(2)),
                               .body = to_json(row.text(3))};
    });
}

stored<void> sqlite_store::add_ddl(const std::string& tool, const std::string& sql) {
    const std::lock_guard lock(mutex_);
    if (auto there = still_there(db()); !there) return tl::unexpected(there.error());
    sqlite_query query(db(), "INSERT INTO ddl (tool, statement) VALUES (?, ?)");
    query.bind(tool).bind(sql);
    return run(query);
}

stored<std::vector<std::string>> sqlite_store::ddl(const std::string& tool) {
    const std::lock_guard lock(mutex_);
    sqlite_query query(db(), "SELECT statement FROM ddl WHERE tool = ? ORDER BY serial");
    query.bind(tool);
    return read_all(query, [](const sqlite_query& row) { return row.text(0); });
}

stored<void> sqlite_store::put_document(const std::string& kind,
                                        const std::string& name,
                                        const nlohmann::json& body) {
    const std::lock_guard lock(mutex_);
    if (auto there = still_there(db()); !there) return tl::unexpected(there.error());
    const auto text = to_text(body);
    sqlite_query query(db(),
                       "INSERT INTO documents (kind, name, body) VALUES (?, ?, ?) "
                       "ON CONFLICT (kind, name) DO UPDATE SET body = excluded.body");
    query.bind(kind).bind(name).bind(text);
    return run(query);
}

stored<std::optional<nlohmann::json>> sqlite_store::document(const std::string& kind,
                                                             const std::string& name) {
    const std::lock_guard lock(mutex_);
    sqlite_query query(db(), "SELECT body FROM documents WHERE kind = ? AND name = ?");
    query.bind(kind).bind(name);
    return read_one(query, [](const sqlite_query& row) { return to_json(row.text(0)); });
}

stored<std::unique_ptr<fleet_store>> open_sqlite_store(const std::string& path) {
    auto opened = open_sqlite(path);
    if (!opened) return tl::unexpected(std::move(opened).error());
    return std::unique_ptr<fleet_store>(std::make_unique<sqlite_store>(std::move(*opened)));
}

}  // namespace hotlane::placement

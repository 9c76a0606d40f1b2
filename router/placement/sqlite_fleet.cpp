// The fleet's part of the state file. It has one user, so a lead is never lost; what is kept here
// makes one sidecar behave as many do.
#include <sqlite3.h>

#include "router/placement/sqlite_store.hpp"

namespace hotlane::placement {

namespace {

sidecar_record read_sidecar(const sqlite_query& row) {
    sidecar_record out;
    out.id = row.text(0);
    out.name = row.text(1);
    out.version = row.text(2);
    out.policy_hash = row.text(3);
    out.admin = row.text(4);
    out.lease = std::chrono::milliseconds(row.number(5));
    out.beat = static_cast<std::uint64_t>(row.number(6));
    out.clock = to_time(row.number(7));
    return out;
}

}  // namespace

stored<std::int64_t> sqlite_store::number(std::string_view sql) const {
    sqlite_query query(db(), sql);
    if (query.step() != sqlite_step::row) return failed(query);
    return query.number(0);
}

stored<void> sqlite_store::refuse_unless_led() const {
    if (number_.load() > 0) return {};
    return tl::unexpected(
        store_error{"state file: this sidecar does not lead", store_error::kind::not_leader});
}

stored<void> sqlite_store::announce() {
    sqlite_query query(db(), "UPDATE leader SET version = version + 1");
    auto done = run(query);
    announced_ = true;
    changed_.notify_all();
    return done;
}

bool sqlite_store::wait(std::chrono::milliseconds longest) {
    std::unique_lock lock(mutex_);
    const bool any = changed_.wait_for(lock, longest, [this] { return announced_; });
    announced_ = false;
    return any;
}

void sqlite_store::wake() {
    const std::lock_guard lock(mutex_);
    announced_ = true;
    changed_.notify_all();
}

stored<void> sqlite_store::join(const sidecar_record& who) {
    const std::lock_guard lock(mutex_);
    sqlite_query query(db(),
                       "INSERT INTO sidecars VALUES (?, ?, ?, ?, ?, ?, 1, 0) ON CONFLICT (id) DO "
                       "UPDATE SET beat = beat + 1");
    query.bind(who.id)
        .bind(who.name)
        .bind(who.version)
        .bind(who.policy_hash)
        .bind(who.admin)
        .bind(static_cast<std::int64_t>(who.lease.count()));
    return run(query);
}

stored<beat_answer> sqlite_store::beat(const sidecar_record& who,
                                       const nlohmann::json& report,
                                       bool wants_to_lead) {
    const std::lock_guard lock(mutex_);
    sqlite_query renew(db(),
                       "UPDATE sidecars SET beat = beat + 1, policy_hash = ?, clock_ms = ? WHERE "
                       "id = ? RETURNING 1");
    renew.bind(who.policy_hash).bind(to_number(who.clock)).bind(who.id);
    beat_answer out;
    out.known = renew.step() == sqlite_step::row;
    if (renew.failed() || !renew.run()) return failed(renew);
    if (!report.is_null()) {
        const auto body = to_text(report);
        sqlite_query tell(db(),
                          "INSERT INTO reports (sidecar, body) SELECT ?1, ?2 WHERE (SELECT "
                          "count(*) FROM reports WHERE sidecar = ?1) < ?3");
        tell.bind(who.id).bind(body).bind(static_cast<std::int64_t>(reports_max));
        if (!tell.run()) return failed(tell);
    }
    sqlite_query look(db(), "SELECT version, number, holder FROM leader");
    if (look.step() != sqlite_step::row) return failed(look);
    out.version = static_cast<std::uint64_t>(look.number(0));
    out.leader = static_cast<std::uint64_t>(look.number(1));
    out.leader_id = look.text(2);
    out.may_lead = wants_to_lead && number_.load() == 0;
    return out;
}

stored<void> sqlite_store::leave(const std::string& sidecar) {
    const std::lock_guard lock(mutex_);
    sqlite_query query(db(), "DELETE FROM sidecars WHERE id = ?");
    query.bind(sidecar);
    return run(query);
}

stored<std::vector<sidecar_record>> sqlite_store::sidecars() {
    const std::lock_guard lock(mutex_);
    sqlite_query query(db(),
                       "SELECT id, name, version, policy_hash, admin, lease_ms, beat, clock_ms "
                       "FROM sidecars ORDER BY name, id");
    return read_all(query, read_sidecar);
}

stored<std::uint64_t> sqlite_store::take_lead(const std::string& sidecar) {
    const std::lock_guard lock(mutex_);
    sqlite_query query(db(), "UPDATE leader SET number = number + 1, holder = ?");
    query.bind(sidecar);
    if (auto done = run(query); !done) return tl::unexpected(done.error());
    const auto now = number("SELECT number FROM leader");
    if (!now) return tl::unexpected(now.error());
    number_ = static_cast<std::uint64_t>(*now);
    return number_.load();
}

stored<std::uint64_t> sqlite_store::raise(std::uint64_t seen) {
    const std::lock_guard lock(mutex_);
    if (auto leads = refuse_unless_led(); !leads) return tl::unexpected(leads.error());
    sqlite_query query(db(), "UPDATE leader SET number = max(number, ?) + 1");
    query.bind(to_number(seen));
    if (auto done = run(query); !done) return tl::unexpected(done.error());
    const auto now = number("SELECT number FROM leader");
    if (!now) return tl::unexpected(now.error());
    number_ = static_cast<std::uint64_t>(*now);
    return number_.load();
}

stored<news> sqlite_store::changes(std::uint64_t since) {
    const std::lock_guard lock(mutex_);
    news out;
    out.whole = since == 0;
    const auto version = number("SELECT version FROM leader");
    if (!version) return tl::unexpected(version.error());
    out.version = static_cast<std::uint64_t>(*version);
    sqlite_query homes(
        db(),
        "SELECT tool, home, epoch, since_ms, move FROM placements WHERE version > ? OR ? = 0");
    homes.bind(to_number(since)).bind(to_number(since));
    auto placements = read_all(homes, read_placement);
    if (!placements) return tl::unexpected(placements.error());
    out.placements = std::move(*placements);
    sqlite_query holds(db(), "SELECT tool, move, held FROM holds WHERE version > ?");
    holds.bind(to_number(since));
    auto held = read_all(holds, [](const sqlite_query& row) {
        return hold_record{row.text(0), row.text(1), row.number(2) == 1};
    });
    if (!held) return tl::unexpected(held.error());
    out.holds = std::move(*held);
    return out;
}

stored<void> sqlite_store::put_hold(const hold_record& hold) {
    const std::lock_guard lock(mutex_);
    if (auto leads = refuse_unless_led(); !leads) return leads;
    sqlite_query query(db(),
                       "INSERT INTO holds (tool, move, held, version) VALUES (?, ?, ?, (SELECT "
                       "version + 1 FROM leader)) ON CONFLICT (tool) DO UPDATE SET move = "
                       "excluded.move, held = excluded.held, version = excluded.version WHERE "
                       "excluded.held = 1 OR holds.move = excluded.move OR holds.held = 0");
    query.bind(hold.tool).bind(hold.move).bind(std::int64_t{hold.held ? 1 : 0});
    if (auto done = run(query); !done) return done;
    sqlite_query old(db(), "DELETE FROM acks WHERE tool = ? AND move <> ?");
    old.bind(hold.tool).bind(hold.move);
    if (auto done = run(old); !done) return done;
    return announce();
}

stored<void> sqlite_store::ack(const hold_record& hold, const std::string& sidecar) {
    const std::lock_guard lock(mutex_);
    sqlite_query query(db(), "INSERT INTO acks VALUES (?, ?, ?) ON CONFLICT DO NOTHING");
    query.bind(hold.tool).bind(hold.move).bind(sidecar);
    return run(query);
}

stored<std::vector<std::string>> sqlite_store::acks(const hold_record& hold) {
    const std::lock_guard lock(mutex_);
    sqlite_query query(db(), "SELECT sidecar FROM acks WHERE tool = ? AND move = ?");
    query.bind(hold.tool).bind(hold.move);
    return read_all(query, [](const sqlite_query& row) { return row.text(0); });
}

stored<std::vector<report_record>> sqlite_store::take_reports(std::size_t limit) {
    const std::lock_guard lock(mutex_);
    sqlite_query query(db(), "SELECT serial, sidecar, body FROM reports ORDER BY serial LIMIT ?");
    query.bind(static_cast<std::int64_t>(limit));
    std::int64_t last = 0;
    auto taken = read_all(query, [&last](const sqlite_query& row) {
        last = row.number(0);
        return report_record{row.text(1), to_json(row.text(2))};
    });
    if (!taken) return taken;
    sqlite_query done(db(), "DELETE FROM reports WHERE serial <= ?");
    done.bind(last);
    if (!done.run()) return failed(done);
    return taken;
}

}  // namespace hotlane::placement

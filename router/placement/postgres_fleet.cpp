// The fleet's part of the store in PostgreSQL: beats, the leader's lock, news, holds, reports.
#include <algorithm>

#include <fmt/format.h>

#include "router/placement/postgres_schema.hpp"
#include "router/placement/postgres_store.hpp"

namespace hotlane::placement {

stored<void> postgres_store::join(const sidecar_record& who) {
    auto got =
        run("INSERT INTO hotlane_state.sidecars (id, name, version, policy_hash, admin, "
            "lease_ms, beat, clock_ms, clock_ahead_ms) VALUES ($1, $2, $3, $4, $5, "
            "$6::bigint, 1, 0, 0) ON CONFLICT (id) DO UPDATE SET beat = "
            "hotlane_state.sidecars.beat + 1",
            {who.id,
             who.name,
             who.version,
             who.policy_hash,
             who.admin,
             std::to_string(who.lease.count())});
    if (!got) return tl::unexpected(got.error());
    return {};
}

// One round trip a renewal. The lock is tried in the same statement: it is the session's, so it
// goes when the session goes, however that comes about.
stored<beat_answer> postgres_store::beat(const sidecar_record& who,
                                         const nlohmann::json& report,
                                         bool wants_to_lead) {
    const pg_cell body =
        report.is_null()
            ? pg_cell{}
            : pg_cell{report.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)};
    auto got = run(
        fmt::format(
            "WITH mine AS (UPDATE hotlane_state.sidecars SET beat = beat + 1, policy_hash = $2, "
            "clock_ms = $3::bigint, clock_ahead_ms = $3::bigint - (extract(epoch FROM "
            "clock_timestamp()) * 1000)::bigint WHERE id = $1 RETURNING beat), told AS (INSERT "
            "INTO hotlane_state.reports (sidecar, body) SELECT $1, $4 WHERE $4::text IS NOT NULL "
            "AND (SELECT count(*) FROM hotlane_state.reports WHERE sidecar = $1) < {}) "
            "SELECT (SELECT beat FROM mine), (SELECT version FROM hotlane_state.news), number, "
            "holder, CASE WHEN $5::boolean THEN pg_try_advisory_lock({}) ELSE false END FROM "
            "hotlane_state.leader",
            reports_max,
            leader_lock),
        {who.id, who.policy_hash, text_of(who.clock), body, wants_to_lead ? "true" : "false"});
    if (!got) return tl::unexpected(got.error());
    if (got->empty())
        return tl::unexpected(store_error{"state store: hotlane_state.leader is empty"});
    const auto& row = (*got)[0];
    beat_answer out;
    out.known = row.at(0).has_value();
    out.version = static_cast<std::uint64_t>(number_of(row.at(1)));
    out.leader = static_cast<std::uint64_t>(number_of(row.at(2)));
    out.leader_id = string_of(row.at(3));
    out.may_lead = string_of(row.at(4)) == "t";
    return out;
}

stored<void> postgres_store::leave(const std::string& sidecar) {
    auto got = run("DELETE FROM hotlane_state.sidecars WHERE id = $1", {sidecar});
    if (!got) return tl::unexpected(got.error());
    return {};
}

stored<std::vector<sidecar_record>> postgres_store::sidecars() {
    auto got =
        run("SELECT id, name, version, policy_hash, admin, lease_ms, beat, clock_ms, "
            "clock_ahead_ms FROM hotlane_state.sidecars ORDER BY name, id");
    if (!got) return tl::unexpected(got.error());
    std::vector<sidecar_record> out;
    for (const auto& row : *got) {
        sidecar_record one;
        one.id = string_of(row.at(0));
        one.name = string_of(row.at(1));
        one.version = string_of(row.at(2));
        one.policy_hash = string_of(row.at(3));
        one.admin = string_of(row.at(4));
        one.lease = std::chrono::milliseconds(number_of(row.at(5)));
        one.beat = static_cast<std::uint64_t>(number_of(row.at(6)));
        one.clock = policy::time_point{policy::duration{number_of(row.at(7))}};
        one.clock_ahead = std::chrono::milliseconds(number_of(row.at(8)));
        out.push_back(std::move(one));
    }
    return out;
}

stored<std::uint64_t> postgres_store::take_lead(const std::string& sidecar) {
    const std::lock_guard lock(mutex_);
    auto got = run_locked(
        "UPDATE hotlane_state.leader SET number = number + 1, holder = $1 "
        "RETURNING number",
        {sidecar});
    if (!got) return tl::unexpected(got.error());
    if (got->empty())
        return tl::unexpected(store_error{"state store: hotlane_state.leader is empty"});
    number_ = static_cast<std::uint64_t>(number_of((*got)[0].at(0)));
    return number_.load();
}

void postgres_store::resign() {
    const std::lock_guard lock(mutex_);
    number_ = 0;
    static_cast<void>(run_locked("SELECT pg_advisory_unlock_all()", {}));
}

stored<std::uint64_t> postgres_store::raise(std::uint64_t seen) {
    const std::lock_guard lock(mutex_);
    const auto number = number_.load();
    if (number == 0)
        return tl::unexpected(
            store_error{"state store: this sidecar does not lead", store_error::kind::not_leader});
    auto got = run_locked(
        "UPDATE hotlane_state.leader SET number = greatest(number, $2::bigint) + "
        "1 WHERE number = $1::bigint RETURNING number",
        {text_of(number), text_of(seen)});
    if (!got) return tl::unexpected(got.error());
    if (got->empty()) {
        number_ = 0;
        return tl::unexpected(
            store_error{"state store: another sidecar leads now", store_error::kind::not_leader});
    }
    number_ = static_cast<std::uint64_t>(number_of((*got)[0].at(0)));
    return number_.load();
}

// One statement, one snapshot: the version is that of what comes with it. A new session is told
// everything: the server behind it may have lost the newest changes, or be another one.
stored<news> postgres_store::changes(std::uint64_t since) {
    const std::lock_guard lock(mutex_);
    news out;
    out.whole = fresh_ || since == 0;
    auto got = run_locked(
        "SELECT 'version', version::text, NULL, NULL, NULL, NULL FROM hotlane_state.news UNION ALL "
        "SELECT 'home', tool, home::text, epoch::text, since_ms::text, move FROM "
        "hotlane_state.placements WHERE version > $1::bigint UNION ALL SELECT 'hold', tool, move, "
        "held::text, NULL, NULL FROM hotlane_state.holds WHERE version > $1::bigint",
        {text_of(out.whole ? 0 : since)});
    if (!got) return tl::unexpected(got.error());
    fresh_ = false;
    for (const auto& row : *got) {
        const auto kind = string_of(row.at(0));
        if (kind == "version") {
            out.version = static_cast<std::uint64_t>(number_of(row.at(1)));
        } else if (kind == "home") {
            out.placements.push_back(placement_of(row, 1));
        } else {
            out.holds.push_back(
                {string_of(row.at(1)), string_of(row.at(2)), string_of(row.at(3)) == "true"});
        }
    }
    return out;
}

stored<void> postgres_store::put_hold(const hold_record& hold) {
    // A release counts for the hold that it names only: a late one must not open a newer hold.
    auto got = run_as_leader(
        fmt::format(
            ", now AS (UPDATE hotlane_state.news SET version = version + 1 FROM term RETURNING "
            "version), put AS (INSERT INTO hotlane_state.holds AS h (tool, move, held, version) "
            "SELECT $2, $3, $4::boolean, version FROM now ON CONFLICT (tool) DO UPDATE SET move = "
            "excluded.move, held = excluded.held, version = excluded.version WHERE excluded.held "
            "OR h.move = excluded.move OR NOT h.held RETURNING 1), old AS (DELETE FROM "
            "hotlane_state.acks WHERE "
            "tool = $2 AND move <> $3) "
            "SELECT (SELECT count(*) FROM term), (SELECT count(*) FROM put), pg_notify('{}', '')",
            news_channel),
        {hold.tool, hold.move, hold.held ? "true" : "false"});
    if (!got) return tl::unexpected(got.error());
    return {};
}

stored<void> postgres_store::ack(const hold_record& hold, const std::string& sidecar) {
    auto got =
        run("INSERT INTO hotlane_state.acks (tool, move, sidecar) VALUES ($1, $2, $3) ON "
            "CONFLICT DO NOTHING",
            {hold.tool, hold.move, sidecar});
    if (!got) return tl::unexpected(got.error());
    return {};
}

stored<std::vector<std::string>> postgres_store::acks(const hold_record& hold) {
    auto got = run("SELECT sidecar FROM hotlane_state.acks WHERE tool = $1 AND move = $2",
                   {hold.tool, hold.move});
    if (!got) return tl::unexpected(got.error());
    std::vector<std::string> out;
    for (const auto& row : *got)
        out.push_back(string_of(row.at(0)));
    return out;
}

stored<std::vector<report_record>> postgres_store::take_reports(std::size_t limit) {
    auto got =
        run("DELETE FROM hotlane_state.reports WHERE serial IN (SELECT serial FROM "
            "hotlane_state.reports ORDER BY serial LIMIT $1::bigint) RETURNING serial, "
            "sidecar, body",
            {text_of(limit)});
    if (!got) return tl::unexpected(got.error());
    std::vector<std::pair<std::int64_t, report_record>> taken;
    for (const auto& row : *got)
        taken.emplace_back(
            number_of(row.at(0)),
            report_record{string_of(row.at(1)),
                          nlohmann::json::parse(string_of(row.at(2)), nullptr, false)});
    std::sort(
        taken.begin(), taken.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    std::vector<report_record> out;
    for (auto& each : taken)
        out.push_back(std::move(each.second));
    return out;
}

}  // namespace hotlane::placement

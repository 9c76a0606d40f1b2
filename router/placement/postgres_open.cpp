// A session made ready: settings, tables of the right version, LISTEN.
#include <fmt/format.h>

#include "router/placement/postgres_schema.hpp"
#include "router/placement/postgres_store.hpp"

namespace hotlane::placement {

namespace {

constexpr std::string_view undefined_table = "42P01", invalid_schema = "3F000",
                           undefined_object = "42704";

pg_failure unusable(std::string what) {
    return {true, "", std::move(what)};
}

// 0: no tables yet. `readable` is the oldest version that can work with them.
pg_answer<int> read_version(pg_session& session, int& readable) {
    auto got = session.exec("SELECT version, readable_from FROM hotlane_state.format");
    if (!got) {
        const auto& state = got.error().sqlstate;
        if (state == undefined_table || state == invalid_schema) return 0;
        return tl::unexpected(got.error());
    }
    if (got->empty()) return tl::unexpected(unusable("hotlane_state.format is empty"));
    readable = static_cast<int>(number_of((*got)[0].at(1)));
    return static_cast<int>(number_of((*got)[0].at(0)));
}

pg_answer<void> step(pg_session& session, const std::string& sql) {
    auto done = session.exec(sql);
    if (!done) return tl::unexpected(done.error());
    return {};
}

pg_answer<void> migrate_from(pg_session& session, int version) {
    for (int next = version; next < postgres_version; ++next) {
        const auto& migration = postgres_migrations[next];
        if (auto done = step(session, migration.sql); !done) return done;
        auto noted = step(session,
                          fmt::format("UPDATE hotlane_state.format SET version = {}, "
                                      "readable_from = {}",
                                      next + 1,
                                      migration.readable_from));
        if (!noted) return noted;
    }
    return step(session, "COMMIT");
}

// In one transaction behind an advisory lock: who comes second finds it done.
pg_answer<void> migrate(pg_session& session) {
    auto begun = step(session,
                      fmt::format("BEGIN; SELECT pg_advisory_xact_lock({}); "
                                  "CREATE SCHEMA IF NOT EXISTS hotlane_state; "
                                  "CREATE TABLE IF NOT EXISTS hotlane_state.format ("
                                  "one boolean PRIMARY KEY DEFAULT true CHECK (one), "
                                  "version int NOT NULL, readable_from int NOT NULL); "
                                  "INSERT INTO hotlane_state.format (version, readable_from) "
                                  "VALUES (0, 0) ON CONFLICT DO NOTHING",
                                  migration_lock));
    int readable = 0;
    pg_answer<int> version = 0;
    if (begun) version = read_version(session, readable);
    if (begun && version) begun = migrate_from(session, *version);
    if (!version) begun = tl::unexpected(version.error());
    if (!begun && !begun.error().lost) static_cast<void>(session.exec("ROLLBACK"));
    return begun;
}

}  // namespace

pg_answer<void> prepare_postgres(pg_session& session, const postgres_target& at) {
    auto set = step(session,
                    fmt::format("SET statement_timeout = {}; SET lock_timeout = {}; "
                                "SET idle_in_transaction_session_timeout = {}; "
                                "SET synchronous_commit = on; "
                                "SET default_transaction_isolation = 'read committed'; "
                                "SET search_path = pg_catalog",
                                at.statement_timeout.count(),
                                at.statement_timeout.count(),
                                at.idle_timeout.count()));
    if (!set) return set;
    // A leader that was stopped must lose its lock; servers before 14 cannot see to that.
    auto idle =
        step(session, fmt::format("SET idle_session_timeout = {}", at.idle_timeout.count()));
    if (!idle && idle.error().sqlstate != undefined_object) return idle;
    int readable = 0;
    auto version = read_version(session, readable);
    if (!version) return tl::unexpected(version.error());
    if (*version < postgres_version) {
        if (auto done = migrate(session); !done) return done;
        version = read_version(session, readable);
        if (!version) return tl::unexpected(version.error());
    }
    if (readable > postgres_version)
        return tl::unexpected(unusable(fmt::format(
            "the state store was set up by a newer hotlane (format {}, this one knows {})",
            *version,
            postgres_version)));
    return step(session, fmt::format("LISTEN {}", news_channel));
}

}  // namespace hotlane::placement

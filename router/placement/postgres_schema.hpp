// The tables of the store in PostgreSQL, one migration a version. Never edit one that was released:
// append. `readable_from`: the oldest version whose programs can work with these tables.
#pragma once

namespace hotlane::placement {

struct postgres_migration {
    int readable_from;
    const char* sql;
};

inline constexpr postgres_migration postgres_migrations[] = {
    {1, R"sql(
    CREATE TABLE hotlane_state.leader (
        one boolean PRIMARY KEY DEFAULT true CHECK (one),
        number bigint NOT NULL, holder text NOT NULL);
    INSERT INTO hotlane_state.leader (number, holder) VALUES (0, '');
    CREATE TABLE hotlane_state.news (
        one boolean PRIMARY KEY DEFAULT true CHECK (one), version bigint NOT NULL);
    INSERT INTO hotlane_state.news (version) VALUES (0);
    CREATE TABLE hotlane_state.placements (
        tool text PRIMARY KEY, home smallint NOT NULL, epoch bigint NOT NULL,
        since_ms bigint NOT NULL, move text NOT NULL, version bigint NOT NULL);
    CREATE INDEX placements_news ON hotlane_state.placements (version);
    CREATE TABLE hotlane_state.holds (
        tool text PRIMARY KEY, move text NOT NULL, held boolean NOT NULL, version bigint NOT NULL);
    CREATE INDEX holds_news ON hotlane_state.holds (version);
    CREATE TABLE hotlane_state.acks (
        tool text NOT NULL, move text NOT NULL, sidecar text NOT NULL,
        PRIMARY KEY (tool, move, sidecar));
    CREATE TABLE hotlane_state.moves (
        serial bigint GENERATED ALWAYS AS IDENTITY, id text PRIMARY KEY, tool text NOT NULL,
        source smallint NOT NULL, target smallint NOT NULL, epoch bigint NOT NULL,
        phase text NOT NULL, outcome text NOT NULL, reason text NOT NULL,
        ordered_by text NOT NULL, started_ms bigint NOT NULL, ended_ms bigint NOT NULL,
        plan text NOT NULL);
    CREATE INDEX moves_in_order ON hotlane_state.moves (serial);
    CREATE INDEX moves_unfinished ON hotlane_state.moves (serial) WHERE outcome = '';
    CREATE TABLE hotlane_state.decisions (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, tool text NOT NULL,
        at_ms bigint NOT NULL, body text NOT NULL);
    CREATE INDEX decisions_of_tool ON hotlane_state.decisions (tool, id);
    CREATE TABLE hotlane_state.ddl (
        serial bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, tool text NOT NULL,
        statement text NOT NULL);
    CREATE INDEX ddl_of_tool ON hotlane_state.ddl (tool, serial);
    CREATE TABLE hotlane_state.documents (
        kind text NOT NULL, name text NOT NULL, body text NOT NULL, PRIMARY KEY (kind, name));
    CREATE TABLE hotlane_state.sidecars (
        id text PRIMARY KEY, name text NOT NULL, version text NOT NULL, policy_hash text NOT NULL,
        admin text NOT NULL, lease_ms bigint NOT NULL, beat bigint NOT NULL,
        clock_ms bigint NOT NULL, clock_ahead_ms bigint NOT NULL) WITH (fillfactor = 50);
    CREATE TABLE hotlane_state.reports (
        serial bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, sidecar text NOT NULL,
        body text NOT NULL);
    CREATE INDEX reports_of_sidecar ON hotlane_state.reports (sidecar);
    )sql"},
};

inline constexpr int postgres_version =
    static_cast<int>(sizeof postgres_migrations / sizeof postgres_migrations[0]);

// Advisory locks are pairs of numbers; the first says that they are hotlane's ("hotl").
inline constexpr const char* leader_lock = "1752134764, 1";
inline constexpr const char* migration_lock = "1752134764, 2";
inline constexpr const char* news_channel = "hotlane_news";

}  // namespace hotlane::placement

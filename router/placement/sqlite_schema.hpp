// The tables of the state file, one migration a version. Never edit one that was released: append.
#pragma once

namespace hotlane::placement {

inline constexpr int sqlite_application_id = 0x686c6e65;  // "hlne"

inline constexpr const char* sqlite_migrations[] = {
    R"sql(
    CREATE TABLE placements (
        tool TEXT PRIMARY KEY, home INTEGER NOT NULL, epoch INTEGER NOT NULL,
        since_ms INTEGER NOT NULL, move TEXT NOT NULL
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE moves (
        serial INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, tool TEXT NOT NULL,
        source INTEGER NOT NULL, target INTEGER NOT NULL, epoch INTEGER NOT NULL,
        phase TEXT NOT NULL, outcome TEXT NOT NULL, reason TEXT NOT NULL,
        ordered_by TEXT NOT NULL, started_ms INTEGER NOT NULL, ended_ms INTEGER NOT NULL,
        plan TEXT NOT NULL
    ) STRICT;
    CREATE INDEX moves_unfinished ON moves (serial) WHERE outcome = '';
    CREATE TABLE decisions (
        id INTEGER PRIMARY KEY AUTOINCREMENT, tool TEXT NOT NULL, at_ms INTEGER NOT NULL,
        body TEXT NOT NULL
    ) STRICT;
    CREATE INDEX decisions_of_tool ON decisions (tool, id);
    CREATE TABLE ddl (
        serial INTEGER PRIMARY KEY, tool TEXT NOT NULL, statement TEXT NOT NULL
    ) STRICT;
    CREATE INDEX ddl_of_tool ON ddl (tool, serial);
    CREATE TABLE documents (
        kind TEXT NOT NULL, name TEXT NOT NULL, body TEXT NOT NULL, PRIMARY KEY (kind, name)
    ) STRICT, WITHOUT ROWID;
    )sql",
    R"sql(
    CREATE TABLE leader (one INTEGER PRIMARY KEY CHECK (one = 1), number INTEGER NOT NULL,
        holder TEXT NOT NULL, version INTEGER NOT NULL) STRICT;
    INSERT INTO leader VALUES (1, 0, '', 0);
    ALTER TABLE placements ADD COLUMN version INTEGER NOT NULL DEFAULT 0;
    CREATE TABLE holds (tool TEXT PRIMARY KEY, move TEXT NOT NULL, held INTEGER NOT NULL,
        version INTEGER NOT NULL) STRICT, WITHOUT ROWID;
    CREATE TABLE acks (tool TEXT NOT NULL, move TEXT NOT NULL, sidecar TEXT NOT NULL,
        PRIMARY KEY (tool, move, sidecar)) STRICT, WITHOUT ROWID;
    CREATE TABLE sidecars (id TEXT PRIMARY KEY, name TEXT NOT NULL, version TEXT NOT NULL,
        policy_hash TEXT NOT NULL, admin TEXT NOT NULL, lease_ms INTEGER NOT NULL,
        beat INTEGER NOT NULL, clock_ms INTEGER NOT NULL) STRICT, WITHOUT ROWID;
    CREATE TABLE reports (serial INTEGER PRIMARY KEY, sidecar TEXT NOT NULL, body TEXT NOT NULL)
        STRICT;
    )sql",
};

inline constexpr int sqlite_version =
    static_cast<int>(sizeof sqlite_migrations / sizeof sqlite_migrations[0]);

}  // namespace hotlane::placement

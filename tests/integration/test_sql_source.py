"""Engines of another make: the queries of deploy/examples run for their shape against a PostgreSQL that fakes the
views, and one query feeds several tools."""
import re

import psycopg
import yaml

from hotlane_test.process import REPO, make_folder, wait_until
from hotlane_test.servers import Hotlane, Postgres

TOOLS = "one", "two", "three"
LANE = "tool", "acquires", "handoffs", "wait_us"
COCKROACH = """
CREATE DOMAIN int8 AS bigint;
CREATE SCHEMA crdb_internal;
CREATE TABLE crdb_internal.node_statement_statistics (database_name text, key text, count bigint);
CREATE TABLE crdb_internal.transaction_contention_events (database_name text, contention_duration interval);
INSERT INTO crdb_internal.node_statement_statistics VALUES ('ledger', 'UPDATE a SET b = _', 90),
    ('ledger', 'SELECT _', 1000), ('ledger', 'INSERT INTO a VALUES (_)', 10), ('calm', 'DELETE FROM a', 5);
INSERT INTO crdb_internal.transaction_contention_events VALUES ('ledger', '20 ms'), ('ledger', '30 ms');
"""
YUGABYTE = """
CREATE TABLE yb_active_session_history (wait_event text, ysql_dbid oid, sample_weight real);
INSERT INTO yb_active_session_history SELECT 'ConflictResolution_WaitOnConflictingTxns', oid, 1
    FROM pg_database, generate_series(1, 3) WHERE datname = 'postgres';
INSERT INTO yb_active_session_history SELECT 'WALAppend', oid, 1 FROM pg_database;
"""
CONFIG = """policies:
  default: {mode: observe, window: {length: 1s, min_acquires: 5}}
tools:
"""
TOOL = """  - name: %s
    engine:
      kind: sql
      address: %s
      database: %s
      query: SELECT * FROM lane
      query_user: postgres
"""


def query_of(example):
    text = yaml.safe_load((REPO / "deploy" / "examples" / example).read_text())
    return text["tools"][0]["engine"]["query"]


def rows_of(server, database, sql):
    with server.connect(database) as c:
        cursor = c.execute(sql)
        names = [d.name for d in cursor.description]
        rows = [dict(zip(names, row)) for row in cursor.fetchall()]
    assert set(LANE) <= set(names)
    for row in rows:
        assert isinstance(row["tool"], str)
        assert all(isinstance(row[k], int) for k in LANE[1:]), row
    return {row["tool"]: row for row in rows}


def test_queries_of_the_examples_have_the_shape_and_feed_tools():
    folder = make_folder("hotlane-sql-")
    pg = Postgres(folder).start()
    hotlane = None
    try:
        pg.create("app", "cockroach", "yuga", *TOOLS)
        with pg.connect("cockroach") as c:
            c.execute(COCKROACH)
        got = rows_of(pg, "cockroach", query_of("sql-cockroachdb.yaml"))
        assert got["ledger"]["acquires"] == 100 and got["ledger"]["handoffs"] == 2
        assert got["ledger"]["wait_us"] == 50_000
        assert got["calm"] == {"tool": "calm", "acquires": 5, "handoffs": 0, "wait_us": 0}
        with pg.connect("yuga") as c:
            c.execute(YUGABYTE)
        got = rows_of(pg, "yuga", query_of("sql-yugabytedb.yaml"))
        assert got["postgres"]["handoffs"] == 3 and got["postgres"]["wait_us"] == 3_000_000
        assert got["yuga"]["handoffs"] == 0 and got["yuga"]["commits"] > 0

        # The same view in each database, two tools with rows and one without: each has its own trouble, or none.
        for t in TOOLS:
            with pg.connect(t) as c:
                c.execute("CREATE TABLE lane (tool text PRIMARY KEY, acquires bigint, handoffs bigint, wait_us bigint)")
                c.execute("INSERT INTO lane VALUES ('one', 0, 0, 0), ('two', 0, 0, 0)")
        address = f"127.0.0.1:{pg.port}"
        hotlane = Hotlane(folder, CONFIG + "".join(TOOL % (t, address, t) for t in TOOLS)).start()
        sessions = {t: psycopg.connect(host="127.0.0.1", port=hotlane.port, dbname=t, user="app", autocommit=True)
                    for t in TOOLS}
        counts = {"n": 0}

        def read_all():
            counts["n"] += 1
            for t in TOOLS:
                with pg.connect(t) as c:
                    c.execute("UPDATE lane SET acquires = acquires + 100, handoffs = handoffs + 60,"
                              " wait_us = wait_us + 600000 WHERE tool = 'one'")
                    c.execute("UPDATE lane SET acquires = acquires + 50 WHERE tool = 'two'")
            for s in sessions.values():
                s.execute("SELECT 1")
            tools = {t["name"]: t for t in hotlane.json("tools")["tools"]}
            windows = [tools[t]["window"] for t in ("one", "two")]
            return tools if all(w and w["quality"] == "good" for w in windows) else None

        tools = wait_until(read_all, 60, "windows of both tools", 0.3)
        assert 0.5 < tools["one"]["window"]["handoff_rate"] < 0.7
        assert tools["one"]["window"]["mean_wait_ms"] == 10
        assert tools["two"]["window"]["handoffs"] == 0
        assert tools["one"]["window"]["abort_rate"] is None  # no commits in the query: unknown, not zero
        assert tools["three"]["window"] is None
        why = wait_until(lambda: re.search(r"cannot be read: (.*)", hotlane.cli("explain", "three").stdout), 30, "why")
        assert "no row for this tool" in why.group(1)
        for s in sessions.values():
            s.close()
    finally:
        if hotlane:
            hotlane.stop()
        pg.stop()

"""The way back with a copy that runs ahead of the hold: what changes meanwhile, what gets in its way, and what
is left behind of it when hotlane, its slot or its tables end in the middle."""
import json
import os
import random
import threading

import psycopg
import pytest

from hotlane_test.ledger import KINDS, assert_exact, check, stop_all
from hotlane_test.mover import Mover
from hotlane_test.process import wait_until
from hotlane_test.servers import OBSERVE, Bench

ROWS = 100_000
POINTS_MAX = 400
AHEAD = "    copy: ahead\n"
TABLES = ["CREATE TABLE big (id INTEGER PRIMARY KEY, v TEXT, n INTEGER NOT NULL DEFAULT 0)",
          "CREATE TABLE tags (kind TEXT NOT NULL, name TEXT NOT NULL, n INTEGER, PRIMARY KEY (kind, name), UNIQUE (n))",
          "CREATE TABLE loose (a TEXT, b INTEGER)"]
FILL = [f"INSERT INTO big SELECT i, 'row ' || i FROM generate_series(1, {ROWS}) i",
        "INSERT INTO tags SELECT 'it''s \"' || (i % 7), 'ü\\' || i, i FROM generate_series(1, 5000) i",
        "INSERT INTO loose SELECT 'd', i % 10 FROM generate_series(1, 100) i"]
COUNTED = {"big": "id, v, n", "tags": "kind, name, n", "loose": "a, b"}


@pytest.fixture(scope="module")
def servers():
    with Bench(["shop"], commit_latency="1ms", scan_cost="0ns", extra_tool=AHEAD) as b:
        b.number = 0
        yield b


def at_postgres(servers, ddl, fill=()):
    """A mover whose tool lives on PostgreSQL with these rows; the way out is copied under the hold."""
    held = servers.folder / "held.yaml"
    held.write_text(servers.hotlane.config_path.read_text().replace(AHEAD, "    copy: held\n"))
    held.chmod(0o644)
    m = Mover(servers, ddl, config=held)
    m.moved("postgres")
    m.config = servers.hotlane.config_path
    for sql in fill:
        m.postgres(sql)
    return m


def followers(servers):
    """What a copy that runs ahead makes at PostgreSQL: publications and slots."""
    return (servers.pg.execute("SELECT pubname FROM pg_publication WHERE pubname LIKE 'hotlane%'", "shop")
            + servers.pg.execute("SELECT slot_name FROM pg_replication_slots WHERE slot_name LIKE 'hotlane%'"))


def nothing_left(servers):
    wait_until(lambda: not followers(servers), 10, "slot and publication are gone")


class Running:
    """A move under way in another thread."""

    def __init__(self, m, *words, env=None):
        self.m, self.answer = m, None
        self.thread = threading.Thread(target=self._run, args=(words, env), daemon=True)
        self.thread.start()

    def _run(self, words, env):
        try:
            self.answer = self.m.move("engine", *words, env=env)
        except BaseException as e:
            self.answer = e

    def copies(self):
        """Waits until the slot stands: from here on every change is followed."""
        bench = self.m.bench
        wait_until(lambda: not self.thread.is_alive() or bench.pg.execute(
            "SELECT 1 FROM pg_replication_slots WHERE slot_name LIKE 'hotlane%' AND confirmed_flush_lsn IS NOT NULL"),
            60, "the slot is made")
        assert self.thread.is_alive(), self.answer
        return self

    def ends(self):
        self.thread.join(120)
        assert not self.thread.is_alive()
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer


class Churn(threading.Thread):
    """Goes round hotlane: every kind of change in the tables, as fast as one client can, until it is fenced out."""

    def __init__(self, dsn, think_s=0.0):
        super().__init__(daemon=True)
        self.dsn, self.think_s, self.random = dsn, think_s, random.Random(7)
        self.halt, self.done, self.error = threading.Event(), 0, None

    def run(self):
        try:
            with psycopg.connect(self.dsn, autocommit=True) as c:
                while not self.halt.wait(self.think_s) and not self.halt.is_set():
                    self.change(c)
                    self.done += 1
        except psycopg.Error as e:
            self.error = e

    def change(self, c):
        i, j = self.random.randint(1, ROWS), self.random.randint(1, 5000)
        what = self.random.randrange(8)
        if what == 0:
            c.execute("UPDATE big SET n = n + 1 WHERE id = %s", (i,))
        elif what == 1:
            c.execute("UPDATE big SET id = %s WHERE id = %s", (10_000_000 + self.done, i))
        elif what == 2:
            with c.transaction():
                c.execute("DELETE FROM big WHERE id = %s", (i,))
                c.execute("INSERT INTO big VALUES (%s, 'again', 1)", (i,))
        elif what == 3:
            c.execute("DELETE FROM tags WHERE n = %s", (j,))
        elif what == 4:
            # Unique values change places: no order of single rows would do.
            with c.transaction():
                c.execute("UPDATE tags SET n = -n WHERE n IN (%s, %s)", (j, j % 5000 + 1))
                c.execute("UPDATE tags SET n = CASE n WHEN %s THEN %s ELSE %s END WHERE n IN (%s, %s)",
                          (-j, j % 5000 + 1, j, -j, -(j % 5000 + 1)))
        elif what == 5:
            c.execute("UPDATE tags SET name = name || '!' WHERE n = %s", (j,))
        elif what == 6:
            with c.transaction(force_rollback=True):
                c.execute("DELETE FROM big WHERE id BETWEEN %s AND %s", (i, i + 50))
        else:
            c.execute("INSERT INTO loose VALUES ('c', %s)", (i,))


def assert_same_rows(m, move_id, tables=None):
    """The engine holds what the fence found at PostgreSQL, row by row."""
    for table, columns in (tables or COUNTED).items():
        there = m.postgres(f'SELECT {columns} FROM "hotlane_{move_id}_fenced".{table}', user="postgres")
        here = m.engine(f"SELECT {columns} FROM {table}")
        assert sorted(here, key=repr) == sorted(there, key=repr), table


def test_every_kind_of_change_goes_over(servers):
    m = at_postgres(servers, TABLES, FILL)
    running = Running(m).copies()
    churn = Churn(servers.pg.dsn("shop", "app"))
    churn.start()
    done = running.ends()
    churn.join(20)
    assert done["moved"], json.dumps(done, indent=1)
    assert "left this server" in str(churn.error), churn.error
    ahead = done["detail"]["ahead"]
    print(f"\n{churn.done} changes meanwhile; held {done['held_ms']} ms, forecast {ahead['forecast_ms']} ms; a held "
          f"copy {done['detail']['forecast']['hold_ms']} ms; passes {ahead['passes']}")
    assert churn.done > 500 and sum(p["keys"] for p in ahead["passes"]) > 100, "nothing changed: no test"
    assert not ahead["read_again"] and ahead["commits_counted"], ahead
    assert done["held_ms"] < done["detail"]["forecast"]["hold_ms"] / 5
    assert_same_rows(m, done["id"])
    nothing_left(servers)
    # What the journal says of the copy is what the kept copy has.
    assert m.call("--clean", done["id"])["dropped"]


def test_large_values_that_an_update_leaves_alone(servers):
    m = at_postgres(servers, ["CREATE TABLE big (id INTEGER PRIMARY KEY, v TEXT, n INTEGER, h BLOB)"],
                    [f"INSERT INTO big SELECT i, 'row ' || i, 0 FROM generate_series(1, {ROWS // 2}) i",
                     "INSERT INTO big SELECT -i, string_agg(md5((i * k)::text), ''), 0, decode(md5(i::text), 'hex') "
                     "FROM generate_series(1, 40) i, generate_series(1, 400) k GROUP BY i"])
    running = Running(m).copies()
    for _ in range(30):
        m.postgres("UPDATE big SET n = n + 1 WHERE id < 0")
        m.postgres("UPDATE big SET id = id - 100 WHERE id = (SELECT min(id) FROM big WHERE id > -41)")
    done = running.ends()
    assert done["moved"], json.dumps(done, indent=1)
    assert_same_rows(m, done["id"], {"big": "id, v, n, h"})


def test_truncate_makes_a_table_count_whole(servers):
    m = at_postgres(servers, TABLES, FILL)
    running = Running(m).copies()
    m.postgres("TRUNCATE tags")
    m.postgres("INSERT INTO tags VALUES ('after', 'it', 1)")
    done = running.ends()
    assert done["moved"], json.dumps(done, indent=1)
    assert m.engine("SELECT * FROM tags") == [("after", "it", 1)]
    assert_same_rows(m, done["id"])


def test_a_transaction_that_is_open_while_the_slot_is_made(servers):
    m = at_postgres(servers, TABLES, FILL)
    with psycopg.connect(servers.pg.dsn("shop", "app")) as early:
        early.execute("INSERT INTO big VALUES (-1, 'early', 0)")
        running = Running(m)
        waits = "SELECT 1 FROM pg_locks WHERE NOT granted AND locktype = 'transactionid'"
        wait_until(lambda: servers.pg.execute(waits), 60, "the slot waits for the transaction")
        early.commit()
        running.copies()
        early.execute("INSERT INTO big VALUES (-2, 'late', 0)")
        m.postgres("INSERT INTO big VALUES (-3, 'between', 0)")
        early.commit()
    done = running.ends()
    assert done["moved"], json.dumps(done, indent=1)
    assert m.engine("SELECT id FROM big WHERE id < 0 ORDER BY id") == [(-3,), (-2,), (-1,)]
    assert_same_rows(m, done["id"])


def failed_at_postgres(servers, m, done, code):
    assert not done["moved"] and done["route"]["home"] == "postgres" and done["route"]["served"], done
    assert code in [r["code"] for r in done["refusals"]], done["refusals"]
    assert done["held_ms"] == 0, "the tool was held"
    nothing_left(servers)
    m.postgres("INSERT INTO big (id, v) VALUES (-77, 'served')")
    m.postgres("DELETE FROM big WHERE id = -77")


def test_a_migration_ends_the_move_and_does_not_wait_for_it(servers):
    m = at_postgres(servers, TABLES, FILL)
    running = Running(m).copies()
    with psycopg.connect(servers.pg.dsn("shop", "app"), autocommit=True) as c:
        c.execute("SET lock_timeout = '10s'")
        c.execute("ALTER TABLE big ADD COLUMN extra integer")
    failed_at_postgres(servers, m, running.ends(), "schema_changed")


def test_a_table_that_is_made_anew_ends_the_move(servers):
    m = at_postgres(servers, TABLES, FILL)
    running = Running(m).copies()
    with psycopg.connect(servers.pg.dsn("shop", "app"), autocommit=True) as c:
        with c.transaction():  # of the same shape, and no change of it is ever decoded
            c.execute("ALTER TABLE tags RENAME TO old_tags")
            c.execute("CREATE TABLE tags (LIKE old_tags INCLUDING ALL)")
            c.execute("DROP TABLE old_tags")
    failed_at_postgres(servers, m, running.ends(), "schema_changed")


def test_too_much_wal_ends_the_move(servers):
    m = at_postgres(servers, TABLES, FILL)
    servers.pg.execute("ALTER SYSTEM SET max_slot_wal_keep_size = '16MB'")
    servers.pg.execute("SELECT pg_reload_conf()")
    try:
        running = Running(m).copies()
        servers.pg.execute("CREATE TABLE filler AS SELECT repeat('x', 1000) FROM generate_series(1, 60000)")
        servers.pg.execute("CHECKPOINT")
        done = running.ends()
    finally:
        servers.pg.execute("DROP TABLE IF EXISTS filler")
        servers.pg.execute("ALTER SYSTEM RESET max_slot_wal_keep_size")
        servers.pg.execute("SELECT pg_reload_conf()")
    codes = {r["code"] for r in done["refusals"]}
    failed_at_postgres(servers, m, done, "slot_wal" if "slot_wal" in codes else "slot_lost")


def test_an_end_of_the_slot_s_session_ends_the_move(servers):
    m = at_postgres(servers, TABLES, FILL)
    running = Running(m).copies()
    assert servers.pg.execute("SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots") == [(True,)]
    failed_at_postgres(servers, m, running.ends(), "slot_lost")


def test_a_transaction_that_stays_open_elsewhere(servers):
    """Nothing of it is in the tool's database; the slot waits for it all the same."""
    m = at_postgres(servers, TABLES, ["INSERT INTO big VALUES (1, 'x', 0)"])
    with psycopg.connect(servers.pg.dsn()) as other:
        other.execute("SELECT pg_current_xact_id()")
        pid = other.info.backend_pid
        running = Running(m)
        # `auto` finds that the rows fit under the hold; `ahead` means it.
        auto = at_auto(m)
        refused = running.ends()
        assert refused["refusals"][0]["code"] == "open_transactions", refused
        assert f"pid {pid}" in refused["refusals"][0]["message"]
        failed_at_postgres(servers, m, refused, "open_transactions")
        m.config = auto
        done = m.moved("engine")
        assert done["detail"]["copy"] == "held" and f"pid {pid}" in done["detail"]["notes"][-1], done["detail"]
    nothing_left(servers)


def at_auto(m):
    auto = m.config.with_name("auto.yaml")
    auto.write_text(m.config.read_text().replace(AHEAD, "    copy: auto\n"))
    auto.chmod(0o644)
    return auto


def first_step_ahead(servers, m):
    """Where in a move the copy begins; what is before it is tried by test_move_scenarios.py."""
    log = servers.folder / "steps.log"
    log.unlink(missing_ok=True)
    assert m.move("engine", env={"HOTLANE_STEP_LOG": str(log)})["moved"]
    steps = log.read_text().splitlines()
    return next(int(s.split()[0]) for s in steps if s.endswith(" journal ahead -"))


@pytest.mark.parametrize("suffix,stride", [("", 3), ("r", 8)])
def test_kill_at_every_statement_leaves_no_slot(servers, suffix, stride):
    stride = min(stride, int(os.environ.get("HOTLANE_CRASH_STRIDE", stride)))
    m = at_postgres(servers, TABLES, ["INSERT INTO big VALUES (1, 'x', 0), (2, 'y', 0)",
                                      "INSERT INTO tags VALUES ('a', 'b', 1)", "INSERT INTO loose VALUES ('d', 1)"])
    held, ahead = m.config.with_name("held.yaml"), m.config
    points = range(first_step_ahead(servers, m), POINTS_MAX, stride)
    for tried, point in enumerate(points):
        if m.call("--recover")["route"]["home"] != "postgres":
            m.config = held
            m.moved("postgres")
            m.config = ahead
        m.postgres("UPDATE big SET n = n + 1 WHERE id = 1")
        died = m.move("engine", env={"HOTLANE_CRASH_AT": f"{point}{suffix}"}, may_die=True) is None
        again = point % 5 + 1  # recovery is killed as well, at another point each time
        m.call("--recover", env={"HOTLANE_CRASH_AT": f"{again}{suffix}"}, may_die=True)
        route = m.call("--recover")["route"]
        assert route["served"], (point, route)
        nothing_left(servers)
        run = m.engine if route["home"] == "engine" else m.postgres
        assert run("SELECT n FROM big WHERE id = 1") == [(tried + 1,)], point
        assert run("SELECT count(*) FROM loose") == [(1,)], point
        if not died:
            print(f"\nsuffix '{suffix}': {tried} points from {points[0]} on")
            assert tried > 60 // stride
            return
    pytest.fail("the move never came to its end")


def test_what_a_server_lacks_is_said_with_its_mend():
    setting = {"wal_level": "replica"}
    with Bench(["shop"], commit_latency="1ms", scan_cost="0ns", extra_tool=AHEAD, pg_settings=setting) as b:
        b.number = 0
        m = at_postgres(b, TABLES, ["INSERT INTO big SELECT i, 'x' FROM generate_series(1, 3000) i"])
        done = m.move("engine")
        refused = [r for r in done["refusals"] if r["code"] == "cannot_decode"]
        assert not done["moved"] and "wal_level is replica" in refused[0]["message"], done["refusals"]
        assert "wal_level = logical" in refused[0]["mend"]
        # What fits under the hold goes under the hold, with a note.
        m.config = at_auto(m)
        dry = m.move("engine", "--dry-run")
        assert dry["detail"]["copy"] == "held" and not dry["refusals"], dry
        assert any("wal_level" in note for note in dry["detail"]["notes"]), dry["detail"]
        assert m.move("engine", "--hold", "10", "--dry-run")["refusals"][-1]["code"] == "cannot_decode"
        m.moved("engine")


def test_an_admin_without_replication_is_told_the_statement(servers):
    m = at_postgres(servers, TABLES, FILL[1:])
    servers.pg.execute("DROP ROLE IF EXISTS mover")
    servers.pg.execute("CREATE ROLE mover LOGIN IN ROLE app")
    servers.pg.execute("GRANT CREATE ON DATABASE shop TO mover")
    servers.pg.execute("GRANT ALL ON SCHEMA public TO mover WITH GRANT OPTION", "shop")
    servers.pg.execute("ALTER SCHEMA hotlane OWNER TO mover; ALTER TABLE hotlane.hotlane_home OWNER TO mover", "shop")
    m.config = m.config.with_name("mover.yaml")
    m.config.write_text(servers.hotlane.config_path.read_text().replace("admin: {user: postgres}",
                                                                       "admin: {user: mover}"))
    m.config.chmod(0o644)
    done = m.move("engine")
    refused = [r for r in done["refusals"] if r["code"] == "cannot_decode"]
    assert refused and refused[0]["mend"] == 'ALTER ROLE "mover" REPLICATION', done["refusals"]
    servers.pg.execute('ALTER ROLE "mover" REPLICATION')
    assert m.move("engine")["moved"]


def test_writers_of_every_kind_keep_an_exact_ledger():
    with Bench(["shop"], commit_latency="2ms", scan_cost="0ns", policies=OBSERVE) as b:
        b.hotlane.start()
        with b.hotlane.connect("shop") as c:
            for kind in KINDS.values():
                for sql in kind.schema():
                    c.execute(sql)
            for sql in TABLES:
                c.execute(sql)
        assert b.hotlane.route("shop", "postgres").returncode == 0
        for sql in FILL:
            b.pg.execute(sql, "shop")
        writers = [kind(b.hotlane.dsn("shop"), number=i * 4 + k, think_s=0.01)
                   for i in range(2) for k, kind in enumerate(KINDS.values())]
        for w in writers:
            w.start()
        try:
            # An abort while it copies: never held, serving where it was, nothing left.
            threading.Thread(target=b.hotlane.route, args=("shop", "engine"), daemon=True).start()
            wait_until(lambda: b.hotlane.json("moves")["moves"][0]["phase"] == "ahead", 60, "the copy runs ahead")
            move = b.hotlane.json("moves")["moves"][0]
            b.hotlane.cli("move", "abort", move["id"])
            wait_until(lambda: b.hotlane.json("moves")["moves"][0]["outcome"] == "undone", 30, "it is undone")
            assert b.hotlane.where("shop")["home"] == "postgres"
            wait_until(lambda: not b.pg.execute("SELECT 1 FROM pg_replication_slots"), 10, "no slot is left")
            done = b.hotlane.route("shop", "engine")
            assert done.returncode == 0, done.stdout + done.stderr
        finally:
            stop_all(writers)
        move = b.hotlane.json("moves")["moves"][0]
        print(f"\nheld {move['held_ms']} ms under writers")
        assert move["held_ms"] < 1_500
        with b.engine.connect("shop") as c:
            rows = check(c, writers)
            assert c.execute("SELECT count(*) FROM big").fetchone() == (ROWS,)
        assert_exact(rows)

"""Clients of several drivers through hotlane, at both homes, across a move, and when a home breaks."""
import asyncio
import socket
import struct
import threading
import time

import asyncpg
import psycopg
import psycopg2
import pytest

from hotlane_test.gate import Gate
from hotlane_test.harness import pool_modes
from hotlane_test.process import wait_until
from hotlane_test.servers import OBSERVE, Bench


@pytest.fixture(scope="module", params=pool_modes())
def bench(request):
    """Tool `pg` lives on PostgreSQL, tool `eng` on the engine behind a gate."""
    with Bench(["pg", "eng", "mover"], commit_latency="1ms", scan_cost="50ns", policies=OBSERVE, gate=Gate,
               config_more=f"pool: {{mode: {request.param}}}\n") as b:
        b.shares = request.param == "transaction"
        b.hotlane.start()
        for tool in ("pg", "eng", "mover"):
            with b.hotlane.connect(tool) as c:
                c.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT)")
        done = b.hotlane.route("pg", "postgres")
        assert done.returncode == 0, done.stdout + done.stderr
        yield b


def test_psycopg3_simple_extended_binary(bench):
    for tool in ("pg", "eng"):
        with bench.hotlane.connect(tool) as c:
            for i in range(20):
                c.execute("INSERT INTO t (id, v) VALUES (%s, %s)", (i, f"v{i}"))
            assert c.execute("SELECT count(*) FROM t").fetchone()[0] == 20
            assert c.execute("SELECT id, v FROM t WHERE id = %s", (7,), binary=True).fetchone() == (7, "v7")
            with pytest.raises(psycopg.Error):
                c.execute("SELECT nonsense FROM nowhere")
            assert c.execute("SELECT 1").fetchone() == (1,)
            c.execute("DELETE FROM t WHERE id >= 0")


def test_psycopg3_pipeline_with_an_error_in_the_middle(bench):
    with bench.hotlane.connect("pg") as c:
        with pytest.raises(psycopg.Error):
            with c.pipeline():
                c.execute("INSERT INTO t (id, v) VALUES (101, 'a')")
                c.execute("INSERT INTO nowhere VALUES (1)")
                c.execute("INSERT INTO t (id, v) VALUES (102, 'b')")
        assert c.execute("SELECT count(*) FROM t WHERE id > 100").fetchone()[0] == 0
        with c.pipeline():
            cursors = [c.execute("SELECT %s::int", (i,)) for i in range(50)]
        assert [x.fetchone()[0] for x in cursors] == list(range(50))


def test_psycopg2(bench):
    c = psycopg2.connect(bench.hotlane.dsn("pg"))
    with c, c.cursor() as cursor:
        cursor.execute("CREATE TEMP TABLE x (a int)")
        cursor.execute("INSERT INTO x SELECT generate_series(1, 1000)")
        cursor.execute("SELECT count(*), sum(a) FROM x")
        assert cursor.fetchone() == (1000, 500500)
    assert c.get_backend_pid() > 0
    with c.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        assert bench.shares or cursor.fetchone()[0] == c.get_backend_pid()
    c.close()


def test_asyncpg(bench):
    async def run():
        c = await asyncpg.connect(host="127.0.0.1", port=bench.hotlane.port, user="app", database="pg")
        assert await c.fetchval("SELECT $1::int + 1", 41) == 42
        async with c.transaction():
            await c.execute("INSERT INTO t (id, v) VALUES ($1, $2)", 301, "x")
            rows = [r async for r in c.cursor("SELECT generate_series(1, 500)", prefetch=50)]
            assert len(rows) == 500
        with pytest.raises(asyncpg.UniqueViolationError):
            await c.execute("INSERT INTO t (id, v) VALUES ($1, $2)", 301, "x")
        await c.copy_records_to_table("t", records=[(i, "c") for i in range(310, 330)])
        assert await c.fetchval("SELECT count(*) FROM t WHERE v = 'c'") == 20
        await c.execute("DELETE FROM t WHERE id >= 300")
        await c.close()
    asyncio.run(run())


def test_copy_in_out_and_a_failure_in_the_middle(bench):
    with bench.hotlane.connect("pg") as c:
        with c.cursor().copy("COPY t (id, v) FROM STDIN") as copy:
            for i in range(1000, 6000):
                copy.write_row((i, "x" * 100))
        with c.cursor().copy("COPY t TO STDOUT") as copy:
            assert sum(1 for _ in copy.rows()) == 5000
        with pytest.raises(psycopg.Error):
            with c.cursor().copy("COPY t (id, v) FROM STDIN") as copy:
                for i in range(1000, 3000):
                    copy.write_row((i, "dup"))
        assert c.execute("SELECT count(*) FROM t").fetchone()[0] == 5000
        c.execute("DELETE FROM t WHERE id >= 0")


def test_cancel_reaches_its_statement_only(bench):
    with bench.hotlane.connect("pg") as c, bench.hotlane.connect("pg") as other:
        timer = threading.Timer(0.3, c.cancel)
        timer.start()
        started = time.monotonic()
        with pytest.raises(psycopg.errors.QueryCanceled):
            c.execute("SELECT pg_sleep(20)")
        assert time.monotonic() - started < 15
        timer.join()
        assert other.execute("SELECT 1").fetchone() == (1,)
        assert c.execute("SELECT 2").fetchone() == (2,)


def test_isolation_at_postgres_is_that_of_the_engine(bench):
    """Read, then write what was read: the second of two clients must fail, not overwrite."""
    with bench.hotlane.connect("pg") as a, bench.hotlane.connect("pg") as b:
        a.execute("INSERT INTO t (id, v) VALUES (700, '0')")
        for c in (a, b):
            c.execute("BEGIN")
            c.execute("SELECT v FROM t WHERE id = 700").fetchone()
        a.execute("UPDATE t SET v = '1' WHERE id = 700")
        a.execute("COMMIT")
        with pytest.raises(psycopg.errors.SerializationFailure):
            b.execute("UPDATE t SET v = '1' WHERE id = 700")
        b.execute("ROLLBACK")
        b.execute("BEGIN ISOLATION LEVEL READ COMMITTED")
        assert b.execute("SHOW transaction_isolation").fetchone()[0] == "read committed"
        b.execute("COMMIT")
        b.execute("DELETE FROM t WHERE id = 700")


def test_autocommit_increments_at_postgres_do_not_conflict(bench):
    with bench.hotlane.connect("pg") as c:
        c.execute("INSERT INTO t (id, v) VALUES (800, '0')")
    errors = []

    def increments():
        with bench.hotlane.connect("pg") as c:
            for i in range(100):
                try:
                    c.execute("UPDATE t SET v = (v::int + 1)::text WHERE id = 800")
                    if i % 10 == 0:
                        c.execute("BEGIN")
                        c.execute("SELECT 1")
                        c.execute("COMMIT")
                except psycopg.Error as e:
                    errors.append(e)
    threads = [threading.Thread(target=increments) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not errors
    with bench.hotlane.connect("pg") as c:
        assert c.execute("SELECT v FROM t WHERE id = 800").fetchone()[0] == "800"
        c.execute("DELETE FROM t WHERE id = 800")


def test_a_session_follows_its_tool_with_statements_and_parameters(bench):
    with bench.hotlane.connect("mover", prepare_threshold=0) as c:
        c.execute("INSERT INTO t (id, v) VALUES (%s, %s)", (1, "a"))
        c.execute("SET application_name = 'follower'")
        for home in ("postgres", "engine", "postgres"):
            done = bench.hotlane.route("mover", home)
            assert done.returncode == 0, done.stdout + done.stderr
            n = c.execute("SELECT count(*) FROM t").fetchone()[0]
            c.execute("INSERT INTO t (id, v) VALUES (%s, %s)", (n + 1, home))
            if home == "postgres":
                assert c.execute("SHOW application_name").fetchone()[0] == "follower"
                assert c.execute("SELECT pg_backend_pid() > 0").fetchone()[0]
        assert c.execute("SELECT count(*) FROM t").fetchone()[0] == 4


def test_pinned_sessions_are_told_why(bench):
    if bench.hotlane.where("mover")["home"] != "postgres":
        assert bench.hotlane.route("mover", "postgres").returncode == 0
    with bench.hotlane.connect("mover") as c:
        c.execute("LISTEN something")
        assert bench.hotlane.route("mover", "engine").returncode == 0
        with pytest.raises(psycopg.Error) as told:
            c.execute("SELECT 1")
        # libpq reports the end of the connection, with the server's last words in it.
        assert "cannot follow" in str(told.value) and "LISTEN" in str(told.value)


def test_link_cut_at_commit_is_unknown_and_elsewhere_is_not(bench):
    gate = bench.gates["eng"]
    c = bench.hotlane.connect("eng")
    c.execute("BEGIN")
    c.execute("INSERT INTO t (id, v) VALUES (900, 'x')")
    gate.cut_after("COMMIT")
    with pytest.raises(psycopg.Error) as told:
        c.execute("COMMIT")
    assert told.value.sqlstate == "08007"
    gate.cut_after(None)
    c = bench.hotlane.connect("eng")
    gate.cut_after("SELECT V FROM T")
    with pytest.raises(psycopg.Error) as told:
        c.execute("SELECT v FROM t WHERE id = 1")
    assert told.value.sqlstate == "08006"
    gate.cut_after("INSERT INTO T")
    c = bench.hotlane.connect("eng")
    with pytest.raises(psycopg.Error) as told:
        c.execute("INSERT INTO t (id, v) VALUES (901, 'x')")
    assert told.value.sqlstate == "08007"
    gate.cut_after(None)


def test_an_idle_session_survives_the_loss_of_its_link(bench):
    with bench.hotlane.connect("eng") as c:
        c.execute("SELECT 1")
        bench.gates["eng"].cut_all()
        # The loss is noticed while nothing is owed: the next statement gets a new link, silently.
        time_limit = time.monotonic() + 10
        while True:
            try:
                assert c.execute("SELECT 1").fetchone() == (1,)
                break
            except psycopg.Error as e:
                raise AssertionError(f"told of a loss while idle: {e.sqlstate} {e}") from e
            finally:
                assert time.monotonic() < time_limit


def test_home_away_at_connect(bench):
    bench.gates["eng"].refuse = True
    bench.gates["eng"].cut_all()
    try:
        with pytest.raises(psycopg.OperationalError) as told:
            with bench.hotlane.connect("eng") as c:   # over shared links the first statement asks for one
                c.execute("SELECT 1")
        assert "08001" in str(told.value) or "home" in str(told.value)
    finally:
        bench.gates["eng"].refuse = False
    with bench.hotlane.connect("eng") as c:
        assert c.execute("SELECT 1").fetchone() == (1,)


def test_unknown_database_is_refused_with_a_reason(bench):
    with pytest.raises(psycopg.OperationalError) as told:
        bench.hotlane.connect("nobody_knows_it")
    assert "nobody_knows_it" in str(told.value)


@pytest.mark.parametrize("junk", [
    b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\0" * 64,
    struct.pack("!I", 0x7FFFFFFF) + b"\0\x03\0\0", struct.pack("!II", 8, 0x00020000), b"\0\0\0\x04"])
def test_junk_is_closed_at_once(bench, junk):
    with socket.create_connection(("127.0.0.1", bench.hotlane.port), timeout=5) as s:
        s.sendall(junk)
        s.settimeout(5)
        while s.recv(4096):
            pass


def test_ssl_and_gss_requests_are_answered(bench):
    with socket.create_connection(("127.0.0.1", bench.hotlane.port), timeout=5) as s:
        for code in (80877104, 80877103):
            s.sendall(struct.pack("!II", 8, code))
            assert s.recv(1) == b"N"


def test_a_client_that_does_not_read_leaves_memory_bounded(bench):
    def rss():
        text = open(f"/proc/{bench.hotlane.process.pid}/status").read()
        return int(text.split("VmRSS:")[1].split()[0]) * 1024
    before = rss()
    c = psycopg.connect(bench.hotlane.dsn("pg"), autocommit=True)
    c.pgconn.send_query(b"SELECT repeat('x', 1000000) FROM generate_series(1, 500)")
    c.pgconn.flush()
    samples = []
    wait_until(lambda: samples.append(rss()) or len(samples) > 100, 20, "a while passes")
    assert max(samples) - before < 20 * 1024 * 1024
    c.close()


def test_restart_of_postgres_under_load(bench):
    stop = threading.Event()
    states: set = set()

    def work():
        c = None
        while not stop.is_set():
            try:
                c = c if c and not c.closed else bench.hotlane.connect("pg")
                c.execute("SELECT 1")
            except psycopg.Error as e:
                states.add(e.sqlstate)
                stop.wait(0.05)
    threads = [threading.Thread(target=work) for _ in range(8)]
    for t in threads:
        t.start()
    bench.pg.stop("fast")
    bench.pg.start()
    stop.set()
    for t in threads:
        t.join(20)
        assert not t.is_alive()
    assert states <= {"57P01", "57P03", "08001", "08006", None}, states
    with bench.hotlane.connect("pg") as c:
        assert c.execute("SELECT 1").fetchone() == (1,)

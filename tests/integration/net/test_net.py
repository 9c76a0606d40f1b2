"""The data plane alone (net-harness) in front of a real PostgreSQL: relay, cancel, hold, loss, limits."""
import socket
import struct
import subprocess
import threading
import time

import psycopg
import pytest
from hotlane_test.gate import Gate
from hotlane_test.harness import Harness
from hotlane_test.process import free_port, make_folder, wait_until
from hotlane_test.servers import PG_BIN, Postgres


@pytest.fixture(scope="module")
def pg():
    server = Postgres(make_folder("net-")).start()
    yield server
    server.stop("immediate")


@pytest.fixture
def hl(pg):
    harness = Harness("127.0.0.1", pg.port, "threads", 2)
    yield harness
    harness.close()


def pgbench(hl, *options):
    return subprocess.run([str(PG_BIN / "pgbench"), "-n", "-h", "127.0.0.1", "-p", str(hl.port), "-U", "postgres",
                           *options, "postgres"], capture_output=True, text=True, timeout=120)


def test_rows_errors_and_copy_pass_both_ways(hl):
    with hl.connect() as c:
        assert c.execute("select 1").fetchone() == (1,)
        c.execute("create temp table t (n int, s text)")
        with c.cursor().copy("copy t from stdin") as copy:
            for i in range(20_000):
                copy.write_row((i, "x" * 200))
        with c.cursor().copy("copy t to stdout") as copy:
            assert sum(1 for _ in copy.rows()) == 20_000
        with pytest.raises(psycopg.errors.DivisionByZero):
            c.execute("select 1/0")
        assert c.execute("select count(*) from t").fetchone() == (20_000,)


@pytest.mark.parametrize("mode", ["simple", "extended", "prepared"])
def test_many_clients(hl, mode):
    with hl.connect() as c:
        c.execute("create table if not exists many (n int)")
        c.execute("truncate many")
    folder = make_folder("net-script-")
    (folder / "s.sql").write_text("insert into many values (1);\nselect 1;\n")
    done = pgbench(hl, "-c", "64", "-j", "2", "-t", "20", "-M", mode, "-f", str(folder / "s.sql"))
    assert done.returncode == 0, done.stderr
    with hl.connect() as c:
        assert c.execute("select count(*) from many").fetchone() == (64 * 20,)


def test_a_cancel_reaches_its_statement_and_only_it(hl):
    with hl.connect() as sleeper, hl.connect() as other:
        result = []

        def long_query():
            try:
                sleeper.execute("select pg_sleep(30)")
            except psycopg.errors.QueryCanceled as e:
                result.append(e)

        thread = threading.Thread(target=long_query)
        thread.start()
        wait_until(lambda: other.execute("select count(*) from pg_stat_activity where state='active' and "
                                         "query like '%%pg_sleep(30)%%' and pid = %s",
                                         (sleeper.info.backend_pid,)).fetchone()[0] == 1, 10, "it sleeps")
        forged = struct.pack("!IIII", 16, 80877102, sleeper.info.backend_pid, 12345)
        with socket.create_connection(("127.0.0.1", hl.port)) as s:
            s.sendall(forged)
            assert s.recv(1) == b""
        assert thread.is_alive() and hl.stats()["cancels_unmatched"] == 1
        sleeper.cancel()
        thread.join(10)
        assert len(result) == 1
        assert sleeper.execute("select 2").fetchone() == (2,)


def test_a_client_that_does_not_read_costs_bounded_memory(hl):
    before = hl.stats()["rss_kb"]
    with socket.create_connection(("127.0.0.1", hl.port)) as s:
        body = struct.pack("!I", 196608) + b"user\0postgres\0database\0postgres\0\0"
        s.sendall(struct.pack("!I", len(body) + 4) + body)
        assert s.recv(1) == b"R"
        sql = b"select repeat('x', 100000) from generate_series(1, 5000)\0"    # 500 MB
        s.sendall(b"Q" + struct.pack("!I", len(sql) + 4) + sql)
        wait_until(lambda: hl.stats()["inside"] == 1, 10, "it runs")
        end = time.monotonic() + 2
        while time.monotonic() < end:
            assert hl.stats()["rss_kb"] - before < 20_000
    wait_until(lambda: hl.stats()["inside"] == 0, 10, "the client's end was noticed")


def test_a_hold_keeps_order_and_a_gone_client_is_never_executed(hl):
    with hl.connect() as c:
        c.execute("drop table if exists held; create table held (n int)")
    clients = [hl.connect() for _ in range(3)]
    hl.tell("hold")
    threads = []
    for i, c in enumerate(clients[:2]):
        threads.append(threading.Thread(target=c.execute, args=(f"insert into held values ({i})",)))
        threads[-1].start()
        wait_until(lambda want=i + 1: hl.stats()["waiting"] == want, 10, "it waits")
    gone = clients[2].pgconn
    gone.send_query(b"insert into held values (99)")
    gone.flush()
    wait_until(lambda: hl.stats()["waiting"] == 3, 10, "the third waits")
    clients[2].close()
    wait_until(lambda: hl.stats()["waiting"] == 2, 10, "the third was noticed to be gone")
    assert hl.tell("drain 1000") == "drained"
    hl.tell("release")
    for t in threads:
        t.join(10)
    assert sorted(r[0] for r in clients[0].execute("select n from held").fetchall()) == [0, 1]
    for c in clients[:2]:
        c.close()


def test_a_restarted_home_answers_within_half_a_second(pg, hl):
    c = hl.connect()
    c.execute("select 1")
    pg.stop("fast")
    answer = []

    def ask():
        answer.append((c.execute("select 7").fetchone(), time.monotonic()))

    thread = threading.Thread(target=ask)
    thread.start()
    wait_until(lambda: hl.stats()["waiting"] + hl.stats()["inside"] >= 1, 5, "it tries")
    pg.start()
    up = time.monotonic()
    thread.join(10)
    assert answer and answer[0][0] == (7,)
    assert answer[0][1] - up < 0.5
    c.close()


def test_refused_and_silent_homes_are_told_in_time():
    dead = Harness("127.0.0.1", free_port())
    start = time.monotonic()
    with pytest.raises(psycopg.OperationalError) as refused:
        dead.connect()
    assert 3 < time.monotonic() - start < 9
    assert "refused" in str(refused.value).lower()
    dead.close()
    gate = Gate(1)
    gate._serve = lambda client: None      # accepts and never speaks
    silent = Harness("127.0.0.1", gate.port)
    start = time.monotonic()
    with pytest.raises(psycopg.OperationalError):
        silent.connect()
    assert time.monotonic() - start < 12
    silent.close()
    gate.close()


def test_scram_home_and_unix_sockets_on_both_sides():
    folder = make_folder("net-scram-")
    server = Postgres(folder, scram_password="only-the-h\u00adome-knows-\u2168").start()
    path = str(folder / "hl.sock")
    hl = Harness(folder, server.port, "password", "only-the-home-knows-I\u00adX", "unix", path)
    try:
        with hl.connect() as c:
            assert c.execute("select 1").fetchone() == (1,)
        with socket.socket(socket.AF_UNIX) as s:
            s.connect(path)
            s.sendall(struct.pack("!II", 8, 80877103))
            assert s.recv(1) == b"N"
    finally:
        hl.close()
        server.stop("immediate")


def test_limits_of_clients(pg):
    hl = Harness("127.0.0.1", pg.port, "clients", 2, "before_login", 5, "login_ms", 1500)
    a, b = hl.connect(), hl.connect()
    with pytest.raises(psycopg.OperationalError) as full:
        hl.connect()
    assert "too many clients" in str(full.value)
    b.close()
    wait_until(lambda: hl.stats()["sessions"] == 1, 5, "one is left")
    hl.connect().close()
    silent = [socket.create_connection(("127.0.0.1", hl.port)) for _ in range(8)]
    wait_until(lambda: hl.stats()["accepted"] >= 12 and hl.stats()["before_login"] <= 5, 5, "bounded")
    wait_until(lambda: hl.stats()["before_login"] == 0, 10, "the login timer closed them")
    assert a.execute("select 3").fetchone() == (3,)
    for s in silent:
        s.close()
    a.close()
    hl.close()


def test_killed_homes_under_load_leave_nothing_behind(pg):
    gate = Gate(pg.port)
    hl = Harness("127.0.0.1", gate.port, "threads", 2)
    stop = threading.Event()
    good, lost = [0], [0]

    def work():
        while not stop.is_set():
            try:
                with hl.connect() as c:
                    while not stop.is_set():
                        c.execute("select 1")
                        good[0] += 1
            except psycopg.OperationalError:
                lost[0] += 1

    threads = [threading.Thread(target=work) for _ in range(8)]
    for t in threads:
        t.start()
    for _ in range(5):
        mark = good[0]
        wait_until(lambda m=mark: good[0] > m + 20, 20, "work goes on")
        gate.cut_all()
    mark = good[0]
    wait_until(lambda m=mark: good[0] > m + 20, 20, "and it recovers")
    stop.set()
    for t in threads:
        t.join(20)
    hl.close()
    gate.close()

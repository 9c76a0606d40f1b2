"""Moves in the middle of driver sessions: they go on at the new home with statements and parameters intact; those
that cannot are told 57P01 and why."""
import asyncio
import shutil
import subprocess
import threading
from pathlib import Path

import asyncpg
import psycopg
import psycopg2
import pytest

from hotlane_test.harness import pool_modes
from hotlane_test.pgwire import Closed, Wire, bind, describe, execute, fields_of, parse, query, sync
from hotlane_test.process import wait_until
from hotlane_test.servers import Bench

HERE = Path(__file__).parent
JDBC = Path("/usr/share/java/postgresql.jar")
POLICIES = "policies:\n  default:\n    mode: observe\n    rails: {hold_max: 10s}\n"
BY_KEY = "SELECT v FROM t WHERE id = "


@pytest.fixture(scope="module", params=pool_modes())
def bench(request):
    pool = f"    pool: {{mode: {request.param}, max: 8}}\n"
    with Bench(["shop", "pins"], commit_latency="1ms", scan_cost="50ns", policies=POLICIES, extra_tool=pool) as b:
        b.hotlane.start()
        for tool in ("shop", "pins"):
            with b.hotlane.connect(tool) as c:
                c.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT)")
                for i in (1, 2, 3):
                    c.execute(f"INSERT INTO t (id, v) VALUES ({i}, 'value {i}')")
        yield b


def move(bench, tool: str, home: str):
    done = bench.hotlane.route(tool, home)
    assert done.returncode == 0, done.stdout + done.stderr


class Loop:
    """Something that asks over and over on one connection, and counts the answers."""

    def __init__(self, work):
        self.answers, self.failed, self.stop = 0, None, threading.Event()
        self.thread = threading.Thread(target=self._run, args=(work,))
        self.thread.start()

    def _run(self, work):
        try:
            work(self)
        except Exception as e:
            self.failed = e

    def end(self):
        self.stop.set()
        self.thread.join(60)
        assert not self.thread.is_alive()


class ProgramLoop:
    def __init__(self, command):
        self.child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                      text=True)
        self.answers, self.failed = 0, None
        self.thread = threading.Thread(target=self._read)
        self.thread.start()

    def _read(self):
        for line in self.child.stdout:
            self.answers = int(line)

    def end(self):
        if self.child.poll() is None:
            self.child.stdin.write("\n")
        errors = self.child.communicate(timeout=60)[1]
        self.thread.join(60)
        assert self.child.returncode == 0, errors[-3000:]


def psycopg3_loop(dsn):
    def work(loop):
        with psycopg.connect(dsn, autocommit=True, prepare_threshold=0) as c:
            while not loop.stop.is_set():
                key = 1 + loop.answers % 3
                assert c.execute(BY_KEY + "%s", (key,)).fetchone() == (f"value {key}",)
                loop.answers += 1
    return Loop(work)


def psycopg2_loop(dsn):
    def work(loop):
        c = psycopg2.connect(dsn)
        while not loop.stop.is_set():
            with c, c.cursor() as cursor:            # a transaction each time
                cursor.execute(BY_KEY + "2")
                assert cursor.fetchone() == ("value 2",)
            loop.answers += 1
        c.close()
    return Loop(work)


def asyncpg_loop(port):
    async def asked(loop):
        c = await asyncpg.connect(host="127.0.0.1", port=port, user="app", database="shop")
        statement = await c.prepare(BY_KEY + "$1")
        while not loop.stop.is_set():
            assert await statement.fetchval(3) == "value 3"
            loop.answers += 1
        await c.close()
    return Loop(lambda loop: asyncio.run(asked(loop)))


def test_sessions_of_all_drivers_go_on(bench):
    dsn, port = bench.hotlane.dsn("shop"), bench.hotlane.port
    raw = Wire(port).login("app", "shop", application_name="born with it")
    raw.run("SET application_name = 'set later'")
    raw.send(parse(BY_KEY + "$1", "kept") + describe("S", "kept") + sync())
    raw.wait_for(lambda m: m[0] == b"Z", since=len(raw.messages))
    loops = {"psycopg3": psycopg3_loop(dsn), "psycopg2": psycopg2_loop(dsn), "asyncpg": asyncpg_loop(port)}
    if shutil.which("node") and (HERE / "node_modules" / "pg").exists():
        loops["node"] = ProgramLoop(["node", str(HERE / "node_loop.js"), str(port), "shop"])
    if shutil.which("javac") and JDBC.exists():
        loops["jdbc"] = ProgramLoop(["java", "-cp", str(JDBC), str(HERE / "JdbcLoop.java"), str(port), "shop"])
    try:
        for home in ("postgres", "engine", "postgres"):
            before = {name: loop.answers for name, loop in loops.items()}
            wait_until(lambda b=before: all_on(loops, b), 90, "all work")
            move(bench, "shop", home)
            before = {name: loop.answers for name, loop in loops.items()}
            wait_until(lambda b=before: all_on(loops, b), 90, f"all work at {home}")
            since = len(raw.messages)
            raw.send(bind("2", name="kept") + execute() + sync())       # by its name alone
            raw.wait_for(lambda m: m[0] == b"Z", since=since)
            assert (b"D", b"\0\1\0\0\0\7value 2") in raw.messages[since:]
            if home == "postgres":
                assert raw.run("SHOW application_name") == [[b"set later"]]
                raw.run("RESET application_name")
                assert raw.run("SHOW application_name") == [[b"born with it"]]
                raw.run("SET application_name = 'set later'")
    finally:
        for loop in loops.values():
            loop.end()
    assert {name: loop.failed for name, loop in loops.items() if loop.failed} == {}
    raw.drop()


def all_on(loops, before) -> bool:
    for name, loop in loops.items():
        if loop.failed:
            raise AssertionError(f"{name}: {loop.failed!r}")
    return all(loop.answers > before[name] for name, loop in loops.items())


PINS = {
    "LISTEN": "LISTEN something",
    "temporary": "CREATE TEMP TABLE mine (n int)",
    "advisory lock": "SELECT pg_advisory_lock(5)",
    "cursor": "DECLARE held CURSOR WITH HOLD FOR SELECT 1",
    "PREPARE": "PREPARE mine AS SELECT 1",
    "role": "SET ROLE app",
}


def test_sessions_that_cannot_follow_are_told_why(bench):
    if bench.hotlane.where("pins")["home"] != "postgres":
        move(bench, "pins", "postgres")
    wires = {}
    for reason, sql in PINS.items():
        wires[reason] = Wire(bench.hotlane.port).login("app", "pins")
        wires[reason].run(sql)
    free = Wire(bench.hotlane.port).login("app", "pins")
    free.run("SELECT pg_advisory_xact_lock(6)")
    move(bench, "pins", "engine")
    for reason, wire in wires.items():
        try:
            since = len(wire.messages)
            wire.send(query(BY_KEY + "1"))
            wire.wait_for(lambda m: False, since=since)
        except Closed:
            pass
        fatal = [fields_of(body) for tag, body in wire.messages if tag == b"E"]
        assert len(fatal) == 1 and fatal[0]["S"] == "FATAL" and fatal[0]["C"] == "57P01", (reason, fatal)
        assert reason.lower() in fatal[0]["M"].lower(), fatal
        wire.drop()
    assert free.run(BY_KEY + "1") == [[b"value 1"]]
    free.drop()

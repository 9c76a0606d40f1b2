"""What must not depend on what hotlane remembers: DDL of the last moment, and a state file that is gone."""
import contextlib
import shutil
import sqlite3
import tempfile
import time

import pytest

from hotlane_test.servers import OBSERVE, Bench


@pytest.fixture
def bench():
    with Bench(["shop", "desk"], commit_latency="1ms", policies=OBSERVE) as b:
        b.hotlane.start()
        for tool in b.tools:
            with b.hotlane.connect(tool) as c:
                c.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER CHECK (n >= 0))")
                c.execute("INSERT INTO t VALUES (1, 0)")
        yield b


def kept_ddl(bench):
    """Of a hotlane that was killed: read from a copy, so that its own file stays as it was left."""
    with tempfile.TemporaryDirectory() as folder:
        for path in bench.folder.glob("state.db*"):
            shutil.copy(path, folder)
        with contextlib.closing(sqlite3.connect(f"{folder}/state.db")) as c:
            return [r[0] for r in c.execute("SELECT statement FROM ddl WHERE tool = 'shop'")]


def test_ddl_is_in_the_store_before_its_client_is_told(bench):
    longest = 0
    for i in range(8):
        sql = f"CREATE TABLE made{i} (id INTEGER PRIMARY KEY, CHECK (id > {i}))"
        with bench.hotlane.connect("shop") as c:
            start = time.monotonic()
            c.execute(sql, prepare=i % 2 == 1)
            longest = max(longest, time.monotonic() - start)
            bench.hotlane.kill()
        assert sql in kept_ddl(bench), i
        bench.hotlane.start()
    assert longest < 1.0, longest
    with bench.hotlane.connect("shop") as c:
        c.execute("INSERT INTO made7 VALUES (8)")
    done = bench.hotlane.json("route", "shop", "--to", "postgres")
    assert done["would_move"], done


def test_ddl_in_a_block_and_in_one_text_waits_for_the_store_too(bench):
    done = bench.hotlane.route("shop", "postgres")
    assert done.returncode == 0, done.stdout + done.stderr
    with bench.hotlane.connect("shop") as c:
        c.execute("BEGIN")
        c.execute("CREATE TABLE in_block (id bigint PRIMARY KEY)")
        c.execute("COMMIT")
        c.execute("CREATE TABLE text_a (id bigint PRIMARY KEY); CREATE TABLE text_b (id bigint PRIMARY KEY)")
        bench.hotlane.kill()
    kept = " ".join(kept_ddl(bench))
    assert "in_block" in kept and "text_a" in kept and "text_b" in kept, kept


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_a_state_file_that_is_gone_loses_nothing(bench, end):
    done = bench.hotlane.route("shop", "postgres")
    assert done.returncode == 0, done.stdout + done.stderr
    with bench.hotlane.connect("shop") as c:
        c.execute("INSERT INTO t VALUES (2, 2)")
    with bench.hotlane.connect("desk") as c:
        c.execute("INSERT INTO t VALUES (3, 3)")
    getattr(bench.hotlane, end)()
    for path in bench.folder.glob("state.db*"):
        path.unlink()
    bench.hotlane.start()
    assert (bench.hotlane.where("shop")["home"], bench.hotlane.where("shop")["epoch"]) == ("postgres", 2)
    assert bench.hotlane.where("desk")["home"] == "engine"
    for tool, ids in (("shop", [1, 2]), ("desk", [1, 3])):
        with bench.hotlane.connect(tool) as c:
            assert [r[0] for r in c.execute("SELECT id FROM t ORDER BY id")] == ids
            c.execute("INSERT INTO t VALUES (9, 9)")
    assert bench.pg.execute("SELECT count(*) FROM t", "shop") == [(3,)]
    # What it needs for the way back it reads from the homes.
    done = bench.hotlane.route("shop", "engine")
    assert done.returncode == 0, done.stdout + done.stderr
    assert bench.engine.execute("shop", "SELECT id FROM t ORDER BY id") == [(1,), (2,), (9,)]
    assert bench.hotlane.where("shop")["epoch"] == 3

"""What sessions do that a move must tell of: blocks that go on after an error, sessions that cannot follow."""
import psycopg
import pytest

from hotlane_test.process import wait_until
from hotlane_test.servers import OBSERVE, Bench


@pytest.fixture(scope="module")
def bench():
    with Bench(["shop"], commit_latency="1ms", policies=OBSERVE) as b:
        b.hotlane.start()
        with b.hotlane.connect("shop") as c:
            c.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER)")
            c.execute("INSERT INTO t VALUES (1, 0)")
        yield b


def dry_run(bench, home):
    return bench.hotlane.json("route", "shop", "--to", home)


def test_blocks_that_go_on_after_an_error_are_counted_and_told(bench):
    assert not any("after an error" in n for n in dry_run(bench, "postgres")["detail"].get("notes", []))
    with bench.hotlane.connect("shop") as c:
        c.execute("BEGIN")
        with pytest.raises(psycopg.Error, match="UNIQUE"):
            c.execute("INSERT INTO t VALUES (1, 1)")
        c.execute("INSERT INTO t VALUES (2, 2)")
        c.execute("UPDATE t SET n = 5 WHERE id = 1")
        c.execute("COMMIT")
        # Both homes understand this one.
        c.execute("BEGIN")
        c.execute("SAVEPOINT s")
        with pytest.raises(psycopg.Error):
            c.execute("INSERT INTO t VALUES (1, 1)")
        c.execute("ROLLBACK TO s")
        c.execute("INSERT INTO t VALUES (3, 3)")
        c.execute("COMMIT")
    assert bench.engine.execute("shop", "SELECT id FROM t ORDER BY id") == [(1,), (2,), (3,)]
    seen = bench.hotlane.json("where", "shop")["traffic"]["after_error"]
    assert seen["blocks"] == 1
    assert {w: n for w, n in seen["statements"].items() if n} == {"insert": 1, "update": 1, "commit": 1}
    assert 'hotlane_after_error_blocks_total{tool="shop"} 1' in bench.hotlane.metrics()
    assert 'hotlane_after_error_statements_total{tool="shop",statement="insert"} 1' in bench.hotlane.metrics()
    assert "1 blocks went on after an error" in bench.hotlane.cli("explain", "shop").stdout
    done = dry_run(bench, "postgres")
    assert done["would_move"], done
    note = next(n for n in done["detail"]["notes"] if "after an error" in n)
    assert note.startswith("1 blocks") and "1 insert" in note and "1 update" in note and "1 commit" in note, note
    assert done["detail"]["sessions"]["after_error"]["statements"] == {"insert": 1, "update": 1, "commit": 1}
    assert "after an error" in bench.hotlane.cli("route", "shop", "--to", "postgres").stdout


def test_sessions_that_cannot_follow_are_in_a_dry_run_with_their_reasons(bench):
    done = bench.hotlane.route("shop", "postgres")
    assert done.returncode == 0, done.stdout + done.stderr
    with bench.hotlane.connect("shop") as listens, bench.hotlane.connect("shop") as locks:
        listens.execute("LISTEN news")
        locks.execute("SELECT pg_advisory_lock(7)")
        wait_until(lambda: dry_run(bench, "engine")["detail"]["sessions"]["pinned"] == 2, 10, "both are counted")
        told = dry_run(bench, "engine")["detail"]
        assert told["sessions"]["pinned_by"] == {"listen": 1, "advisory_lock": 1}
        note = next(n for n in told["notes"] if "cannot follow" in n)
        assert note.startswith("2 sessions") and "1 listen" in note and "1 advisory_lock" in note, note
    wait_until(lambda: dry_run(bench, "engine")["detail"]["sessions"]["pinned"] == 0, 10, "they have gone")
    assert not any("cannot follow" in n for n in dry_run(bench, "engine")["detail"].get("notes", []))

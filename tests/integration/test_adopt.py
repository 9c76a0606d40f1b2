"""A PostgreSQL home that was restored from a backup: nobody serves, and an operator adopts one home."""
import json
import subprocess

import psycopg
import pytest

from hotlane_test.fleet import Fleet
from hotlane_test.process import wait_until
from hotlane_test.servers import OBSERVE, PG_BIN, Bench


@pytest.fixture
def bench():
    with Bench(["shop"], commit_latency="1ms", policies=OBSERVE) as b:
        b.hotlane.start()
        with b.hotlane.connect("shop") as c:
            c.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT)")
            c.execute("CREATE TABLE u (id INTEGER PRIMARY KEY)")
            c.execute("INSERT INTO t VALUES (1, 'first')")
        yield b


def write(bench, number):
    with bench.hotlane.connect("shop") as c:
        c.execute(f"INSERT INTO t VALUES ({number}, 'x')")


def rows(bench):
    with bench.hotlane.connect("shop") as c:
        return [r[0] for r in c.execute("SELECT id FROM t ORDER BY id")]


def move(bench, home):
    done = bench.hotlane.route("shop", home)
    assert done.returncode == 0, done.stdout + done.stderr


def back_up(bench):
    done = subprocess.run([PG_BIN / "pg_dump", "-d", bench.pg.dsn("shop"), "--create", "--clean", "--if-exists"],
                          capture_output=True, text=True, check=True)
    return done.stdout


def restore(bench, backup):
    """The database as the backup has it; hotlane starts anew, as after an outage."""
    bench.hotlane.stop()
    bench.pg.execute("DROP DATABASE shop WITH (FORCE)")
    subprocess.run([PG_BIN / "psql", "-q", "-v", "ON_ERROR_STOP=1", "-d", bench.pg.dsn("postgres")],
                   input=backup, capture_output=True, text=True, check=True)
    bench.hotlane.start()
    wait_until(lambda: not bench.hotlane.where("shop")["served"], 20, "the restored home is found out")
    reason = bench.hotlane.where("shop")["reason"]
    assert "restored" in reason and "hotlane adopt" in reason, reason
    with pytest.raises(psycopg.Error, match="restored"):
        rows(bench)


def adopt(bench, home, *more, exit_code=0):
    done = bench.hotlane.cli("adopt", "shop", "--home", home, "-o", "json", *more, check=False)
    assert done.returncode == exit_code, done.stdout + done.stderr
    return json.loads(done.stdout)


def accepts_directly(bench, number):
    """Which homes take a row of somebody who goes round hotlane."""
    took = []
    for home, dsn in (("engine", bench.engine.dsn("shop")), ("postgres", bench.pg.dsn("shop", "app"))):
        try:
            with psycopg.connect(dsn, autocommit=True) as c:
                c.execute(f"INSERT INTO t (id) VALUES ({number})")
            took.append(home)
        except psycopg.Error:
            pass
    return took


def test_a_backup_from_before_the_move(bench):
    backup = back_up(bench)
    move(bench, "postgres")
    write(bench, 2)
    restore(bench, backup)
    refused = adopt(bench, "postgres", exit_code=6)
    assert [r["code"] for r in refused["refusals"]] == ["no_complete_tables"] * 2 and not refused["would_adopt"]
    seen = adopt(bench, "engine")
    assert seen["would_adopt"] and not seen["executed"] and not seen["adopted"]
    detail = seen["detail"]
    assert detail["store"]["home"] == "postgres" and detail["postgres"]["marker"] is None
    assert sorted(detail["engine"]["tombstones"]) == ["t", "u"] and not detail["engine"]["tables"]
    assert {"name": "t", "rows": 1} in detail["engine"]["copies"]
    assert "since move" in detail["may_be_missing"][0]
    assert not bench.hotlane.where("shop")["served"]
    told = bench.hotlane.cli("adopt", "shop", "--home", "engine")
    text = told.stdout + told.stderr
    assert "nothing was changed" in text and "--execute" in text and "may be missing" in text
    done = adopt(bench, "engine", "--execute")
    assert done["adopted"] and done["detail"]["new_epoch"] == 3
    assert bench.hotlane.where("shop")["epoch"] == 3
    assert rows(bench) == [1]          # the write at PostgreSQL is what the operator was told of
    write(bench, 3)
    assert accepts_directly(bench, 50) == ["engine"]
    assert any(m["outcome"] == "adopted" for m in bench.hotlane.json("moves")["moves"])
    move(bench, "postgres")
    assert rows(bench) == [1, 3, 50]
    assert bench.hotlane.where("shop")["epoch"] == 4
    assert adopt(bench, "engine", "--execute", exit_code=6)["refusals"][0]["code"] in ("served", "higher_epoch")


def test_a_backup_that_serves_while_the_tool_is_at_home(bench):
    move(bench, "postgres")
    backup = back_up(bench)
    move(bench, "engine")
    write(bench, 2)
    restore(bench, backup)
    assert accepts_directly(bench, 60) == ["engine", "postgres"]  # what the adoption ends
    assert adopt(bench, "postgres", exit_code=6)["refusals"][0]["code"] == "higher_epoch"
    done = adopt(bench, "engine", "--execute")
    assert done["adopted"]
    assert rows(bench) == [1, 2, 60]
    assert accepts_directly(bench, 61) == ["engine"]
    kept = bench.pg.execute("SELECT nspname FROM pg_namespace WHERE nspname LIKE 'hotlane\\_%\\_fenced' "
                            "AND EXISTS (SELECT 1 FROM pg_class c WHERE c.relnamespace = pg_namespace.oid "
                            "AND c.relname = 't')", "shop")
    assert kept, "the restored rows are kept aside"
    assert bench.hotlane.where("shop")["epoch"] == 4
    move(bench, "postgres")
    assert rows(bench) == [1, 2, 60, 61]


def test_a_backup_with_the_tables_may_be_adopted_itself(bench):
    move(bench, "postgres")
    write(bench, 2)
    backup = back_up(bench)
    move(bench, "engine")
    write(bench, 3)
    move(bench, "postgres")
    write(bench, 4)
    restore(bench, backup)
    done = adopt(bench, "postgres", "--execute")
    assert done["adopted"] and "after PostgreSQL's data was as it is now" in done["detail"]["may_be_missing"][0]
    assert rows(bench) == [1, 2]
    assert accepts_directly(bench, 70) == ["postgres"]
    bench.hotlane.stop()
    bench.hotlane.start()               # and it is remembered
    assert rows(bench) == [1, 2, 70]
    move(bench, "engine")
    assert rows(bench) == [1, 2, 70] and accepts_directly(bench, 71) == ["engine"]


def test_the_leader_of_a_fleet_adopts_and_every_sidecar_follows():
    with Fleet(2) as fleet:
        fleet.start()
        with fleet.leader().connect("shop") as c:
            c.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT)")
            c.execute("INSERT INTO t VALUES (1, 'first')")
        fleet.move("postgres")
        for s in fleet.sidecars:
            s.stop()
        fleet.home.execute("DROP DATABASE shop WITH (FORCE)")
        fleet.home.execute("CREATE DATABASE shop OWNER app")
        for one in fleet.sidecars:      # none gets ready: its tool has no home that is believed
            one.start(wait_ready=False)
        leader = fleet.leader()
        wait_until(lambda: fleet.homes() == ["-", "-"], 20, "nobody serves")
        follower = next(s for s in fleet.sidecars if s is not leader)
        refused = follower.cli("adopt", "shop", "--home", "engine", "--execute", check=False)
        assert refused.returncode == 6 and "leads" in refused.stderr, refused.stderr
        done = leader.json("adopt", "shop", "--home", "engine", "--execute")
        assert done["adopted"] and done["detail"]["new_epoch"] == 3, done
        fleet.wait_home("engine", 20)
        for i, s in enumerate(fleet.sidecars):
            with s.connect("shop") as c:
                c.execute(f"INSERT INTO t VALUES ({10 + i}, 'x')")
        assert fleet.engine.execute("shop", "SELECT id FROM t ORDER BY id") == [(1,), (10,), (11,)]
        # Whoever led before could change nothing at the marker any more.
        assert fleet.home.execute("SELECT leader FROM hotlane.hotlane_home", "shop")[0][0] > 0
        fleet.move("postgres")

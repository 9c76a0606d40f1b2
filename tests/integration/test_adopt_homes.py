"""The mover alone adopts homes: a real PostgreSQL that came back from a backup, kill -9 at every statement."""
import subprocess

import pytest

from hotlane_test.mover import Mover, accepts
from hotlane_test.servers import PG_BIN, Bench

POINTS_MAX = 200


@pytest.fixture(scope="module")
def servers():
    with Bench(["shop"], commit_latency="1ms", scan_cost="50ns") as b:
        b.number = 0
        yield b


def restored(servers, before_the_first_move: bool):
    """A tool whose PostgreSQL home has the backup of an earlier time, and the row that only the backup lacks."""
    m = Mover(servers, ["CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT)", "CREATE TABLE u (id INTEGER PRIMARY KEY)"])
    m.engine("INSERT INTO t VALUES (1, 'x')")
    if not before_the_first_move:
        m.moved("postgres")
    backup = subprocess.run([PG_BIN / "pg_dump", "-d", servers.pg.dsn("shop"), "--create", "--clean", "--if-exists"],
                            capture_output=True, text=True, check=True).stdout
    m.moved("postgres" if before_the_first_move else "engine")
    (m.postgres if before_the_first_move else m.engine)("INSERT INTO t VALUES (2, 'y')")
    servers.pg.execute("DROP DATABASE shop WITH (FORCE)")
    subprocess.run([PG_BIN / "psql", "-q", "-v", "ON_ERROR_STOP=1", "-d", servers.pg.dsn()],
                   input=backup, capture_output=True, text=True, check=True)
    return m


def who_accepts(m, number):
    return [home for home, run in (("engine", m.engine), ("postgres", m.postgres))
            if accepts(run, f"INSERT INTO t (id) VALUES ({number})")]


@pytest.mark.parametrize("before", [True, False], ids=["never there", "came home"])
def test_the_engine_is_adopted(servers, before):
    m = restored(servers, before)
    seen = m.call("--adopt", "engine", "--dry-run")
    assert not seen["adopted"] and not seen["refusals"] and not seen["route"]["served"], seen
    assert "hotlane adopt" in seen["route"]["reason"]
    other = m.call("--adopt", "postgres")
    assert other["refusals"] and not other["adopted"]
    assert other["refusals"][0] == ("no_complete_tables" if before else "higher_epoch")
    done = m.call("--adopt", "engine")
    assert done["adopted"] and done["route"]["home"] == "engine", done
    assert done["route"]["epoch"] == seen["detail"]["new_epoch"]
    assert m.engine("SELECT id FROM t ORDER BY id") == ([(1,)] if before else [(1,), (2,)])
    assert who_accepts(m, 50) == ["engine"]
    for home in ("postgres", "engine"):
        m.moved(home)
        assert who_accepts(m, 60 if home == "engine" else 61) == [home]


@pytest.mark.parametrize("before", [True, False], ids=["never there", "came home"])
@pytest.mark.parametrize("suffix", ["", "r"])
def test_killed_at_every_statement_one_home_accepts_in_the_end(servers, before, suffix):
    for n in range(1, POINTS_MAX):
        m = restored(servers, before)
        alive = m.call("--adopt", "engine", env={"HOTLANE_CRASH_AT": f"{n}{suffix}"}, may_die=True)
        after = m.call("--recover")
        if not after["route"]["served"]:
            assert m.call("--adopt", "engine")["adopted"], n
            after = m.call("--recover")
        assert after["route"]["home"] == "engine" and after["route"]["epoch"] >= 3, (n, after)
        assert who_accepts(m, 50) == ["engine"], n
        assert m.engine("SELECT id FROM t ORDER BY id") == ([(1,), (50,)] if before else [(1,), (2,), (50,)]), n
        if alive is not None:
            assert n > 10
            return
    pytest.fail("there is no end of statements")

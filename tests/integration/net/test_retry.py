"""Lever 1 on the development engine: 16 writers on one row, with and without it."""
import shutil
import threading

import psycopg
import pytest
from hotlane_test.harness import Harness
from hotlane_test.process import make_folder
from hotlane_test.servers import DevEngine

WRITERS, EACH = 16, 25


@pytest.fixture(scope="module")
def engine():
    folder = make_folder("retry-")
    server = DevEngine(folder, ["postgres"]).start()
    yield server
    server.stop()
    shutil.rmtree(folder, ignore_errors=True)


def hammer(hl, sql: str, binds: tuple | None = None) -> tuple[int, int]:
    """Writers in step, each EACH times: how many were acknowledged, how many failed with a conflict."""
    good, bad, wrong = [0] * WRITERS, [0] * WRITERS, []
    start = threading.Barrier(WRITERS)

    def write(i):
        with hl.connect() as c:
            start.wait()
            for _ in range(EACH):
                try:
                    c.execute(sql, binds)
                    good[i] += 1
                except psycopg.errors.SerializationFailure:
                    bad[i] += 1
                except psycopg.Error as e:
                    wrong.append(e)

    threads = [threading.Thread(target=write, args=(i,)) for i in range(WRITERS)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(300)
    assert not wrong, wrong[:3]
    return sum(good), sum(bad)


@pytest.mark.parametrize("pool", [(), ("pool", 16), ("pool", 4)])
def test_sixteen_writers_of_one_row(engine, pool):
    plain = Harness("127.0.0.1", engine.ports["postgres"], "home", "engine", *pool)
    with plain.connect() as c:
        c.execute("CREATE TABLE IF NOT EXISTS hot (id INTEGER PRIMARY KEY, n INTEGER)")
        c.execute("DELETE FROM hot WHERE id = 1")
        c.execute("INSERT INTO hot (id, n) VALUES (1, 0)")
    good, bad = hammer(plain, "UPDATE hot SET n = n + 1 WHERE id = 1")
    if len(pool) == 0 or pool[1] == 16:
        assert bad / (good + bad) > 0.5, (good, bad)
    plain.close()
    retrying = Harness("127.0.0.1", engine.ports["postgres"], "home", "engine", "retry", 1000, *pool)
    total = good
    for sql, binds in (("UPDATE hot SET n = n + 1 WHERE id = 1", None),
                       ("UPDATE hot SET n = n + 1 WHERE id = %s", (1,))):
        good, bad = hammer(retrying, sql, binds)
        assert (good, bad) == (WRITERS * EACH, 0)
        total += good
    with retrying.connect() as c:
        assert int(c.execute("SELECT n FROM hot WHERE id = 1").fetchone()[0]) == total
    seen = retrying.stats()
    assert seen["retried"] > 0 and seen["retry_exhausted"] == 0
    assert seen["conflicts"] == seen["retry_tries"]      # the diagnosis sees what clients do not
    retrying.close()

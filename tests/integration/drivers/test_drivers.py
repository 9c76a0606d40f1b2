"""Drivers and their own features through hotlane, in every pool mode. HOTLANE_DIRECT=1: and without hotlane."""
import asyncio
import os
import shutil
import subprocess
import threading
from pathlib import Path

import asyncpg
import psycopg
import psycopg2
import psycopg2.extensions
import psycopg2.extras
import pytest

from hotlane_test.harness import Harness, pool_modes
from hotlane_test.process import make_folder, wait_until
from hotlane_test.servers import Postgres

HERE = Path(__file__).parent
JDBC = Path("/usr/share/java/postgresql.jar")


@pytest.fixture(scope="module")
def pg():
    server = Postgres(make_folder("drivers-"), settings={"fsync": "off"}).start()
    server.create("app", "drivers")
    yield server
    server.stop("immediate")


@pytest.fixture(scope="module", params=[*(["direct"] if os.environ.get("HOTLANE_DIRECT") else []), *pool_modes()])
def hl(request, pg):
    if request.param == "direct":
        yield pg
        return
    harness = Harness("127.0.0.1", pg.port, "threads", 2, "database", "*", "isolation", "read_committed",
                      pool=request.param)
    yield harness
    harness.close()


def dsn(hl) -> str:
    return f"host=127.0.0.1 port={hl.port} dbname=drivers user=app connect_timeout=10"


def asleep(pg, word: str) -> bool:
    return pg.execute(f"SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%{word}%' AND state = 'active' "
                      "AND pid <> pg_backend_pid()")[0][0] == 1


def cancel_when_asleep(pg, word: str, connection) -> threading.Thread:
    def run():
        wait_until(lambda: asleep(pg, word), 20, "it sleeps")
        connection.cancel()
    thread = threading.Thread(target=run)
    thread.start()
    return thread


# ---- psycopg 3 ----

@pytest.fixture
def p3(hl):
    with psycopg.connect(dsn(hl), autocommit=True) as c:
        yield c


def test_psycopg3_pipelines(p3):
    with p3.pipeline() as pipe:
        cursors = [p3.execute("SELECT %s::int, %s::text", (i, "x" * i)) for i in range(300)]
        pipe.sync()
        more = [p3.execute("SELECT %s::int", (i,), prepare=True) for i in range(100)]
    assert [c.fetchone() for c in cursors] == [(i, "x" * i) for i in range(300)]
    assert [c.fetchone() for c in more] == [(i,) for i in range(100)]


def test_psycopg3_a_pipeline_that_fails_in_the_middle(p3):
    with pytest.raises(psycopg.errors.DivisionByZero):
        with p3.pipeline():
            p3.execute("SELECT 1")
            p3.execute("SELECT 1/0")
            p3.execute("SELECT 2")
    assert p3.execute("SELECT 3").fetchone() == (3,)
    with p3.pipeline() as pipe:
        p3.execute("SELECT 1")
        pipe.sync()
        failing = p3.execute("SELECT 1/%s", (0,))
        with pytest.raises(psycopg.Error):
            pipe.sync()
            failing.fetchone()
    assert p3.execute("SELECT 4").fetchone() == (4,)


def test_psycopg3_transactions_and_savepoints(p3):
    p3.execute("CREATE TABLE IF NOT EXISTS p3 (n int)")
    with p3.transaction():
        p3.execute("INSERT INTO p3 VALUES (1)")
        with pytest.raises(psycopg.errors.DivisionByZero):
            with p3.transaction():
                p3.execute("INSERT INTO p3 VALUES (2)")
                p3.execute("SELECT 1/0")
        p3.execute("INSERT INTO p3 VALUES (3)")
    assert p3.execute("SELECT n FROM p3 ORDER BY n").fetchall() == [(1,), (3,)]
    p3.execute("DROP TABLE p3")


def test_psycopg3_prepared_statements_come_and_go(p3):
    p3.prepare_threshold, p3.prepared_max = 0, 3
    for turn in range(3):
        for i in range(12):
            assert p3.execute(f"SELECT %s::int + {i}", (turn,)).fetchone() == (turn + i,)


def test_psycopg3_copy_and_its_failures(p3):
    p3.execute("CREATE TEMP TABLE c3 (n int, t text)")
    with p3.cursor().copy("COPY c3 FROM STDIN (FORMAT binary)") as copy:
        copy.set_types(["int4", "text"])
        for i in range(3000):
            copy.write_row((i, "y" * 50))
    with p3.cursor().copy("COPY c3 TO STDOUT (FORMAT binary)") as copy:
        copy.set_types(["int4", "text"])
        assert sum(1 for _ in copy.rows()) == 3000
    with pytest.raises(psycopg.errors.InvalidTextRepresentation):
        with p3.cursor().copy("COPY c3 FROM STDIN") as copy:
            for _ in range(3000):
                copy.write("one column\n")
    with pytest.raises(psycopg.errors.QueryCanceled):     # what CopyFail is answered with
        with p3.cursor().copy("COPY c3 FROM STDIN") as copy:
            copy.write_row((1, "x"))
            raise ZeroDivisionError
    assert p3.execute("SELECT count(*) FROM c3").fetchone() == (3000,)


def test_psycopg3_cancel(p3, pg):
    thread = cancel_when_asleep(pg, "p3 cancel", p3)
    with pytest.raises(psycopg.errors.QueryCanceled):
        p3.execute("SELECT 'p3 cancel', pg_sleep(60)")
    thread.join()
    assert p3.execute("SELECT 1").fetchone() == (1,)


def test_psycopg3_listen(p3, hl):
    p3.execute("LISTEN c3")
    with psycopg.connect(dsn(hl), autocommit=True) as other:
        for i in range(3):
            other.execute("SELECT pg_notify('c3', %s)", (str(i),))
    heard = p3.notifies()
    assert [next(heard).payload for _ in range(3)] == ["0", "1", "2"]
    heard.close()


def test_psycopg3_server_side_cursors_and_binary(hl):
    with psycopg.connect(dsn(hl)) as c:
        with c.cursor("named") as cursor:
            cursor.itersize = 7
            cursor.execute("SELECT generate_series(1, 100)")
            assert sum(n for (n,) in cursor) == 5050
        c.commit()
        row = c.execute("SELECT %b::int8, %b::float8, %b::bytea, %b::uuid::text, now() IS NOT NULL",
                        (1 << 40, 0.5, b"\0\xff", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"), binary=True).fetchone()
        assert row == (1 << 40, 0.5, b"\0\xff", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", True)


def test_psycopg3_stream_that_is_left(p3):
    rows = p3.cursor().stream("SELECT generate_series(1, 100000)")
    assert [next(rows) for _ in range(3)] == [(1,), (2,), (3,)]
    rows.close()
    assert p3.execute("SELECT 1").fetchone() == (1,)


# ---- psycopg 2 ----

def test_psycopg2(hl, pg):
    c = psycopg2.connect(dsn(hl))
    with c, c.cursor() as cursor:
        cursor.execute("CREATE TEMP TABLE c2 (n int, t text)")
        psycopg2.extras.execute_values(cursor, "INSERT INTO c2 VALUES %s", [(i, "z") for i in range(1000)])
        with open(HERE / "test_drivers.py", encoding="utf-8") as file:
            cursor.copy_expert("COPY (SELECT * FROM c2) TO STDOUT", open(os.devnull, "w", encoding="utf-8"))
            assert file.readable()
        cursor.execute("SELECT count(*) FROM c2")
        assert cursor.fetchone() == (1000,)
    with c, c.cursor("named") as cursor:
        cursor.itersize = 10
        cursor.execute("SELECT generate_series(1, 95)")
        assert sum(n for (n,) in cursor) == 95 * 48
    big = c.lobject(0, "wb")
    big.write(b"0123456789" * 20_000)
    oid = big.oid
    big.close()
    c.commit()
    back = c.lobject(oid, "rb")
    back.seek(199_990)
    assert back.read(20) == b"0123456789"
    back.close()
    c.lobject(oid, "n").unlink()
    c.commit()
    for level in (psycopg2.extensions.ISOLATION_LEVEL_SERIALIZABLE, psycopg2.extensions.ISOLATION_LEVEL_READ_COMMITTED):
        c.set_isolation_level(level)
        with c, c.cursor() as cursor:
            cursor.execute("SHOW transaction_isolation")
            assert cursor.fetchone()[0].replace(" ", "_").upper() in (
                "SERIALIZABLE" if level == psycopg2.extensions.ISOLATION_LEVEL_SERIALIZABLE else "READ_COMMITTED")
    thread = cancel_when_asleep(pg, "p2 cancel", c)
    with pytest.raises(psycopg2.extensions.QueryCanceledError), c.cursor() as cursor:
        cursor.execute("SELECT 'p2 cancel', pg_sleep(60)")
    thread.join()
    c.rollback()
    c.autocommit = True
    with c.cursor() as cursor:
        cursor.execute("LISTEN c2; NOTIFY c2, 'me'")
        c.poll()
        assert [n.payload for n in c.notifies] == ["me"]
    c.reset()
    c.close()


# ---- asyncpg ----

def test_asyncpg(hl, pg):
    async def run():
        c = await asyncpg.connect(host="127.0.0.1", port=hl.port, user="app", database="drivers")
        for size in (0, 1, 50, 200):                       # its statement cache, and without one
            await c.reload_schema_state()
            assert [await c.fetchval(f"SELECT $1::int + {i}", 1) for i in range(size)] == [i + 1 for i in range(size)]
        statement = await c.prepare("SELECT $1::int8[], $2::timestamptz, $3::jsonb, $4::numeric")
        assert [a.name for a in statement.get_attributes()] == ["int8", "timestamptz", "jsonb", "numeric"]
        assert (await statement.fetchrow([1, 2], None, "{}", 1))[0] == [1, 2]
        assert await c.fetchval("SELECT (1, 'a')::text") == "(1,a)"
        await c.execute("CREATE TYPE IF_NOT AS ENUM ('a', 'b')")
        assert await c.fetchval("SELECT $1::if_not", "b") == "b"    # it looks types up by itself
        await c.execute("DROP TYPE if_not")
        async with c.transaction():
            rows = [r[0] async for r in c.cursor("SELECT generate_series(1, 300)", prefetch=40)]
            assert rows == list(range(1, 301))
            cursor = await c.cursor("SELECT generate_series(1, 100)")
            assert [len(await cursor.fetch(30)) for _ in range(4)] == [30, 30, 30, 10]
            with pytest.raises(asyncpg.DivisionByZeroError):
                async with c.transaction():
                    await c.execute("SELECT 1/0")
        await c.execute("CREATE TABLE IF NOT EXISTS ca (n int primary key)")
        await c.executemany("INSERT INTO ca VALUES ($1)", [(i,) for i in range(500)])
        with pytest.raises(asyncpg.UniqueViolationError):
            await c.executemany("INSERT INTO ca VALUES ($1)", [(i,) for i in (1000, 1, 1001)])
        assert await c.fetchval("SELECT count(*) FROM ca") == 500
        await c.copy_records_to_table("ca", records=[(i,) for i in range(2000, 4000)])
        with pytest.raises(asyncpg.UniqueViolationError):
            await c.copy_records_to_table("ca", records=[(i,) for i in range(3000, 9000)])
        assert await c.fetchval("SELECT count(*) FROM ca") == 2500
        await c.execute("DROP TABLE ca")
        with pytest.raises(asyncio.TimeoutError):
            await c.fetchval("SELECT pg_sleep(60)", timeout=0.2)    # it cancels by itself
        assert await c.fetchval("SELECT 1") == 1
        heard = asyncio.get_running_loop().create_future()
        await c.add_listener("ca", lambda *a: heard.done() or heard.set_result(a[3]))
        await c.execute("NOTIFY ca, 'me'")
        assert await asyncio.wait_for(heard, 20) == "me"
        await c.reset()
        await c.close()
        pool = await asyncpg.create_pool(host="127.0.0.1", port=hl.port, user="app", database="drivers", min_size=2,
                                         max_size=8)
        assert await asyncio.gather(*[pool.fetchval("SELECT $1::int", i) for i in range(100)]) == list(range(100))
        await pool.close()
    asyncio.run(run())


# ---- node-postgres and JDBC: programs of their own ----

def run_program(command: list[str], least: int, **environment):
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, env={**os.environ, **environment})
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    assert sum(line.startswith("ok ") for line in done.stdout.splitlines()) >= least, done.stdout


def test_node_postgres(hl):
    if not shutil.which("node") or not (HERE / "node_modules" / "pg").exists():
        pytest.skip("node.js or its packages are not installed (deploy/install.sh test)")
    run_program(["node", str(HERE / "node_features.js"), str(hl.port), "drivers"], 13)


def test_jdbc(hl):
    if not shutil.which("javac") or not JDBC.exists():
        pytest.skip("no JDK or no JDBC driver (deploy/install.sh test)")
    run_program(["java", "-cp", str(JDBC), str(HERE / "JdbcFeatures.java"), str(hl.port), "drivers"], 22)

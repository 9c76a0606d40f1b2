"""The mover alone on real homes: schemas there and back, refusals, kill -9 at every statement."""
import json

import psycopg
import pytest

from hotlane_test.mover import Mover, accepts
from hotlane_test.servers import Bench

POINTS_MAX = 400


@pytest.fixture(scope="module")
def servers():
    with Bench(["shop"], commit_latency="1ms", scan_cost="50ns") as b:
        b.number = 0
        yield b


SCHEMAS = {
    "plain": (["CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER NOT NULL DEFAULT 0, s TEXT)"],
              ["INSERT INTO t VALUES (1, 2, 'x'), (2, 3, NULL)"], ["SELECT * FROM t ORDER BY id"]),
    "quoted": (['CREATE TABLE "Order Lines" ("select" INTEGER PRIMARY KEY, "a b" TEXT, "Größe" REAL)'],
               ['INSERT INTO "Order Lines" VALUES (1, \'it\'\'s\', 0.1)'], ['SELECT * FROM "Order Lines"']),
    "composite": (["CREATE TABLE p (a INTEGER, b TEXT, c INTEGER, PRIMARY KEY (a, b), UNIQUE (b, c))"],
                  ["INSERT INTO p VALUES (1, 'x', 1), (1, 'y', 1), (2, 'x', 2)"], ["SELECT * FROM p ORDER BY a, b"]),
    "empty": (["CREATE TABLE e (id INTEGER PRIMARY KEY)"], [], ["SELECT * FROM e"]),
    "no_key": (["CREATE TABLE n (a TEXT, b INTEGER)"],
               ["INSERT INTO n VALUES ('d', 1), ('d', 1), (NULL, NULL)"], ["SELECT * FROM n ORDER BY b IS NULL, b"]),
    "reals": (["CREATE TABLE r (id INTEGER PRIMARY KEY, v REAL)"],
              ["INSERT INTO r VALUES (1, 0.1), (2, 1e308), (3, 5), (4, -2.5e-300), (5, 0.30000000000000004), (6, "
               "-0.0)"],
              ["SELECT * FROM r ORDER BY id"]),
    "checked": (["CREATE TABLE k (id INTEGER PRIMARY KEY AUTOINCREMENT, n INTEGER CHECK (n >= 0), "
                 "at TEXT DEFAULT CURRENT_TIMESTAMP, CHECK (n < 100))"],
                ["INSERT INTO k (n) VALUES (1), (99)"], ["SELECT * FROM k ORDER BY id"]),
    "many": ([f"CREATE TABLE m{i} (id INTEGER PRIMARY KEY, v TEXT UNIQUE)" for i in range(6)],
             [f"INSERT INTO m{i} VALUES (1, 'a{i}')" for i in range(6)], [f"SELECT * FROM m{i}" for i in range(6)]),
}


@pytest.mark.parametrize("name", SCHEMAS)
def test_there_and_back(servers, name):
    ddl, rows, reads = SCHEMAS[name]
    m = Mover(servers, ddl)
    for sql in rows:
        m.engine(sql)
    before = [m.engine(sql) for sql in reads]
    for _ in range(2):
        m.moved("postgres")
        assert [m.postgres(sql) for sql in reads] == before
        # Behind the tombstone nothing of the tool can be written.
        for sql in rows:
            assert not accepts(m.engine, sql)
        m.moved("engine")
        assert [m.engine(sql) for sql in reads] == before
        for sql in rows:
            with pytest.raises(psycopg.Error, match="left this server"):
                m.postgres(sql)
        for sql in reads:
            with pytest.raises(psycopg.Error, match="left this server"):
                m.postgres(sql)


def test_blobs_and_large_tables(servers):
    m = Mover(servers, ["CREATE TABLE b (id INTEGER PRIMARY KEY, v BLOB, s TEXT)"])
    with servers.engine.connect("shop") as c:
        c.execute("INSERT INTO b VALUES (1, %b, 'x')", (bytes(range(256)),))
        c.execute("INSERT INTO b VALUES (2, %b, 'ü\t\\N')", (b"",))
        for start in range(10, 3010, 500):
            c.execute("INSERT INTO b (id, s) VALUES " + ", ".join(f"({i}, 'row {i}')" for i in range(start,
             start + 500)))
    before = m.engine("SELECT * FROM b ORDER BY id")
    m.moved("postgres")
    assert m.postgres("SELECT * FROM b ORDER BY id") == before
    m.postgres("INSERT INTO b (s) VALUES ('next')")
    assert m.postgres("SELECT max(id) FROM b") == [(3010,)]
    m.moved("engine")
    assert m.engine("SELECT * FROM b ORDER BY id")[:-1] == before


def test_constraints_are_enforced_at_both_homes(servers):
    m = Mover(servers, SCHEMAS["checked"][0] + SCHEMAS["composite"][0])
    m.engine("INSERT INTO k (n) VALUES (1)")
    m.engine("INSERT INTO p VALUES (1, 'x', 1)")
    for home, run in (("postgres", m.postgres), ("engine", m.engine), ("postgres", m.postgres)):
        m.moved(home)
        for bad in ("INSERT INTO k (n) VALUES (-1)", "INSERT INTO k (n) VALUES (100)",
                    "INSERT INTO p VALUES (1, 'x', 7)", "INSERT INTO p VALUES (9, 'x', 1)"):
            assert not accepts(run, bad), (home, bad)
        run("INSERT INTO k (n) VALUES (5)")
    ids = [r[0] for r in m.postgres("SELECT id FROM k ORDER BY id")]
    assert len(ids) == len(set(ids)) == 4  # a refused row may cost PostgreSQL a number, never two rows one


def test_a_table_made_on_postgres_goes_back_too(servers):
    m = Mover(servers, SCHEMAS["plain"][0])
    m.moved("postgres")
    m.postgres("CREATE TABLE late (id bigserial PRIMARY KEY, v varchar(5) NOT NULL DEFAULT 'a', f real)")
    m.postgres("INSERT INTO late (f) VALUES (0.1), (2)")
    want = [tuple(r) for r in m.postgres("SELECT id, v, f::float8 FROM late ORDER BY id")]
    m.moved("engine")
    assert m.engine("SELECT * FROM late ORDER BY id") == want
    assert not accepts(m.engine, "INSERT INTO late (v) VALUES ('toolong')")
    m.engine("INSERT INTO late (v) VALUES ('b')")
    assert m.engine("SELECT max(id) FROM late") == [(3,)]


def test_statements_are_rehearsed_at_the_other_home(servers):
    m = Mover(servers, SCHEMAS["plain"][0] + ['CREATE TABLE "Odd Name" (id INTEGER PRIMARY KEY)'])
    saw = servers.folder / "rehearse.sql"
    saw.chmod(0o644) if saw.exists() else saw.touch(0o644)

    def rehearsed(home, text):
        saw.write_text(text)
        return m.move(home, "--saw", str(saw))

    m.engine("INSERT INTO t VALUES (1, 2, 'x')")
    done = rehearsed("postgres", "SELECT ifnull(s, 'pw-4711') FROM t; SELECT n FROM t; SELECT * FROM twill_stats; "
                     "BEGIN")
    assert [r["code"] for r in done["refusals"]] == ["statement_refused"] and not done["moved"], done
    assert "ifnull ( s , ? ) from t" in done["refusals"][0]["message"] and "42883" in done["refusals"][0]["message"]
    assert "4711" not in json.dumps(done) and "hold" not in done["detail"]["phases"]
    assert done["detail"]["rehearsal"]["elsewhere"] == ["select * from twill_stats"]
    done = rehearsed("postgres", "SELECT sum(n) FROM t; INSERT INTO \"Odd Name\" (id) VALUES (5)")
    assert done["moved"], done
    assert {"statement": "select sum ( n ) from t", "what": "column sum", "was": "bigint", "will_be": "numeric"} in \
        done["detail"]["rehearsal"]["differences"]
    for bad in ("SELECT n FROM public.t", "SELECT rank() OVER (ORDER BY n) FROM t", "SELECT n FROM t FOR UPDATE"):
        done = rehearsed("engine", bad)
        assert [r["code"] for r in done["refusals"]] == ["statement_refused"] and not done["moved"], (bad, done)
        m.postgres("INSERT INTO t (n) VALUES (1)")  # it serves on
    done = rehearsed("engine", "SELECT relname FROM pg_class; DELETE FROM \"Odd Name\" WHERE id = 1; "
                     "SELECT count(*) FROM t WHERE t.n > 1; SELECT nosuch FROM t")
    assert done["moved"], done
    assert done["detail"]["rehearsal"]["elsewhere"] == ["select relname from pg_class"]


REFUSALS = [
    (["CREATE TABLE t (id INTEGER PRIMARY KEY, v REAL)"], "INSERT INTO t VALUES (7, 'abc')", "bad_value", "id = 7"),
    (["CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER)"], "INSERT INTO t VALUES (7, 'abc')", "bad_value", "\"v\""),
    (["CREATE TABLE t (a TEXT, b TEXT, PRIMARY KEY (a, b))"], "INSERT INTO t VALUES (NULL, 'x')", "bad_value",
     "NULL in a key"),
    (["CREATE TABLE t (id INTEGER PRIMARY KEY, n TEXT CHECK (typeof(n) = 'text'))"], None, "definition_refused",
     "typeof"),
    ([f"CREATE TABLE {'x' * 64} (id INTEGER PRIMARY KEY)"], None, "name_too_long", "64"),
]


@pytest.mark.parametrize("ddl,row,code,word", REFUSALS)
def test_refused_before_anything_is_held(servers, ddl, row, code, word):
    m = Mover(servers, ddl)
    if row:
        m.engine(row)
    lsn = servers.engine.stats("shop")["twill_committed_lsn"]
    done = m.move("postgres")
    assert not done["moved"] and done["route"]["home"] == "engine" and done["route"]["served"]
    assert code in [r["code"] for r in done["refusals"]], done
    assert any(word in r["message"] and r["mend"] for r in done["refusals"]), done
    assert servers.engine.stats("shop")["twill_committed_lsn"] == lsn


def test_hidden_constraints_are_not_assumed_absent(servers):
    m = Mover(servers, ["CREATE TABLE t (id INTEGER PRIMARY KEY)"])
    m.engine("CREATE TABLE unseen (id INTEGER PRIMARY KEY)")
    assert [r["code"] for r in m.move("postgres")["refusals"]] == ["no_schema"]


def test_refusals_of_the_way_back(servers):
    m = Mover(servers, SCHEMAS["plain"][0])
    m.moved("postgres")
    for sql, undo in (("CREATE TABLE x (id uuid)", "DROP TABLE x"),
                      ("CREATE TABLE x (v float8); INSERT INTO x VALUES ('NaN')", "DROP TABLE x"),
                      ("CREATE TABLE x (id bigint REFERENCES t (id))", "DROP TABLE x"),
                      ("CREATE VIEW x AS SELECT * FROM t", "DROP VIEW x"),
                      ("CREATE SEQUENCE x", "DROP SEQUENCE x")):
        m.postgres(sql)
        done = m.move("engine")
        assert not done["moved"] and done["refusals"], (sql, done)
        m.postgres(undo)
    m.postgres("INSERT INTO t VALUES (99, 1, 'x')")
    m.moved("engine")


def test_a_lock_that_is_not_given_names_its_holder(servers):
    m = Mover(servers, SCHEMAS["plain"][0])
    m.moved("postgres")
    with psycopg.connect(servers.pg.dsn("shop", "app"), application_name="report") as c:
        c.execute("SELECT * FROM t")
        done = m.move("engine", "--hold", "1500")
        assert [r["code"] for r in done["refusals"]] == ["lock_timeout"], done
        assert "report" in done["refusals"][0]["message"]
    m.postgres("INSERT INTO t VALUES (5, 1, 'x')")
    m.moved("engine")


def test_clean_drops_what_is_nobodys_and_rings_on_late_writes(servers):
    m = Mover(servers, SCHEMAS["plain"][0])
    m.engine("INSERT INTO t VALUES (1, 2, 'x')")
    out = m.moved("postgres")["id"]
    m.engine("DELETE FROM t")  # the engine cannot refuse this on a tombstone
    late = m.call("--clean", out)
    assert not late["dropped"] and "LSN" in late["late_write"]
    back = m.moved("engine")["id"]
    assert m.call("--clean", out)["dropped"]
    assert m.call("--clean", back)["dropped"]
    assert {r[0] for r in m.engine("SHOW twill.catalog")} == {"t", "hotlane_home"}
    assert m.engine("SELECT * FROM t") == [(1, 2, "x")]
    with pytest.raises(psycopg.Error, match="left this server"):
        m.postgres("SELECT * FROM t")


def probe(m, ledger):
    """A client that goes round hotlane tries both homes; whoever accepts must be alone."""
    took = []
    for home, run in (("engine", m.engine), ("postgres", m.postgres)):
        number = len(ledger) + 1
        if accepts(run, f"INSERT INTO t (id, n, s) VALUES ({number}, 0, 'p')"):
            ledger.append(number)
            took.append(home)
    assert len(took) < 2, "two homes accept writes"
    return took


@pytest.mark.parametrize("home", ["postgres", "engine"])
@pytest.mark.parametrize("suffix", ["", "r"])
def test_kill_at_every_statement(servers, home, suffix):
    m = Mover(servers, SCHEMAS["plain"][0] + ["CREATE TABLE u (id INTEGER PRIMARY KEY)"])
    other = "engine" if home == "postgres" else "postgres"
    ledger = []
    probe(m, ledger)
    saw = servers.folder / "saw.sql"
    saw.write_text("SELECT n, s FROM t WHERE id = 1; UPDATE t SET n = t.n + 1 WHERE id = 1")
    saw.chmod(0o644)
    for point in range(1, POINTS_MAX):
        if m.call("--recover")["route"]["home"] != other:
            m.moved(other)
        died = m.move(home, "--saw", str(saw), env={"HOTLANE_CRASH_AT": f"{point}{suffix}"}, may_die=True) is None
        probe(m, ledger)
        again = point % 7 + 1  # recovery is killed as well, at another point each time
        m.call("--recover", env={"HOTLANE_CRASH_AT": f"{again}{suffix}"}, may_die=True)
        probe(m, ledger)
        route = m.call("--recover")["route"]
        assert route["served"], route
        assert probe(m, ledger) == [route["home"]]
        run = m.engine if route["home"] == "engine" else m.postgres
        assert [r[0] for r in run("SELECT id FROM t ORDER BY id")] == ledger, (point, suffix)
        if not died:
            return
    pytest.fail("the move never came to its end")

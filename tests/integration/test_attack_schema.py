"""Schemas and values that are out of the ordinary: there and back unchanged, or refused with the reason."""
import threading

import psycopg
import pytest

from hotlane_test.process import wait_until
from hotlane_test.servers import Bench


@pytest.fixture(scope="module")
def bench():
    with Bench(["shop"], policies="policies: {default: {rails: {hold_max: 5s}}}\n") as b:
        b.hotlane.start()
        wait_until(lambda: b.hotlane.where("shop")["served"], 30, "shop is served")
        yield b


@pytest.fixture
def clean(bench):
    """The tool is on the engine and empty, before and after."""
    yield bench
    if bench.hotlane.where("shop")["home"] == "postgres":
        back = bench.hotlane.route("shop", "engine")
        assert back.returncode == 0, back.stderr
    with bench.hotlane.connect("shop") as c:
        for name in tables(bench):
            c.execute(f"DROP TABLE {quoted(name)}")


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def tables(bench) -> list[str]:
    rows = bench.engine.execute("shop", "SHOW twill.catalog")
    return sorted({r[0] for r in rows if not r[0].startswith("hotlane_")})


def content(bench, names) -> dict:
    with bench.hotlane.connect("shop") as c:
        return {n: sorted(map(repr, c.execute(f"SELECT * FROM {quoted(n)}").fetchall())) for n in names}


def make(bench, *statements):
    with bench.hotlane.connect("shop") as c:
        for s in statements:
            c.execute(*(s if isinstance(s, tuple) else (s,)))


def moved(bench, home):
    done = bench.hotlane.route("shop", home)
    assert done.returncode == 0, done.stderr


def refused(bench) -> str:
    done = bench.hotlane.route("shop", "postgres")
    assert done.returncode == 6, done.stdout + done.stderr
    assert bench.hotlane.where("shop")["home"] == "engine"
    return done.stderr


def test_names_and_values_come_back_as_they_went(clean):
    make(clean,
         'CREATE TABLE "Order ""x"" {} %s \\ $1" ("Sel ect" INTEGER PRIMARY KEY, "a.b" TEXT)'.replace("%s", "%%s"),
         'CREATE TABLE "select" ("from" TEXT, "group" INTEGER, PRIMARY KEY ("group", "from"))',
         'CREATE TABLE "żółć\n日本" ("é\t" INTEGER PRIMARY KEY)',
         f"CREATE TABLE {'t' * 62}1 ({'c' * 63} INTEGER PRIMARY KEY AUTOINCREMENT)",
         f"CREATE TABLE {'t' * 62}2 ({'c' * 63} INTEGER PRIMARY KEY AUTOINCREMENT)",
         "CREATE TABLE nokey (a INTEGER, b TEXT)",
         "CREATE TABLE empty (id INTEGER PRIMARY KEY, a TEXT NOT NULL DEFAULT 'it''s, )( --')",
         "CREATE TABLE v (id INTEGER PRIMARY KEY, n INTEGER, x REAL, t TEXT, b BLOB)",
         """INSERT INTO "select" VALUES ('a', 1), ('A', 1), ('', -1)""",
         'INSERT INTO "żółć\n日本" VALUES (7)',
         "INSERT INTO nokey VALUES (1, 'a'), (1, 'a'), (NULL, NULL)",
         "INSERT INTO v VALUES (9223372036854775807, -9223372036854775808, 5e-324, '\\N', NULL), "
         "(-9223372036854775808, 9007199254740993, 1e308, 'a\tb\r\n\\.', NULL), (3, NULL, -0.0, '', NULL)",
         ("INSERT INTO v VALUES (4, 4, 123456789012345678, %s, %s)", ("\ufeff\U0001f600\u2028", bytes(range(256)))))
    names = tables(clean)
    assert len(names) == 8
    before = content(clean, names)
    moved(clean, "postgres")
    assert content(clean, names) == before
    moved(clean, "engine")
    assert content(clean, names) == before


@pytest.mark.parametrize("create, word", [
    ("CREATE TABLE w (id INTEGER PRIMARY KEY, n TEXT COLLATE NOCASE UNIQUE)", "collation"),
    ("CREATE TABLE w (id INTEGER PRIMARY KEY, n TEXT CHECK (n NOT LIKE 'a%'))", "LIKE"),
    ("CREATE TABLE w (id INTEGER PRIMARY KEY, n TEXT CHECK (typeof(n) = 'text'))", "typeof"),
    (f"CREATE TABLE {'t' * 64} (id INTEGER PRIMARY KEY)", "63 bytes"),
    ("CREATE TABLE w (id INTEGER PRIMARY KEY, xmin INTEGER)", "system column"),
])
def test_what_would_mean_something_else_there_is_refused(clean, create, word):
    make(clean, create)
    assert word in refused(clean)


def test_a_view_or_a_copy_that_is_gone_is_forgotten(clean):
    make(clean,
         "CREATE TABLE p (id INTEGER PRIMARY KEY)",
         "CREATE TABLE w (id INTEGER PRIMARY KEY, p INTEGER REFERENCES p (id))",
         "CREATE VIEW v AS SELECT * FROM w",
         "CREATE TABLE c AS SELECT * FROM w")
    assert "CREATE VIEW v" in refused(clean)
    # As migrations do: a new table in the place of one that others refer to.
    make(clean, "DROP VIEW v", "DROP TABLE c",
         "CREATE TABLE p_new (id INTEGER PRIMARY KEY, n INTEGER CHECK (n > 0))",
         "DROP TABLE p", "ALTER TABLE p_new RENAME TO p")
    moved(clean, "postgres")
    with clean.hotlane.connect("shop") as c, pytest.raises(psycopg.errors.CheckViolation):
        c.execute("INSERT INTO p VALUES (1, 0)")


def test_saying_it_again_at_each_start_costs_nothing(clean):
    create = "CREATE TABLE IF NOT EXISTS w (id INTEGER PRIMARY KEY, n INTEGER CHECK (n > 0))"
    make(clean, *[create] * 50)
    moved(clean, "postgres")
    with clean.hotlane.connect("shop") as c, pytest.raises(psycopg.errors.CheckViolation):
        c.execute("INSERT INTO w VALUES (1, 0)")
    state = clean.hotlane.state
    kept = state.read_bytes() + state.with_name(state.name + "-wal").read_bytes()
    assert 1 <= kept.count(create.encode()) < 20


def test_a_constraint_that_comes_while_the_move_begins_is_not_lost(clean):
    make(clean, "CREATE TABLE w (id INTEGER PRIMARY KEY, n INTEGER)", "INSERT INTO w VALUES (1, 1)")
    log = clean.hotlane.log
    seen = log.read_text().count('"phase":"stage"')
    with clean.hotlane.connect("shop") as c:
        ended = []
        mover = threading.Thread(target=lambda: ended.append(clean.hotlane.route("shop", "postgres")))
        mover.start()
        wait_until(lambda: log.read_text().count('"phase":"stage"') > seen or ended, 60, "it stages", 0.002)
        c.execute("CREATE UNIQUE INDEX hidden ON w (n)")
        mover.join(120)
    if ended[0].returncode != 0:
        assert "DDL of the tool passed since preflight" in ended[0].stderr
        moved(clean, "postgres")
    with clean.hotlane.connect("shop") as c, pytest.raises(psycopg.errors.UniqueViolation):
        c.execute("INSERT INTO w VALUES (2, 1)")


def test_what_was_there_before_hotlane_is_not_taken_at_a_text_that_changed_nothing():
    with Bench(["shop"]) as b:
        b.engine.execute("shop", "CREATE TABLE w (id INTEGER PRIMARY KEY, n INTEGER, CHECK (n > 0))")
        b.hotlane.start()
        wait_until(lambda: b.hotlane.where("shop")["served"], 30, "shop is served")
        make(b, "CREATE TABLE IF NOT EXISTS w (id INTEGER PRIMARY KEY, n INTEGER)",
             "CREATE TABLE IF NOT EXISTS later (id INTEGER PRIMARY KEY)")
        said = refused(b)
        assert '"w"' in said and "schema:" in said and '"later"' not in said
        make(b, "DROP TABLE w", "CREATE TABLE IF NOT EXISTS w (id INTEGER PRIMARY KEY, n INTEGER)")
        moved(b, "postgres")

"""A corpus of schemas and values, moved there and back: equal afterwards, or refused before anything was held."""
import pytest

from corpus import BACK, OUT
from hotlane_test.mover import Mover, accepts
from hotlane_test.servers import Bench


@pytest.fixture(scope="module")
def servers():
    with Bench(["shop"], commit_latency="0ms", scan_cost="50ns") as b:
        b.number = 0
        yield b


def quoted(name):
    return '"' + name.replace('"', '""') + '"'


def tables_of(m):
    """Table -> columns, as the engine has them; nothing of hotlane's own."""
    out = {}
    for row in m.engine("SHOW twill.catalog"):
        if not row[0].startswith("hotlane_"):
            out.setdefault(row[0], []).append(row[1])
    return out


def exact(value):
    """What must be equal: kind and bits; the two zeros are one value (both homes compare them as equal)."""
    if isinstance(value, float):
        return ("real", (0.0 if value == 0 else value).hex())
    if isinstance(value, (bytes, memoryview)):
        return ("bytes", bytes(value))
    return (type(value).__name__, value)


def contents(run, tables):
    out = {}
    for table, columns in tables.items():
        rows = run(f"SELECT {', '.join(map(quoted, columns))} FROM {quoted(table)}")
        out[table] = sorted((tuple(exact(v) for v in row) for row in rows), key=repr)
    return out


def made(servers, one):
    m = Mover(servers, one["ddl"])
    for row in one["rows"]:
        m.engine(*((row,) if isinstance(row, str) else row))
    return m


def check_refused(done, one, home):
    assert not done["moved"], "it was moved, and should have been refused"
    assert done["route"]["home"] == home and done["route"]["served"]
    assert "phases" not in done["detail"] or "hold" not in done["detail"]["phases"], done["detail"]["phases"]
    code, *words = one["refused"]
    told = [r for r in done["refusals"] if r["code"] == code]
    assert told, done["refusals"]
    text = " ".join(r["message"] for r in told)
    for word in words:
        assert word.lower() in text.lower(), text
    assert all(r["mend"] for r in told), told


@pytest.mark.parametrize("one", OUT, ids=[c["name"] for c in OUT])
def test_from_the_engine(servers, one):
    m = made(servers, one)
    if one["refused"]:
        return check_refused(m.move("postgres"), one, "engine")
    tables = tables_of(m)
    before = contents(m.engine, tables)
    m.moved("postgres")
    assert contents(m.postgres, tables) == before
    if "breaks" in one:
        assert not accepts(m.postgres, one["breaks"])
    if "next_id" in one:
        assert m.postgres("INSERT INTO t (v) VALUES ('next') RETURNING id") == [(one["next_id"],)]
        m.postgres("DELETE FROM t WHERE v = 'next'")
    m.moved("engine")
    assert contents(m.engine, tables) == before
    if "breaks" in one:
        assert not accepts(m.engine, one["breaks"])
    if "default_row" in one:
        m.engine(one["default_row"])
        rows = m.engine("SELECT * FROM t ORDER BY id")
        assert len(rows) == 2 and rows[0][1:] == rows[1][1:]


@pytest.mark.parametrize("one", BACK, ids=[c["name"] for c in BACK])
def test_from_postgres(servers, one):
    m = made(servers, one)
    m.moved("postgres")
    for sql in one["postgres"]:
        m.postgres(sql)
    if one["refused"]:
        return check_refused(m.move("engine"), one, "postgres")
    tables = {}
    for table, column in m.postgres("SELECT c.relname::text, a.attname::text FROM pg_class c JOIN pg_attribute a ON "
                                    "a.attrelid = c.oid WHERE c.relkind = 'r' AND c.relnamespace = "
                                    "'public'::regnamespace "
                                    "AND a.attnum > 0 AND NOT a.attisdropped ORDER BY c.relname, a.attnum"):
        tables.setdefault(table, []).append(column)
    before = contents(m.postgres, tables)
    m.moved("engine")
    assert contents(m.engine, tables) == before


def test_there_are_enough():
    assert len(OUT) + len(BACK) >= 60 and len({c["name"] for c in OUT + BACK}) == len(OUT) + len(BACK)

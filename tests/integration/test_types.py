"""Columns that PostgreSQL holds in types of the operator's choice: converted both ways, or refused before anything is
held."""
import pytest

from hotlane_test.mover import Mover
from hotlane_test.servers import Bench

TYPES = ("{flags.enabled: boolean, flags.at: timestamptz, flags.day: date, flags.ref: uuid, flags.doc: json, "
         "flags.small: smallint, flags.local: timestamp}")
DDL = ["CREATE TABLE flags (id INTEGER PRIMARY KEY, enabled INTEGER NOT NULL DEFAULT 1, "
       "at TIMESTAMP DEFAULT CURRENT_TIMESTAMP, day DATE, ref UUID, doc JSON, small INTEGER, local TIMESTAMP)"]
GOOD = ("INSERT INTO flags (id, enabled, at, day, ref, doc, small, local) VALUES "
        "(1, 1, '2024-02-29 12:00:00', '2024-02-29', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', '{\"a\": [1,  2.50]}', "
        "-7, '0001-01-01 00:00:00'), "
        "(2, 0, '1999-12-31 23:59:59.000001', NULL, NULL, '[]', 32767, '2024-01-01 00:00:00.5'), "
        "(3, 0, NULL, NULL, NULL, NULL, NULL, NULL)")
READ = "SELECT id, enabled, at, day, ref, doc, small, local FROM flags ORDER BY id"


@pytest.fixture(scope="module")
def servers():
    with Bench(["shop"], commit_latency="1ms", scan_cost="50ns", extra_tool=f"    types: {TYPES}\n",
               pg_settings={"timezone": "Asia/Kolkata"}) as b:
        b.number = 0
        yield b


def test_there_and_back_unchanged(servers):
    m = Mover(servers, DDL)
    m.engine(GOOD)
    before = m.engine(READ)
    for _ in range(2):
        m.moved("postgres")
        assert m.postgres("SELECT pg_typeof(enabled)::text, pg_typeof(at)::text, pg_typeof(day)::text, "
                          "pg_typeof(ref)::text, pg_typeof(doc)::text, pg_typeof(small)::text, pg_typeof(local)::text "
                          "FROM flags LIMIT 1") == [
            ("boolean", "timestamp with time zone", "date", "uuid", "json", "smallint", "timestamp without time zone")]
        assert m.postgres("SELECT enabled, at = '2024-02-29 12:00:00+00' FROM flags WHERE id = 1") == [(True, True)]
        m.moved("engine")
        assert m.engine(READ) == before


def test_what_is_written_there_comes_home(servers):
    m = Mover(servers, DDL)
    m.engine(GOOD)
    m.moved("postgres")
    m.postgres("INSERT INTO flags (id) VALUES (10)")   # the defaults
    m.postgres("INSERT INTO flags (id, enabled, at, day) VALUES (11, false, '2024-07-01 05:30:00.25+05:30', "
               "'2024-07-01')")
    m.moved("engine")
    rows = {r[0]: r for r in m.engine(READ)}
    assert rows[11][1:4] == (0, "2024-07-01 00:00:00.25", "2024-07-01")
    assert rows[10][1] == 1 and len(rows[10][2]) == 19
    m.engine("INSERT INTO flags (id) VALUES (12)")     # the engine's defaults are what they were
    assert m.engine("SELECT enabled, length(at) FROM flags WHERE id = 12") == [(1, 19)]


@pytest.mark.parametrize("column,value,word", [
    ("enabled", "2", "boolean"), ("at", "'2024-02-30 00:00:00'", "timestamptz"), ("at", "'2024-01-01'", "timestamptz"),
    ("day", "'1.1.2024'", "date"), ("ref", "'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'", "uuid"),
    ("doc", "'{broken'", "json"), ("small", "40000", "smallint"), ("local", "'2024-01-01 00:00:00.50'", "timestamp")])
def test_a_value_that_would_not_come_back(servers, column, value, word):
    m = Mover(servers, DDL)
    m.engine(GOOD)
    m.engine(f"UPDATE flags SET {column} = {value} WHERE id = 2")
    done = m.move("postgres")
    assert not done["moved"] and "phases" not in done["detail"], done
    told = done["refusals"][0]
    assert told["code"] == "bad_value" and told["mend"], told
    for part in ('"flags"', f'"{column}"', "id = 2", word):
        assert part in told["message"], told


@pytest.mark.parametrize("sql", ["UPDATE flags SET at = 'infinity' WHERE id = 2",
                                 "UPDATE flags SET day = '0044-03-15 BC' WHERE id = 2"])
def test_a_value_that_cannot_come_home(servers, sql):
    m = Mover(servers, DDL)
    m.engine(GOOD)
    m.moved("postgres")
    m.postgres(sql)
    done = m.move("engine")
    assert not done["moved"] and done["route"]["home"] == "postgres"
    assert done["refusals"][0]["code"] == "bad_value" and "id = 2" in done["refusals"][0]["message"], done["refusals"]


def test_types_that_fit_no_column(servers):
    m = Mover(servers, ["CREATE TABLE flags (id INTEGER PRIMARY KEY, enabled TEXT)"])
    done = m.move("postgres")
    assert not done["moved"] and {r["code"] for r in done["refusals"]} == {"type_override"}
    text = " ".join(r["message"] for r in done["refusals"])
    assert "flags.enabled: boolean" in text and "the column is text" in text and "no such column" in text

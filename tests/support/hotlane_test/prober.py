"""A client that goes round hotlane and tries everything at a home that might refuse it."""
import itertools

import psycopg

_numbers = itertools.count(900_000_001)

# How an application writes without knowing of any move. `{n}` is a fresh number.
ENGINE_WRITES = [
    "INSERT INTO events (id, writer, n) VALUES ({n}, 0, {n})",
    "INSERT INTO events DEFAULT VALUES",
    "UPDATE counter SET n = n + 1 WHERE id = 1",
    "DELETE FROM events WHERE id = -1",
    "DELETE FROM events WHERE writer = -1",
]
POSTGRES_WRITES = ENGINE_WRITES + [
    "INSERT INTO probe.events_view (id, writer, n) VALUES ({n}, 0, {n})",
    "SELECT probe.bump_counter()",
    "TRUNCATE counter",
]
READS = ["SELECT n FROM counter WHERE id = 1", "SELECT id, writer, n FROM events", "SELECT n FROM events WHERE id = 1"]


class Probe:
    """What one round at one home gave: which statements it accepted, and what they wrote."""

    def __init__(self):
        self.accepted: list[str] = []
        self.refused: list[str] = []
        self.inserted: list[int] = []
        self.increments = 0
        self.reads: list[str] = []
        self.silent: list[str] = []   # said yes and did nothing: the worst answer of a fence
        self.unreachable: str | None = None


def probe(dsn: str, postgres: bool, change: bool = True) -> Probe:
    """Tries writes and reads. Writes that are accepted stay, and belong to the ledger."""
    result = Probe()
    try:
        c = psycopg.connect(dsn, autocommit=True, prepare_threshold=None)
    except psycopg.Error as e:
        result.unreachable = str(e)
        return result
    with c:
        for template in (POSTGRES_WRITES if postgres else ENGINE_WRITES) if change else []:
            if template.startswith("TRUNCATE"):
                _truncate_in_vain(c, result, template)
                continue
            _one(c, result, template)
        _transaction(c, result)
        _create_if_not_exists(c, result)
        for sql in READS:
            try:
                c.execute(sql).fetchall()
                result.reads.append(sql)
            except psycopg.Error:
                pass
    return result


def _one(c, result: Probe, template: str):
    n = next(_numbers)
    sql = template.format(n=n)
    try:
        cursor = c.execute(sql)
    except psycopg.Error as e:
        result.refused.append(f"{sql}: {e}")
        return
    if sql.startswith("DELETE") and cursor.rowcount == 0:
        # No row met: accepted in form, changed nothing; only a tombstone or a fence says no here.
        result.accepted.append(sql)
        return
    result.accepted.append(sql)
    if "{n}" in template:
        result.inserted.append(n)
    if sql.startswith("UPDATE counter") and cursor.rowcount == 0:
        result.silent.append(sql)
    elif sql.startswith("UPDATE counter") or "bump_counter" in sql:
        result.increments += 1


def _truncate_in_vain(c, result: Probe, sql: str):
    try:
        with c.transaction():
            c.execute(sql)
            result.accepted.append(sql)
            raise psycopg.Rollback()
    except psycopg.Error as e:
        result.refused.append(f"{sql}: {e}")


def _transaction(c, result: Probe):
    """An explicit transaction of one increment."""
    try:
        c.execute("BEGIN")
        c.execute("UPDATE counter SET n = n + 1 WHERE id = 1")
        c.execute("COMMIT")
        result.accepted.append("transaction")
        result.increments += 1
    except psycopg.Error as e:
        result.refused.append(f"transaction: {e}")
        try:
            c.execute("ROLLBACK")
        except psycopg.Error:
            pass


def _create_if_not_exists(c, result: Probe):
    """What applications run at their start. It must not make a second, empty table that takes writes."""
    try:
        c.execute("CREATE TABLE IF NOT EXISTS events "
                  "(id INTEGER PRIMARY KEY, writer INTEGER NOT NULL, n INTEGER NOT NULL)")
    except psycopg.Error as e:
        result.refused.append(f"create: {e}")
        return
    _one(c, result, "INSERT INTO events (id, writer, n) VALUES ({n}, 0, {n})")

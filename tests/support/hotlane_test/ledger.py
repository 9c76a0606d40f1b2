"""Writers that keep a ledger: what was acknowledged, what is unknown, what failed for certain.

The law that every end-to-end test checks, for each kind of writer:
    acknowledged <= found <= acknowledged + unknown, and nothing found twice.
"""
import random
import threading
import time
from dataclasses import dataclass, field

import psycopg

RETRY = {"40001", "40P01"}                 # did not happen, try again
NOT_DONE = {"57P03", "08001", "08006", "57P01"}   # did not happen; wait a moment or connect again
UNKNOWN = {"08007"}                        # may have happened: never tried again


@dataclass
class Ledger:
    acknowledged: int = 0
    unknown: int = 0
    conflicts: int = 0
    refused: int = 0
    reconnects: int = 0
    other: list = field(default_factory=list)
    latencies: list = field(default_factory=list)   # (when ended, seconds) of acknowledged writes
    acknowledged_ids: set = field(default_factory=set)
    failed_ids: set = field(default_factory=set)
    unknown_ids: set = field(default_factory=set)


class Writer(threading.Thread):
    """One client in a closed loop. Subclasses say what one write is."""
    kind = ""

    def __init__(self, dsn: str, number: int, think_s: float = 0.0, latencies: bool = False,
                 prepare_threshold: int | None = 5):
        super().__init__(daemon=True)
        self.dsn, self.number, self.think_s = dsn, number, think_s
        self.keep_latencies, self.prepare_threshold = latencies, prepare_threshold
        self.random = random.Random(number)
        self.ledger = Ledger()
        self.halt = threading.Event()
        self.n = 0
        self._connection = None

    @staticmethod
    def schema() -> list[str]:
        raise NotImplementedError

    def write(self, c, n: int):
        raise NotImplementedError

    def run(self):
        while not self.halt.is_set():
            self.n += 1
            started = time.monotonic()
            try:
                c = self._connect()
            except psycopg.Error as e:
                self._note(e, None)
                continue
            try:
                self.write(c, self.n)
                self._acknowledged(started)
            except psycopg.Error as e:
                self._failed(c, e)
            if self.think_s:
                # Uneven, as people and requests are; even pauses would march two writers in step.
                self.halt.wait(self.think_s * self.random.uniform(0.5, 1.5))
        if self._connection:
            self._connection.close()

    def _connect(self):
        if self._connection is None or self._connection.closed:
            self._connection = psycopg.connect(self.dsn, autocommit=True,
                                               prepare_threshold=self.prepare_threshold)
            self.ledger.reconnects += 1
        return self._connection

    def _acknowledged(self, started: float):
        now = time.monotonic()
        self.ledger.acknowledged += 1
        self.ledger.acknowledged_ids.add(self.n)
        if self.keep_latencies:
            self.ledger.latencies.append((now, now - started))

    def _failed(self, c, e: psycopg.Error):
        state = getattr(e, "sqlstate", None)
        if state in RETRY or state in NOT_DONE:
            self.ledger.failed_ids.add(self.n)
        elif state in UNKNOWN or state is None:
            # A connection that broke without a word from the server: could have happened.
            self.ledger.unknown += 1
            self.ledger.unknown_ids.add(self.n)
        else:
            self.ledger.failed_ids.add(self.n)
        self._note(e, state)
        if not c.closed:
            try:
                c.execute("ROLLBACK") if self.in_transaction(c) else None
            except psycopg.Error:
                c.close()

    @staticmethod
    def in_transaction(c) -> bool:
        return c.info.transaction_status != psycopg.pq.TransactionStatus.IDLE

    def _note(self, e, state):
        state = state or getattr(e, "sqlstate", None)
        if state in RETRY:
            self.ledger.conflicts += 1
        elif state in NOT_DONE:
            self.ledger.refused += 1
            self.halt.wait(0.02)
        elif state in UNKNOWN or state is None:
            self.halt.wait(0.02)
        elif len(self.ledger.other) < 20:
            self.ledger.other.append(f"{state}: {e}")


class Inserts(Writer):
    """Numbered inserts: every number at most once, every acknowledged one there."""
    kind = "inserts"

    @staticmethod
    def schema():
        return ["CREATE TABLE IF NOT EXISTS events "
                "(id INTEGER PRIMARY KEY, writer INTEGER NOT NULL, n INTEGER NOT NULL)"]

    def write(self, c, n):
        c.execute("INSERT INTO events (id, writer, n) VALUES (%s, %s, %s)",
                  (self.number * 10_000_000 + n, self.number, n))


class Increments(Writer):
    """Single-row increments in autocommit."""
    kind = "increments"

    @staticmethod
    def schema():
        return ["CREATE TABLE IF NOT EXISTS counter (id INTEGER PRIMARY KEY, n INTEGER NOT NULL)",
                "INSERT INTO counter (id, n) VALUES (1, 0) ON CONFLICT (id) DO NOTHING"]

    def write(self, c, n):
        done = c.execute("UPDATE counter SET n = n + 1 WHERE id = 1")
        assert done.rowcount == 1, "an increment met no row"


class ReadModifyWrite(Writer):
    """Read, then write what was read plus one, in an explicit transaction: finds lost updates."""
    kind = "read_modify_write"

    @staticmethod
    def schema():
        return ["CREATE TABLE IF NOT EXISTS stock (id INTEGER PRIMARY KEY, n INTEGER NOT NULL)",
                "INSERT INTO stock (id, n) VALUES (1, 0) ON CONFLICT (id) DO NOTHING"]

    def write(self, c, n):
        c.execute("BEGIN")
        value = c.execute("SELECT n FROM stock WHERE id = 1").fetchone()[0]
        c.execute("UPDATE stock SET n = %s WHERE id = 1", (value + 1,))
        c.execute("COMMIT")


class Transfers(Writer):
    """Moves money between two accounts and books it: two tables, a CHECK, a composite UNIQUE."""
    kind = "transfers"
    ACCOUNTS, START = 8, 1_000_000

    @classmethod
    def schema(cls):
        return ["CREATE TABLE IF NOT EXISTS accounts "
                "(id INTEGER PRIMARY KEY, balance INTEGER NOT NULL CHECK (balance >= 0))",
                "CREATE TABLE IF NOT EXISTS bookings (id INTEGER PRIMARY KEY AUTOINCREMENT, writer INTEGER NOT NULL, "
                "n INTEGER NOT NULL, source INTEGER NOT NULL, target INTEGER NOT NULL, amount INTEGER NOT NULL, "
                "UNIQUE (writer, n))",
                *[f"INSERT INTO accounts (id, balance) VALUES ({i}, {cls.START}) ON CONFLICT (id) DO NOTHING"
                  for i in range(cls.ACCOUNTS)]]

    def write(self, c, n):
        source, target = (self.number + n) % self.ACCOUNTS, (self.number + 3 * n + 1) % self.ACCOUNTS
        if source == target:
            target = (target + 1) % self.ACCOUNTS
        c.execute("BEGIN")
        c.execute("UPDATE accounts SET balance = balance - 1 WHERE id = %s", (source,))
        c.execute("UPDATE accounts SET balance = balance + 1 WHERE id = %s", (target,))
        c.execute("INSERT INTO bookings (writer, n, source, target, amount) VALUES (%s, %s, %s, %s, 1)",
                  (self.number, n, source, target))
        c.execute("COMMIT")


KINDS = {k.kind: k for k in (Inserts, Increments, ReadModifyWrite, Transfers)}


def stop_all(writers: list[Writer], deadline_s: float = 60):
    for w in writers:
        w.halt.set()
    end = time.monotonic() + deadline_s
    for w in writers:
        w.join(max(0.1, end - time.monotonic()))
        assert not w.is_alive(), f"writer {w.number} ({w.kind}) hangs"


def check(connection, writers: list[Writer]) -> dict[str, dict]:
    """Compares the ledgers with what the home holds. Returns a row a kind; `lost` and `doubled` must be 0."""
    rows = {}
    for kind in sorted({w.kind for w in writers}):
        mine = [w for w in writers if w.kind == kind]
        rows[kind] = _check_kind(connection, kind, mine)
    return rows


def _check_kind(c, kind: str, mine: list[Writer]) -> dict:
    acknowledged = sum(w.ledger.acknowledged for w in mine)
    unknown = sum(w.ledger.unknown for w in mine)
    wrong: list[str] = []
    if kind in ("inserts", "transfers"):
        table = "events" if kind == "inserts" else "bookings"
        rows = c.execute(f"SELECT writer, n FROM {table}").fetchall()
        found = len(rows)
        doubled = found - len(set(rows))
        lost = 0
        for w in mine:
            there = {n for writer, n in rows if writer == w.number}
            lost += len(w.ledger.acknowledged_ids - there)
            ghosts = there & w.ledger.failed_ids
            if ghosts:
                wrong.append(f"writer {w.number}: told `did not happen`, but found: {sorted(ghosts)[:5]}")
        if kind == "transfers":
            wrong += _check_balances(c)
    else:
        table = "counter" if kind == "increments" else "stock"
        found = c.execute(f"SELECT n FROM {table} WHERE id = 1").fetchone()[0]
        lost = max(0, acknowledged - found)
        doubled = max(0, found - acknowledged - unknown)
    return {"acknowledged": acknowledged, "unknown": unknown, "found": found, "lost": lost,
            "doubled": doubled, "conflicts": sum(w.ledger.conflicts for w in mine),
            "refused": sum(w.ledger.refused for w in mine), "wrong": wrong,
            "other": [o for w in mine for o in w.ledger.other][:5]}


def _check_balances(c) -> list[str]:
    balances = dict(c.execute("SELECT id, balance FROM accounts").fetchall())
    expected = {i: Transfers.START for i in range(Transfers.ACCOUNTS)}
    for source, target, amount in c.execute("SELECT source, target, amount FROM bookings").fetchall():
        expected[source] -= amount
        expected[target] += amount
    return [] if balances == expected else [f"balances {balances} do not follow from the bookings {expected}"]


def assert_exact(rows: dict[str, dict]):
    for kind, row in rows.items():
        assert row["lost"] == 0 and row["doubled"] == 0 and not row["wrong"], f"{kind}: {row}"
        assert row["acknowledged"] <= row["found"] <= row["acknowledged"] + row["unknown"], f"{kind}: {row}"
        assert not row["other"], f"{kind}: unexpected errors {row['other']}"

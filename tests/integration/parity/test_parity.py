"""Every case is run directly against PostgreSQL and through hotlane, and the bytes are compared.

The variants: each pool mode as it comes; byte by byte; at the isolation that hotlane chooses by itself; and with
neighbours that take and dirty the links of the pool between any two steps. HOTLANE_PARITY=word runs the cases
whose name has the word.
"""
import difflib
import os
from pathlib import Path

import cases_async
import cases_copy
import cases_extended
import cases_simple
import cases_startup
import cases_state
import psycopg
import pytest

from hotlane_test.harness import Harness, pool_modes
from hotlane_test.parity import Neighbour, Play, same, shown
from hotlane_test.process import make_folder
from hotlane_test.servers import Postgres

CASES = [c for module in (cases_startup, cases_simple, cases_extended, cases_copy, cases_state, cases_async)
         for c in module.CASES if os.environ.get("HOTLANE_PARITY", "") in c.name]
COMMITTED = ("isolation", "read_committed")

# name: (pool mode, options of the harness, byte by byte, neighbours)
VARIANTS = {
    "session": ("session", COMMITTED, False, False),
    "session_bytes": ("session", COMMITTED, True, False),
    "session_rule9": ("session", (), False, False),
    "transaction": ("transaction", COMMITTED, False, False),
    "transaction_bytes": ("transaction", (), True, False),
    "transaction_neighbours": ("transaction", (), False, True),
}


class Server:
    def __init__(self):
        self.pg = Postgres(make_folder("parity-"), settings={
            "fsync": "off", "max_prepared_transactions": 10, "log_min_messages": "fatal"}).start()
        self.pg.create("app", "parity", "closed")
        self.pg.create("parity")
        self.pg.execute("CREATE ROLE nologin NOLOGIN; CREATE ROLE other_role NOLOGIN; GRANT other_role TO app;"
                        "ALTER DATABASE closed ALLOW_CONNECTIONS false")
        self.pg.execute(Path(__file__).with_name("schema.sql").read_text(), "parity")
        self.admin = psycopg.connect(self.pg.dsn("parity"), autocommit=True)
        self.known: dict[str, list[str]] = {}

    def outside(self, sql: str):
        cursor = self.admin.execute(sql)
        return cursor.fetchall() if cursor.description else None

    def play(self, port: int, case, **how) -> list[str]:
        self.outside("DELETE FROM scratch")
        try:
            return shown(Play(port, self.outside, case, **how).run())
        except BaseException:
            self.outside("ALTER SYSTEM RESET ALL")    # what a case that broke may have left
            self.outside("SELECT pg_reload_conf()")
            raise

    def direct(self, case) -> list[str]:
        if case.name not in self.known:
            self.known[case.name] = self.play(self.pg.port, case, direct=True)
        return self.known[case.name]


@pytest.fixture(scope="module")
def server():
    s = Server()
    yield s
    s.admin.close()
    s.pg.stop("immediate")


@pytest.fixture(scope="module", params=[v for v in VARIANTS if VARIANTS[v][0] in pool_modes()])
def variant(request, server):
    mode, options, byte_by_byte, neighbours = VARIANTS[request.param]
    harness = Harness("127.0.0.1", server.pg.port, "database", "*", *options, pool=mode)
    neighbour = Neighbour(harness.port) if neighbours else None
    yield mode, request.param, harness, {"byte_by_byte": byte_by_byte, "neighbour": neighbour}
    if neighbour:
        neighbour.close()
    harness.close()


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name.replace(" ", "_"))
def test_parity(server, variant, case):
    mode, name, harness, how = variant
    if case.only and case.only != mode:
        pytest.skip(case.why_only)
    if case.isolation and VARIANTS[name][1] != COMMITTED:
        pytest.skip(case.isolation)
    if case.alone and how["neighbour"]:
        how = {**how, "neighbour": None}
    if case.ends:
        lines = server.play(harness.port, case, **how)
        assert one_fatal(lines, case.ends)
        greeted = 0 if case.startup is None else 1
        assert sum(" Z " in line[:5] for line in lines) == greeted + case.owed, lines
        return
    expected = server.direct(case)
    got = server.play(harness.port, case, **how)
    if not same(case, expected, got):
        pytest.fail("\n".join(difflib.unified_diff(expected, got, "directly", name, n=1, lineterm="")))


def one_fatal(lines: list[str], sqlstate: str) -> bool:
    """It is the last word, and the only one of its kind."""
    errors = [line for line in lines if " E " in line[:5]]
    return len(errors) == 1 and errors[0] == lines[-1] and "FATAL" in errors[0] and f"C{sqlstate}" in errors[0]


def test_there_are_enough_cases_and_no_name_is_twice():
    names = [c.name for c in CASES]
    assert len(names) == len(set(names))
    assert os.environ.get("HOTLANE_PARITY") or len(names) > 200

"""When the home breaks: one clear error with the right SQLSTATE, no stale link, recovery without a restart."""
import threading
import time

import pytest

from hotlane_test.gate import Gate
from hotlane_test.harness import Harness, pool_modes
from hotlane_test.pgwire import Closed, Wire, bind, execute, fields_of, flush, parse, query, startup, sync
from hotlane_test.process import free_port, make_folder, wait_until
from hotlane_test.servers import Postgres

NOTHING, UNKNOWN = "08006", "08007"


@pytest.fixture(scope="module")
def pg():
    server = Postgres(make_folder("broken-"), settings={"fsync": "off"}).start()
    server.create("app", "parity")
    server.execute("CREATE TABLE t (n int); ALTER TABLE t OWNER TO app", "parity")
    yield server
    server.stop("immediate")


@pytest.fixture(params=pool_modes())
def hl(request, pg):
    gate = Gate(pg.port)
    harness = Harness("127.0.0.1", gate.port, "threads", 2, "database", "*", pool=request.param)
    harness.gate = gate
    yield harness
    gate.refuse = gate.silent = False
    harness.close()
    gate.close()


def login(hl) -> Wire:
    return Wire(hl.port).login("app", "parity")


def told(wire: Wire, since: int) -> str:
    """The SQLSTATEs of the errors since then, up to ReadyForQuery or the end."""
    try:
        wire.wait_for(lambda m: m[0] == b"Z", since=since)
    except Closed:
        pass
    return " ".join(fields_of(body)["C"] for tag, body in wire.messages[since:] if tag == b"E")


# what the client had done and what it asks when the link is cut under the answer
CUTS = [
    ("a read", [], [query("SELECT 'cut here'")], NOTHING),
    ("a read in a batch", [], [parse("SELECT 'cut here'"), bind(), execute(), sync()], NOTHING),
    ("a write", [], [query("INSERT INTO t VALUES (1) -- cut here")], UNKNOWN),
    ("a write in a batch", [], [parse("INSERT INTO t VALUES (1) -- cut here"), bind(), execute(), sync()], UNKNOWN),
    ("a write in a batch without sync", [], [parse("INSERT INTO t VALUES (1) -- cut here"), bind(), execute(), flush()],
     NOTHING),
    ("a commit of writes", ["BEGIN", "INSERT INTO t VALUES (1)"], [query("COMMIT -- cut here")], UNKNOWN),
    ("a commit of nothing", ["BEGIN", "SELECT 1"], [query("COMMIT -- cut here")], NOTHING),
    ("a rollback", ["BEGIN", "INSERT INTO t VALUES (1)"], [query("ROLLBACK -- cut here")], NOTHING),
    ("a write in a block", ["BEGIN"], [query("INSERT INTO t VALUES (1) -- cut here")], NOTHING),
    ("a whole transaction in one text", [], [query("BEGIN; INSERT INTO t VALUES (1); COMMIT -- cut here")], UNKNOWN),
    ("a function that may write", [], [query("SELECT setval('nothing', 1) -- cut here")], UNKNOWN),
    ("ddl", [], [query("CREATE TABLE cut_here (n int)")], UNKNOWN),
]


@pytest.mark.parametrize("name, before, asked, state", CUTS, ids=[c[0].replace(" ", "_") for c in CUTS])
def test_the_link_is_cut_under_the_answer(hl, name, before, asked, state):
    wire, other = login(hl), login(hl)
    for sql in before:
        wire.run(sql)
    hl.gate.cut_after("CUT")                    # of `cut here`, `cut_here`
    since = len(wire.messages)
    wire.send(b"".join(asked))
    if name.endswith("without sync"):
        wire.wait_for(lambda m: m[0] == b"E", since=since)
        wire.send(sync())
    assert told(wire, since) == state
    hl.gate.cut_after(None)
    assert other.run("SELECT 1") == [[b"1"]]
    again = wire if not wire.at_end else login(hl)
    assert again.run("SELECT 2") == [[b"2"]]
    for w in {wire, other, again}:
        w.drop()


def test_a_link_that_breaks_while_idle_is_not_noticed(hl):
    wires = [login(hl) for _ in range(5)]
    for turn in range(3):
        for wire in wires:
            wire.run("SELECT 1")
        hl.gate.cut_all()
        wait_until(lambda: not hl.gate._pairs, 10, "all are cut")
        # The loss travels to hotlane like a reply does: what is asked behind it finds a new link.
        wait_until(lambda t=turn: len({w.at_end for w in wires}) == 1, 5, "nobody was told")
        assert [recovered(w) for w in wires] == ["ok"] * 5
    for wire in wires:
        wire.drop()


def recovered(wire: Wire) -> str:
    """A read that comes before the loss was seen may be told of it, in a code that says nothing happened."""
    since = len(wire.messages)
    wire.send(query("SELECT 2"))
    states = told(wire, since)
    if states == NOTHING:
        return recovered(wire)
    return states or "ok"


def test_reset_in_the_middle_of_a_row(hl):
    wire, other = login(hl), login(hl)
    wire.send(query("SELECT repeat('x', 30 << 20)"))
    wait_until(lambda: wire.read_some(0.2) is not None and len(wire.left_over()) > 1000, 30, "the row comes")
    hl.gate.cut_all()
    wire.wait_end()
    assert not any(m[0] in b"EZ" for m in wire.messages[wire_start(wire):]), "nothing may follow half a row"
    assert recovered(other) == "ok"
    fresh = login(hl)
    assert fresh.run("SELECT 3") == [[b"3"]]
    for w in (wire, other, fresh):
        w.drop()


def wire_start(wire: Wire) -> int:
    """Behind the greeting."""
    return next(i for i, m in enumerate(wire.messages) if m[0] == b"Z") + 1


def test_refused(hl):
    hl.gate.refuse = True
    start = time.monotonic()
    wire = Wire(hl.port)
    wire.send(startup(user="app", database="parity"))
    assert told(wire, 0) == "08001"
    assert time.monotonic() - start < 30
    hl.gate.refuse = False
    again = login(hl)
    assert again.run("SELECT 1") == [[b"1"]]
    wire.drop()
    again.drop()


def test_accepted_and_silent(hl):
    kept = login(hl)
    kept.run("SELECT 1")
    hl.gate.silent = True
    wire = Wire(hl.port, 40)
    wire.send(startup(user="app", database="parity"))
    assert told(wire, 0) == "08001"
    hl.gate.silent = False
    again = login(hl)
    assert again.run("SELECT 1") == [[b"1"]]
    assert recovered(kept) == "ok"
    for w in (wire, again, kept):
        w.drop()


def test_half_open_then_gone(hl):
    """The home takes the query and says nothing, then the connection breaks."""
    wire = login(hl)
    wire.run("SELECT 1")
    hl.gate.silent = True
    since = len(wire.messages)
    wire.send(query("SELECT 2"))
    assert not wire.read_some(0.5)
    hl.gate.cut_all()
    hl.gate.silent = False
    assert told(wire, since) == NOTHING
    assert recovered(wire) == "ok"
    wire.drop()


def test_nobody_listens():
    for mode in pool_modes():
        harness = Harness("127.0.0.1", free_port(), "database", "*", pool=mode)
        wire = Wire(harness.port)
        wire.send(startup(user="app", database="parity"))
        assert told(wire, 0) == "08001"
        wire.drop()
        harness.close()


@pytest.mark.parametrize("how", ["fast", "immediate"])
def test_restart_under_load(hl, pg, how):
    """Each client is told once for each loss, in one of the right codes, and goes on; the first answer comes
    within half a second of the server being up."""
    stop, states, good = threading.Event(), set(), [0] * 8
    faults = []

    def work(number: int):
        wire = None
        while not stop.is_set():
            try:
                if wire is None or wire.at_end:
                    wire = Wire(hl.port, 40)
                    wire.send(startup(user="app", database="parity"))
                    state = told(wire, 0)
                    if state:
                        states.add(state)
                        continue
                since = len(wire.messages)
                wire.send(query(f"SELECT 'of {number}'"))
                state = told(wire, since)
                if state:
                    states.add(state)
                elif not wire.at_end:
                    # The home's farewell to a link that was idle may come before.
                    rows = [body for tag, body in wire.messages[since:] if tag == b"D"]
                    if len(rows) != 1 or (b"of %d" % number) not in rows[0]:
                        faults.append(wire.messages[since:])
                    good[number] += 1
            except Closed:
                continue
        if wire:
            wire.drop()

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for t in threads:
        t.start()
    try:
        for _ in range(2):
            mark = list(good)
            wait_until(lambda m=mark: all(g > k for g, k in zip(good, m)), 30, "all work")
            pg.stop(how)
            pg.start()
            up, mark = time.monotonic(), sum(good)
            wait_until(lambda m=mark: sum(good) > m, 30, "it goes on", interval_s=0.005)
            first = time.monotonic() - up
    finally:
        stop.set()
        for t in threads:
            t.join(60)
    assert not faults
    assert states <= {"57P01", "57P03", "08001", "08006", "57P02"}, states
    assert first < 2.0

"""A move out that copies ahead of its hold: the pause, and everything that can happen while the rows are copied."""
import sqlite3
import threading

import psycopg
import pytest

from hotlane_test.gate import Gate
from hotlane_test.ledger import KINDS, assert_exact, check, stop_all
from hotlane_test.process import wait_until
from hotlane_test.servers import Bench

POLICIES = """policies:
  default:
    mode: observe
    rails: {hold_max: 60s}
"""
ROWS = 150_000          # of the table that makes a held copy long
TOOLS = {               # what its configuration says besides; the budgets leave a slow machine its time
    "calm": "hold: 60s",
    "held": "hold: 60s, copy: held",
    "round": "hold: 60s, copy: ahead",
    "doubt": "hold: 60s, copy: ahead",
    "ddl": "hold: 60s",
    "stop": "hold: 60s",
    "hot": "hold: 250ms",
    "lone": "hold: 60s, copy: ahead",
}


@pytest.fixture(scope="module")
def bench():
    with Bench(list(TOOLS), commit_latency="2ms", scan_cost="50ns", policies=POLICIES, gate=Gate) as b:
        text = b.hotlane.config_path.read_text()
        for tool, more in TOOLS.items():
            lines = "".join(f"    {line}\n" for line in more.split(", "))
            text = text.replace(f"  - name: {tool}\n", f"  - name: {tool}\n{lines}")
        b.hotlane.config_path.write_text(text)
        b.hotlane.start()
        for tool in TOOLS:
            with b.hotlane.connect(tool) as c:
                for kind in KINDS.values():
                    for sql in kind.schema():
                        c.execute(sql)
                c.execute("CREATE TABLE archive (id INTEGER PRIMARY KEY, n INTEGER NOT NULL, body TEXT)")
                c.execute("CREATE TABLE aside (id INTEGER PRIMARY KEY, body TEXT)")
        b.engine.stop()
        for tool in TOOLS:
            fill(b, tool)
        b.engine.start()
        yield b


def fill(bench, tool):
    """Straight into the engine's file while it is down: by INSERTs it would take minutes."""
    with sqlite3.connect(bench.engine.folder / f"{tool}.db") as c:
        c.executemany("INSERT INTO archive VALUES (?, ?, ?)",
                      ((i, i % 97, f"row {i} of what was before") for i in range(ROWS)))
    c.close()


def start_writers(bench, tool, each=2, prepare=5):
    writers = [kind(bench.hotlane.dsn(tool), number=i * 4 + k, think_s=0.005, prepare_threshold=prepare)
               for i in range(each) for k, kind in enumerate(KINDS.values())]
    for w in writers:
        w.start()
    return writers


def acknowledged(writers):
    return sum(w.ledger.acknowledged for w in writers)


def underway(writers):
    before = acknowledged(writers)
    wait_until(lambda: acknowledged(writers) > before + 40, 60, "the writers make progress")


def order(bench, tool):
    """Orders the move out and gives its id."""
    bench.hotlane.cli("route", tool, "--to", "postgres", "--execute")
    return wait_until(lambda: next((o["move"] for o in bench.hotlane.json("moves")["orders"]
                                    if o["tool"] == tool and o.get("move")), None), 20, "the move has an id")


def phase(bench, tool):
    return next((o.get("phase") for o in bench.hotlane.json("moves")["orders"] if o["tool"] == tool), None)


def while_copying(bench, tool):
    """The move of this tool is in the phase `ahead`."""
    move = order(bench, tool)
    wait_until(lambda: phase(bench, tool) == "ahead", 60, "rows are copied ahead", interval_s=0.005)
    return move


def ended(bench, move):
    def done():
        found = bench.hotlane.json("moves", move)
        return found if found["outcome"] not in ("", "running") else None
    return wait_until(done, 120, f"move {move} ends")


def detail(move):
    return move["plan"]["detail"]


def archive_is_whole(bench, tool, home):
    at = bench.pg.connect(tool) if home == "postgres" else bench.engine.connect(tool)
    with at as c:
        assert c.execute("SELECT count(*), sum(id), min(id), max(id) FROM archive").fetchone() == (
            ROWS, ROWS * (ROWS - 1) // 2, 0, ROWS - 1)


def moved_under_load(bench, tool):
    writers = start_writers(bench, tool)
    try:
        underway(writers)
        done = bench.hotlane.route(tool, "postgres")
        assert done.returncode == 0, done.stdout + done.stderr
        underway(writers)
    finally:
        stop_all(writers)
    with bench.pg.connect(tool) as c:
        assert_exact(check(c, writers))
    archive_is_whole(bench, tool, "postgres")
    last = bench.hotlane.json("moves")["moves"][0]
    return bench.hotlane.json("moves", last["id"])


def test_the_pause_does_not_grow_with_what_nobody_writes_to(bench):
    held = moved_under_load(bench, "held")
    assert detail(held)["copy"] == "held"
    ahead = moved_under_load(bench, "calm")
    shown = detail(ahead)
    print(f"\nheld: {held['held_ms']} ms; ahead: {ahead['held_ms']} ms, {shown['ahead']}")
    assert shown["copy"] == "ahead" and "settle" in shown["phases"] and "copy" not in shown["phases"]
    assert shown["ahead"]["all_seen"], shown["ahead"]
    assert shown["ahead"]["commits_seen"] > 20
    assert "archive" not in shown["ahead"]["changed"] and "counter" in shown["ahead"]["changed"]
    assert ahead["held_ms"] * 2 < held["held_ms"]
    # What nobody vacuumed while it was staged is like any other table from now on.
    with bench.pg.connect("calm") as c:
        assert c.execute("SELECT count(*) FROM pg_class WHERE reloptions IS NOT NULL AND relnamespace = "
                         "'public'::regnamespace").fetchone() == (0,)
        c.execute("INSERT INTO bookings (writer, n, source, target, amount) VALUES (-1, -1, 0, 1, 0)")


def test_a_writer_who_goes_round_hotlane_loses_nothing(bench):
    rows, halt = [], threading.Event()

    def write():
        with bench.engine.connect("round") as c:
            for i in range(1_000_000):
                if halt.is_set():
                    return
                try:
                    c.execute("INSERT INTO aside VALUES (%s, 'round')", (i,))
                except psycopg.Error:
                    return
                rows.append(i)

    foreign = threading.Thread(target=write, daemon=True)
    writers = start_writers(bench, "round")
    try:
        underway(writers)
        foreign.start()
        wait_until(lambda: len(rows) > 20, 20, "somebody goes round hotlane")
        done = bench.hotlane.route("round", "postgres")
        assert done.returncode == 0, done.stdout + done.stderr
    finally:
        halt.set()
        foreign.join(20)
        stop_all(writers)
    with bench.pg.connect("round") as c:
        assert_exact(check(c, writers))
        assert [r[0] for r in c.execute("SELECT id FROM aside ORDER BY id").fetchall()] == rows
    archive_is_whole(bench, "round", "postgres")
    last = bench.hotlane.json("moves")["moves"][0]
    shown = detail(bench.hotlane.json("moves", last["id"]))["ahead"]
    assert not shown["all_seen"] and shown["passes"] == 2, shown


def test_one_commit_of_somebody_else_is_found_among_many(bench):
    """Between two statements of writers that all go through hotlane."""
    writers = start_writers(bench, "lone")
    try:
        underway(writers)
        move = while_copying(bench, "lone")
        bench.engine.execute("lone", "UPDATE archive SET n = 1000 WHERE id = 4711")
        done = ended(bench, move)
    finally:
        stop_all(writers)
    assert done["outcome"] == "done", done["reason"]
    with bench.pg.connect("lone") as c:
        assert_exact(check(c, writers))
        assert c.execute("SELECT n FROM archive WHERE id = 4711").fetchone() == (1000,)
    archive_is_whole(bench, "lone", "postgres")


def test_outcomes_that_nobody_knows(bench):
    gate = bench.gates["doubt"]
    writers = start_writers(bench, "doubt", prepare=None)   # the gate looks for the word
    try:
        underway(writers)
        gate.cut_after("UPDATE", 0.02)
        wait_until(lambda: gate.cuts > 2, 30, "links are cut")
        # A link of the move itself may be cut as well: then the move is undone, and the next one comes through.
        wait_until(lambda: bench.hotlane.route("doubt", "postgres").returncode == 0, 120, "the tool moves")
    finally:
        gate.cut_after(None)
        stop_all(writers)
    assert sum(w.ledger.unknown for w in writers) > 0
    with bench.pg.connect("doubt") as c:
        assert_exact(check(c, writers))
    archive_is_whole(bench, "doubt", "postgres")


def goes_back_without_a_hold(bench, tool, done, code):
    assert done["outcome"] == "undone" and done["reason"].startswith(code), done["reason"]
    phases = detail(done)["phases"]
    assert "ahead" in phases and "hold" not in phases and "fence" not in phases, phases
    where = bench.hotlane.where(tool)
    assert where["home"] == "engine" and where["served"]
    with bench.pg.connect(tool) as c:
        assert not c.execute("SELECT nspname FROM pg_namespace WHERE nspname LIKE 'hotlane\\_%'").fetchall()
    archive_is_whole(bench, tool, "engine")


def test_ddl_ends_it_before_the_hold(bench):
    writers = start_writers(bench, "ddl", each=1)
    try:
        underway(writers)
        move = while_copying(bench, "ddl")
        with bench.hotlane.connect("ddl") as c:
            c.execute("CREATE TABLE late (id INTEGER PRIMARY KEY)")
        goes_back_without_a_hold(bench, "ddl", ended(bench, move), "schema_changed")
        underway(writers)
    finally:
        stop_all(writers)
    with bench.engine.connect("ddl") as c:
        assert_exact(check(c, writers))


def test_an_operator_ends_it(bench):
    writers = start_writers(bench, "stop", each=1)
    try:
        underway(writers)
        move = while_copying(bench, "stop")
        assert bench.hotlane.cli("move", "abort", move).returncode == 0
        goes_back_without_a_hold(bench, "stop", ended(bench, move), "aborted")
        underway(writers)
    finally:
        stop_all(writers)
    with bench.engine.connect("stop") as c:
        assert_exact(check(c, writers))


def test_a_large_table_that_is_written_to_all_the_time(bench):
    halt = threading.Event()

    def write():
        with bench.hotlane.connect("hot") as c:
            n = 0
            while not halt.is_set():
                n += 1
                c.execute("UPDATE archive SET n = n + 1 WHERE id = %s", (n % ROWS,))

    writer = threading.Thread(target=write, daemon=True)
    writer.start()
    try:
        move = while_copying(bench, "hot")
        done = ended(bench, move)
    finally:
        halt.set()
        writer.join(30)
    goes_back_without_a_hold(bench, "hot", done, "hold_forecast")
    assert "archive" in done["reason"]

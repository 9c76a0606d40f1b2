"""What a move costs: rows a second beside a pipe of two psql, interleaved, and the pause of the tool's clients.

    HOTLANE_BUILD=build PYTHONPATH=tests/support /usr/bin/python3 tests/bench/moves.py [--rows 10000 1000000]

The pipe reads the engine with a SELECT and writes PostgreSQL with COPY, and does nothing else: it neither looks at
values nor counts, and reads nothing back. The figures are of the development engine, whose SELECT has the measured
cost of the real one (3 us a row); --engine-cost 0 takes that away.
"""
import argparse
import sqlite3
import statistics
import subprocess
import time

from hotlane_test.ledger import KINDS, assert_exact, check, stop_all
from hotlane_test.process import wait_until
from hotlane_test.servers import PG_BIN, Bench

POLICIES = """policies:
  default:
    mode: observe
    rails: {hold_max: 600s, hold_budget: 1h, cooldown: 600s, moves_per_hour: 100}
"""
PIPE_ROWS, ROUNDS = 100_000, 3
TABLE = "CREATE TABLE archive (id INTEGER PRIMARY KEY, n INTEGER NOT NULL, body TEXT)"


def fill(bench, tool, rows):
    """Straight into the engine's file while it is down."""
    with sqlite3.connect(bench.engine.folder / f"{tool}.db") as c:
        c.executemany("INSERT INTO archive VALUES (?, ?, ?)",
                      ((i, i % 97, f"row {i} of what was before") for i in range(rows)))
    c.close()


def piped(bench, tool) -> float:
    """Seconds of SELECT | COPY into a table of its own."""
    bench.pg.execute("DROP TABLE IF EXISTS piped", tool)
    bench.pg.execute("CREATE TABLE piped (id bigint PRIMARY KEY, n bigint, body text)", tool)
    started = time.monotonic()
    read = subprocess.Popen(["psql", "-X", "-At", "-F", "\t", "-c", "SELECT id, n, body FROM archive",
                             bench.engine.dsn(tool)], stdout=subprocess.PIPE)
    subprocess.run([str(PG_BIN / "psql"), "-X", "-q", "-c", "COPY piped FROM STDIN", bench.pg.dsn(tool)],
                   stdin=read.stdout, check=True)
    assert read.wait() == 0
    took = time.monotonic() - started
    assert bench.pg.execute("SELECT count(*) FROM piped", tool) == [(PIPE_ROWS,)]
    bench.pg.execute("DROP TABLE piped", tool)
    return took


def move(bench, tool, home) -> dict:
    done = bench.hotlane.route(tool, home, timeout=1200)
    if done.returncode != 0:
        return {"refused": (done.stdout + done.stderr).strip().splitlines()[-1]}
    last = next(m for m in bench.hotlane.json("moves")["moves"] if m["tool"] == tool)
    return bench.hotlane.json("moves", last["id"])


def rates(bench):
    """The held copy's own time, by the journal, beside the pipe's."""
    ours, theirs = [], []
    for turn in range(ROUNDS):
        tool = f"pipe{turn}"
        for who in ("pipe", "move") if turn % 2 == 0 else ("move", "pipe"):
            if who == "pipe":
                theirs.append(PIPE_ROWS / piped(bench, tool if turn % 2 == 0 else f"spare{turn}"))
                continue
            phases = move(bench, tool, "postgres")["plan"]["detail"]["phases"]
            ours.append(PIPE_ROWS / ((phases["verify"] - phases["copy"]) / 1000))
    a, b = statistics.median(ours), statistics.median(theirs)
    print(f"copy out of {PIPE_ROWS} rows, checked and summed: {a:,.0f} rows/s; SELECT | COPY: {b:,.0f} rows/s; "
          f"ratio {a / b:.2f}")


def pause(bench, tool, rows):
    writers = [kind(bench.hotlane.dsn(tool), number=k, think_s=0.01) for k, kind in enumerate(KINDS.values())]
    for w in writers:
        w.start()
    try:
        for home in ("postgres", "engine"):
            wait_until(lambda: all(w.ledger.acknowledged > 5 for w in writers), 120, "the writers make progress")
            done = move(bench, tool, home)
            if "refused" in done:
                print(f"{rows:>9} rows to {home:<8}: refused, {done['refused']}")
                break
            detail = done["plan"]["detail"]
            held, forecast = done["held_ms"], detail["forecast"]["hold_ms"]
            print(f"{rows:>9} rows to {home:<8}: pause {held} ms, copied {detail['copy']}; a held copy was forecast "
                  f"at {forecast} ms ({forecast / held:.0f} times); all in all {detail['phases']['done'] / 1000:.1f} s")
    finally:
        stop_all(writers)
    at = bench.engine.connect(tool) if bench.hotlane.where(tool)["home"] == "engine" else bench.pg.connect(tool)
    with at as c:
        assert_exact(check(c, writers))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, nargs="+", default=[10_000, 1_000_000])
    parser.add_argument("--no-pipe", action="store_true", help="the pauses alone")
    asked = parser.parse_args()
    pipes = [] if asked.no_pipe else [f"{n}{t}" for t in range(ROUNDS) for n in ("pipe", "spare")]
    pauses = {f"rows{n}": n for n in asked.rows}
    with Bench([*pipes, *pauses], commit_latency="5ms", policies=POLICIES) as bench:
        text = bench.hotlane.config_path.read_text()
        for tool in pipes:
            text = text.replace(f"  - name: {tool}\n", f"  - name: {tool}\n    copy: held\n")
        text = text.replace("    policy: default\n", "    policy: default\n    hold: 600s\n")
        bench.hotlane.config_path.write_text(text)
        bench.hotlane.start()
        for tool in [*pipes, *pauses]:
            with bench.hotlane.connect(tool) as c:
                for sql in [TABLE, *(s for k in KINDS.values() for s in k.schema() if tool in pauses)]:
                    c.execute(sql)
        bench.engine.stop()
        for tool in pipes:
            fill(bench, tool, PIPE_ROWS)
        for tool, rows in pauses.items():
            fill(bench, tool, rows)
        bench.engine.start()
        if pipes:
            rates(bench)
        for tool, rows in pauses.items():
            pause(bench, tool, rows)


if __name__ == "__main__":
    main()

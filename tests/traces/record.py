#!/usr/bin/python3
"""Records counter traces of the development engine, one CSV a shape, in the form that `hotlane replay` reads.

    HOTLANE_BUILD=build PYTHONPATH=tests/support tests/traces/record.py FOLDER [SHAPE...]

Each shape is a list of phases; a phase is so many writers of one kind for so many seconds.
"""
import argparse
import pathlib
import select
import subprocess
import sys
import time

from hotlane_test.process import make_folder
from hotlane_test.servers import DevEngine

PGBENCH = "/usr/lib/postgresql/15/bin/pgbench"
STEP = 0.5
SCRIPTS = {
    "hot": "UPDATE counters SET n = n + 1 WHERE id = 1;\n",
    "rows": "\\set k random(1, 500)\nUPDATE counters SET n = n + 1 WHERE id = :k;\n",
    "shards": "\\set k random(1, 8)\nUPDATE counters SET n = n + 1 WHERE id = :k;\n",
    "insert": "INSERT INTO log (body) VALUES ('a line of the log');\n",
    "think": "UPDATE counters SET n = n + 1 WHERE id = 1;\n\\sleep 40 ms\n",
    "slow_insert": "INSERT INTO log (body) VALUES ('a line of the log');\n\\sleep 20 ms\n",
    "block": "BEGIN;\nSELECT n FROM counters WHERE id = 1;\nUPDATE counters SET n = n + 1 WHERE id = 1;\nCOMMIT;\n",
}
# name: (commit latency, [(phase, script, writers, seconds)]); writers 0: nobody writes
SHAPES = {
    "calm_inserts": ("5ms", [("inserts", "slow_insert", 6, 14)]),
    "hot_row_8": ("5ms", [("hot", "hot", 8, 16)]),
    "hot_then_calm": ("5ms", [("hot", "hot", 12, 14), ("calm", "slow_insert", 4, 14)]),
    "bursts": ("5ms", [(f"{p}{i}", s, w, t) for i in range(4)
                       for p, s, w, t in (("burst", "hot", 12, 2), ("calm", "slow_insert", 4, 4))]),
    "ramp": ("5ms", [(f"writers{w}", "hot", w, 4) for w in (1, 2, 4, 8, 16)]),
    "slow_storage": ("30ms", [("inserts", "slow_insert", 8, 14)]),
    "sharded_8": ("5ms", [("shards", "shards", 8, 16)]),
    "thinking_writers": ("5ms", [("think", "think", 4, 14)]),
    "night": ("5ms", [("day", "slow_insert", 6, 8), ("night", None, 0, 8), ("morning", "slow_insert", 6, 8)]),
    "blocks": ("5ms", [("blocks", "block", 8, 16)]),
}


def row(engine, began, phase):
    s = engine.stats("app")
    return (f"{int((time.monotonic() - began) * 1000)},{s['twill_write_lane_acquire_total']},"
            f"{s['twill_write_handoff_total']},{s['twill_write_wait_us_total']},{s['twill_commit_total']},{phase}\n")


def play(engine, folder, phase, script, writers, seconds, began, out):
    load = None
    if script:
        path = folder / f"{script}.sql"
        path.write_text(SCRIPTS[script])
        path.chmod(0o644)
        load = subprocess.Popen(
            [PGBENCH, "-n", "-h", "127.0.0.1", "-p", str(engine.ports["app"]), "-U", "app", "-f", str(path),
             "-c", str(writers), "-j", "1", "-T", str(seconds), "app"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        next_at = time.monotonic() + STEP
        out.append(row(engine, began, phase))
        while time.monotonic() < next_at:
            wait_a_little(next_at)
    if load:
        load.wait()


def wait_a_little(until):
    select.select([], [], [], max(0.0, until - time.monotonic()))


def record(name, target):
    latency, phases = SHAPES[name]
    folder = make_folder("hotlane-trace-")
    engine = DevEngine(folder, ["app"], latency, "900ns").start()
    try:
        engine.execute("app", "CREATE TABLE counters (id INTEGER PRIMARY KEY, n INTEGER NOT NULL)")
        for first in range(1, 501, 100):
            values = ", ".join(f"({i}, 0)" for i in range(first, first + 100))
            engine.execute("app", f"INSERT INTO counters (id, n) VALUES {values}")
        engine.execute("app", "CREATE TABLE log (body TEXT)")
        out = ["t_ms,acquire_total,handoff_total,wait_us_total,commit_total,phase\n"]
        began = time.monotonic()
        for phase in phases:
            play(engine, folder, *phase, began, out)
        target.joinpath(f"{name}.csv").write_text("".join(out))
    finally:
        engine.stop()


def main():
    options = argparse.ArgumentParser()
    options.add_argument("folder", type=pathlib.Path)
    options.add_argument("shapes", nargs="*", default=list(SHAPES))
    given = options.parse_args()
    for name in given.shapes:
        record(name, given.folder)
        print(name, file=sys.stderr)


if __name__ == "__main__":
    main()

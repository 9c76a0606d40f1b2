"""The demonstration that deploy/demo.sh runs. It narrates; the figures are measured while it runs."""
import argparse
import shutil
import signal
import sys
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))

from hotlane_test.ledger import Increments, Inserts, Writer, check, stop_all  # noqa: E402
from hotlane_test.process import program  # noqa: E402
from hotlane_test.servers import Bench  # noqa: E402

POLICIES = """policies:
  default:
    mode: act
    window: {length: 2s, hot_of: 4, out_of: 6, min_acquires: 20}
    levers: {shard_deadline: 10m, diagnose_deadline: 20s, remeasure: 10s}
    rails: {min_stay: 20s, hold_max: 2s, moves_per_hour: 20}
    return: {calm_windows: 5, min_writes: 5, lane_use_max: 0.3, lookback: 12s}
"""
TOOLS = ["calm", "busy", "counter"]


class Distinct(Inserts):
    """Calm: every writer inserts rows of its own into a table without a key to look up."""

    @staticmethod
    def schema():
        return ["CREATE TABLE IF NOT EXISTS events (writer INTEGER NOT NULL, n INTEGER NOT NULL)"]

    def write(self, c, n):
        c.execute("INSERT INTO events (writer, n) VALUES (%s, %s)", (self.number, n))


class Keyed(Inserts):
    """Busy: inserts with a key, and the engine scans the table for it while it holds the lane."""

    @staticmethod
    def schema():
        return Inserts.schema() + [
            f"INSERT INTO events (id, writer, n) VALUES " +
            ", ".join(f"({-1 - i * 500 - j}, -1, {i * 500 + j})" for j in range(500)) for i in range(40)]


def say(text: str = ""):
    print(text, flush=True)


class Interrupted(Exception):
    pass


class Demo:
    def __init__(self, bench: Bench):
        self.bench = bench
        self.started = time.monotonic()
        self.writers: dict[str, list[Writer]] = {t: [] for t in TOOLS}
        self.marks: dict[str, tuple[float, dict]] = {}
        self.phases: list[dict] = []
        self.moves: list[tuple[float, float]] = []

    # ---- load ----
    def load(self):
        for tool, kind in (("calm", Distinct), ("busy", Keyed), ("counter", Increments)):
            with self.bench.hotlane.connect(tool) as c:
                for sql in kind.schema():
                    c.execute(sql)
        for tool, kind, count, think in (("calm", Distinct, 4, 0.02), ("busy", Keyed, 12, 0.0),
                                         ("counter", Increments, 12, 0.0)):
            for i in range(count):
                w = kind(self.bench.hotlane.dsn(tool), number=i, think_s=think, latencies=True)
                self.writers[tool].append(w)
                w.start()

    def slow_down(self):
        """The contention goes: two writers that think, in place of twelve that do not."""
        for w in self.writers["counter"][2:]:
            w.halt.set()
        for w in self.writers["counter"][:2]:
            w.think_s = 0.1

    # ---- figures ----
    def count(self, tool):
        w = self.writers[tool]
        return {"ok": sum(x.ledger.acknowledged for x in w), "conflicts": sum(x.ledger.conflicts for x in w),
                "refused": sum(x.ledger.refused for x in w), "unknown": sum(x.ledger.unknown for x in w)}

    def rates(self, tool):
        now, this = time.monotonic(), self.count(tool)
        then, last = self.marks.get(tool, (self.started, {k: 0 for k in this}))
        self.marks[tool] = (now, this)
        span = max(now - then, 1e-3)
        return {k: (this[k] - last[k]) / span for k in this}

    def p99(self, tool, since, until):
        took = sorted(s for w in self.writers[tool] for at, s in list(w.ledger.latencies) if since <= at <= until)
        return 1000 * took[min(len(took) - 1, int(len(took) * 0.99))] if took else float("nan")

    def line(self):
        status = {t["name"]: t for t in self.bench.hotlane.json("tools")["tools"]}
        for tool in TOOLS:
            t, r = status[tool], self.rates(tool)
            window = t.get("window") or {}
            say(f"  {time.monotonic() - self.started:5.0f}s {tool:8} {t['home']:8} {t['stage']:12} "
                f"{(t.get('diagnosis') or '-'):9} handoff {number(window.get('handoff_rate')):>5} "
                f"wait {number(window.get('mean_wait_ms'), 1):>6} ms  abort {number(window.get('abort_rate')):>5}  "
                f"{r['ok']:6.0f} writes/s  {r['conflicts']:5.0f} conflicts/s")
        return status

    def until(self, what: str, done, limit_s: float, every_s: float = 4.0):
        say(f"\n== {what}")
        end = time.monotonic() + limit_s
        while True:
            status = self.line()
            if done(status):
                return status
            if time.monotonic() > end:
                raise TimeoutError(f"not within {limit_s:.0f} s: {what}")
            wait(every_s)

    def measure(self, name: str, seconds: float):
        """One row of the table at the end: what the counter's clients got in a quiet stretch."""
        before, start = self.count("counter"), time.monotonic()
        wait(seconds)
        after, end = self.count("counter"), time.monotonic()
        ok, bad = after["ok"] - before["ok"], after["conflicts"] - before["conflicts"]
        self.phases.append({"phase": name, "writes": ok / (end - start), "conflicts": bad / (end - start),
                            "failed": bad / max(1, ok + bad), "p99": self.p99("counter", start, end),
                            "calm": self.p99("calm", start, end), "busy": self.p99("busy", start, end)})

    # ---- the story ----
    def run(self):
        h = self.bench.hotlane
        say("== Three tools on one engine: `calm` inserts rows of its own, `busy` inserts with a key that the\n"
            "   engine scans for, `counter` has twelve writers on ONE row. Writers do not retry; they count.")
        self.load()
        self.until("the counters are read in windows; proof takes at least 10 s",
                   lambda s: s["counter"]["stage"] == "sharding" and s["busy"].get("diagnosis") == "busy_lane", 90)
        self.measure("before, on the engine", 8)
        say("\n== hotlane explains what it found, and which lever comes first (hotlane explain counter):\n")
        say(indent(h.cli("explain", "counter").stdout))
        say("== and for the busy tool (hotlane explain busy):\n")
        say(indent(h.cli("explain", "busy").stdout))
        say("== This counter cannot be split, says its owner: hotlane shard skip counter")
        h.cli("shard", "skip", "counter")
        self.until("lever 3: the tool moves to PostgreSQL, with its data, while its clients write",
                   lambda s: s["counter"]["home"] == "postgres", 60, every_s=2.0)
        wait(2)
        self.measure("after routing, on PostgreSQL", 10)
        say("\n== The contention goes: ten of the twelve writers stop, the others think between writes.")
        self.slow_down()
        self.until("hotlane predicts the engine's lane from the writes that it sees, and waits for proof",
                   lambda s: s["counter"]["home"] == "engine", 90)
        wait(2)
        self.measure("after the return, on the engine", 8)

    def report(self) -> bool:
        moves = [m for m in self.bench.hotlane.json("moves")["moves"] if m["outcome"] == "done"]
        for writers in self.writers.values():
            stop_all(writers)
        say("\n== What the counter's clients got, and the p99 of a write of each tool, in ms")
        say(f"   {'':32} {'writes/s':>9} {'conflicts/s':>12} {'failed':>8} {'counter':>9} {'calm':>7} {'busy':>7}")
        for p in self.phases:
            say(f"   {p['phase']:32} {p['writes']:9.0f} {p['conflicts']:12.0f} {p['failed']:8.0%} "
                f"{p['p99']:9.1f} {p['calm']:7.1f} {p['busy']:7.1f}")
        say("\n== The moves, and the others' p99 in the five seconds around each")
        for m in reversed(moves):
            at = time.monotonic() - (time.time() - m["ended_at"])
            calm, busy = (self.p99(tool, at - 2.5, at + 2.5) for tool in ("calm", "busy"))
            say(f"   {m['id']}  {m['from']:>8} -> {m['to']:8}  held {m['held_ms']:4.0f} ms   "
                f"calm {calm:6.1f} ms   busy {busy:6.1f} ms")
        say("\n== The ledger: acknowledged <= found <= acknowledged + unknown")
        say(f"   {'tool':8} {'acknowledged':>13} {'unknown':>8} {'found':>9} {'lost':>5} {'doubled':>8}")
        ok = True
        for tool in TOOLS:
            with self.bench.engine.connect(tool) as c:
                if tool == "busy":
                    c.execute("DELETE FROM events WHERE writer = -1")
                row = next(iter(check(c, self.writers[tool]).values()))
            good = row["lost"] == 0 and row["doubled"] == 0 and not row["wrong"] and not row["other"]
            ok &= good
            say(f"   {tool:8} {row['acknowledged']:13} {row['unknown']:8} {row['found']:9} {row['lost']:5} "
                f"{row['doubled']:8}{'' if good else '   WRONG ' + str(row['wrong'] + row['other'])}")
        moved = {m["tool"] for m in moves}
        if moved != {"counter"} or len(moves) != 2:
            say(f"   WRONG: moves of {sorted(moved)}, {len(moves)} in all; expected two of `counter`")
            ok = False
        return ok


def number(value, digits=2) -> str:
    return "-" if value is None else f"{value:.{digits}f}"


def indent(text: str) -> str:
    return "\n".join("   | " + line for line in text.rstrip().splitlines()) + "\n"


_interrupt = threading.Event()


def wait(seconds: float):
    if _interrupt.wait(seconds):
        raise Interrupted


def keep_running(demo: Demo):
    b = demo.bench
    say(f"\nStill running. Clients: postgres://app@127.0.0.1:{b.hotlane.port}/counter (also /calm, /busy)\n"
        f"Metrics: http://127.0.0.1:{b.hotlane.metrics_port}/metrics\n"
        f"Commands: {program('hotlane')} status --admin-socket {b.hotlane.socket}\n"
        f"Engine ports: {b.engine.ports}; PostgreSQL: port {b.pg.port}\nCtrl-C ends it.")
    _interrupt.wait()


def main() -> int:
    arguments = argparse.ArgumentParser(description="hotlane's demonstration")
    arguments.add_argument("--keep", action="store_true", help="leave it running and print the addresses")
    keep = arguments.parse_args().keep
    for number_ in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number_, lambda *_: _interrupt.set())
    say("== starting a private PostgreSQL, the development engine (a test double) and hotlane")
    with Bench(TOOLS, policies=POLICIES) as bench:
        demo = Demo(bench)
        try:
            bench.hotlane.start()
            demo.run()
            ok = demo.report()
            if keep:
                keep_running(demo)
        except Interrupted:
            say("\ninterrupted; cleaning up")
            return 130
        except Exception as problem:
            say(f"\nFAILED: {problem}")
            log = bench.hotlane.process.output() if bench.hotlane.process else ""
            say("last lines of hotlane's log:\n" + "\n".join(log.splitlines()[-15:]))
            return 1
        finally:
            for writers in demo.writers.values():
                for w in writers:
                    w.halt.set()
    say("\nlost 0, doubled 0: every ledger matches" if ok else "\nA ledger does not match, or the wrong tool moved.")
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())

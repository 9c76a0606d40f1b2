"""The benchmark: rounds over all targets, interleaved, so that what the machine does meanwhile falls on all alike.

Prints medians over the rounds, and ratios of these: to direct for speed, to the bare relay for CPU.
"""
import argparse
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path

from hotlane_test.harness import pool_modes
from hotlane_test.process import make_folder
from hotlane_test.servers import PG_BIN
from targets import Ways
from workloads import idle_clients, pgbench, psql_copy

QUICK = {"rounds": 2, "transactions": 10_000, "results": 300, "copy_mib": 128, "idle_shared": 3000, "idle_own": 200}
FULL = {"rounds": 5, "transactions": 60_000, "results": 1000, "copy_mib": 1024, "idle_shared": 3000, "idle_own": 300}


def prepare(ways: Ways, sizes: dict):
    for database in {t.database for t in ways.targets}:
        subprocess.run([str(PG_BIN / "pgbench"), "-i", "-q", "-s", "1", "-h", "127.0.0.1", "-p", str(ways.pg.port),
                        "-U", "app", database], check=True, capture_output=True, timeout=120)
        ways.pg.execute("CREATE UNLOGGED TABLE sink (t text); ALTER TABLE sink OWNER TO app;"
                        # Nothing is kept: the home's disk is not what is measured.
                        "CREATE FUNCTION drop_it() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';"
                        "CREATE TRIGGER drops BEFORE INSERT ON sink FOR EACH ROW EXECUTE FUNCTION drop_it()", database)
    (ways.folder / "mib.sql").write_text("SELECT repeat('x', 1048576);\n")
    with open(ways.folder / "rows.txt", "wb") as file:
        for _ in range(sizes["copy_mib"] // 2):
            file.write((b"y" * 8191 + b"\n") * 128)
    ways.folder.chmod(0o755)


def workloads(ways: Ways, sizes: dict):
    """(name, unit, run) in the order of one round."""
    folder, mib = ways.folder, sizes["copy_mib"]
    for mode in ("simple", "prepared"):
        for clients in (1, 16, 64):
            yield (f"select {mode}, {clients} clients", "tx",
                   lambda t, m=mode, c=clients: None if m == "prepared" and not t.prepared else
                   pgbench(t, folder, sizes["transactions"], c, "-S", "-M", m))
    yield ("result of 1 MiB, 1 client", "tx",
           lambda t: pgbench(t, folder, sizes["results"], 1, "-f", str(folder / "mib.sql")))
    out = f"COPY (SELECT repeat('x', 8191) FROM generate_series(1, {mib * 128})) TO STDOUT"
    yield (f"copy out of {mib} MiB", "MiB", lambda t: psql_copy(t, out, mib))
    yield (f"copy in of {mib // 2} MiB", "MiB",
           lambda t: psql_copy(t, "COPY sink FROM STDIN", mib // 2, str(folder / "rows.txt")))


def measure(ways: Ways, sizes: dict) -> dict:
    results: dict = {}
    for turn in range(sizes["rounds"]):
        for name, unit, run in workloads(ways, sizes):
            # Each round begins with another one, so that nobody is always the first after a change.
            order = ways.targets[turn % len(ways.targets):] + ways.targets[:turn % len(ways.targets)]
            for target in order:
                done = run(target)
                if done:
                    results.setdefault((name, unit), {}).setdefault(target.name, []).append(done)
    return results


def median(runs, what):
    values = [getattr(r, what) for r in runs if getattr(r, what) is not None]
    return statistics.median(values) if values else None


def ratio(value, base):
    return "" if value is None or not base else f"{value / base:6.2f}"


def table(results: dict, targets) -> list[str]:
    lines = []
    for (name, unit), by_target in results.items():
        lines += ["", f"{name}", f"  {'':22}{unit + '/s':>10} {'/direct':>8}{'p99 ms':>10} {'/direct':>8}"
                                 f"{'cpu us/' + unit:>12} {'/relay':>8}"]
        base = by_target["direct"]
        floor = median(by_target["relay"], "cpu_us")
        for target in targets:
            runs = by_target.get(target.name)
            if not runs:
                lines.append(f"  {target.name:22}{'not supported':>21}")
                continue
            speed, p99, cpu = (median(runs, w) for w in ("per_second", "p99_ms", "cpu_us"))
            lines.append(f"  {target.name:22}{speed:10.0f} {ratio(speed, median(base, 'per_second')):>8}"
                         f"{'' if p99 is None else f'{p99:.2f}':>10} {ratio(p99, median(base, 'p99_ms')):>8}"
                         f"{'' if cpu is None else f'{cpu:.1f}':>12} {ratio(cpu, floor):>8}")
    return lines


def idle(ways: Ways, sizes: dict) -> list[str]:
    lines = ["", "bytes per idle client (resident memory of the proxy)"]
    for target in ways.targets:
        if target.pid is None:
            continue
        count = sizes["idle_shared"] if target.transaction else sizes["idle_own"]
        lines.append(f"  {target.name:22}{idle_clients(target, count):10.0f}   {count} clients"
                     + ("" if target.transaction else ", each with a link of its own"))
    return lines


def main():
    words = argparse.ArgumentParser()
    words.add_argument("--quick", action="store_true")
    words.add_argument("--out")
    words.add_argument("--scale", type=float, default=1.0, help="times as much work, for busy machines 0.1")
    asked = words.parse_args()
    sizes, start = dict(QUICK if asked.quick else FULL), time.monotonic()
    for what in ("transactions", "results", "copy_mib", "idle_shared", "idle_own"):
        sizes[what] = max(2, int(sizes[what] * asked.scale))
    folder = make_folder("hotlane-bench-")
    folder.chmod(0o755)
    ways, lines = Ways(folder, pool_modes()), []

    def say(more: list[str]):
        lines.extend(more)
        print("\n".join(more), flush=True)
        if asked.out:
            Path(asked.out).write_text("\n".join(lines) + "\n")
    try:
        prepare(ways, sizes)
        say([f"{sizes['rounds']} rounds, interleaved; medians; ratios of medians",
             *(f"{t.name}: {t.note}" for t in ways.targets if t.note), *ways.skipped])
        say(table(measure(ways, sizes), ways.targets))
        say(idle(ways, sizes))
        say(["", f"took {time.monotonic() - start:.0f} s"])
    finally:
        ways.close()
        shutil.rmtree(folder, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Runs PostgreSQL's own suites directly and through hotlane, and says where the two differ. See postgres_suites.sh."""
import argparse
import re
import subprocess
import sys
from pathlib import Path

from hotlane_test.harness import Harness
from hotlane_test.process import as_unprivileged, make_folder, wait_until
from hotlane_test.servers import PG_BIN, Postgres


def schedule(asked, folder: Path, port: int, name: str) -> dict[str, bool]:
    """pg_regress or pg_isolation_regress against a port; which tests passed."""
    which = {"regress": ("regress/pg_regress", "regress/parallel_schedule"),
             "isolation": ("isolation/pg_isolation_regress", "isolation/isolation_schedule")}[name]
    source = asked.source / "src/test"
    out = make_folder(f"hotlane-{name}-")
    done = subprocess.run(as_unprivileged([
        str(asked.pgxs / "src/test" / which[0]), f"--inputdir={source / name}", f"--outputdir={out}",
        f"--bindir={PG_BIN}", f"--dlpath={asked.libraries}",
        f"--schedule={source / which[1]}", "--host=127.0.0.1", f"--port={port}", "--user=postgres",
        "--max-connections=10"]), cwd=out, capture_output=True, text=True,
        timeout=3600)
    found = dict(re.findall(r"^(?:test|\s)\s+(\S+)\s+\.\.\. (ok|FAILED)", done.stdout, re.M))
    if not re.search(r"All \d+ tests passed|of \d+ tests failed", done.stdout):
        raise RuntimeError(done.stdout[-2000:] + done.stderr[-2000:])
    (folder / f"{name}.log").write_text(done.stdout + done.stderr)
    if (out / "regression.diffs").exists():
        (folder / f"{name}.diffs").write_bytes((out / "regression.diffs").read_bytes())
    return {test: said == "ok" for test, said in found.items()}


def pipeline(asked, _folder, port: int, _name) -> dict[str, bool]:
    program = asked.libraries / "libpq_pipeline"
    names = subprocess.run([str(program), "tests"], capture_output=True, text=True, check=True).stdout.split()
    dsn = f"host=127.0.0.1 port={port} user=postgres dbname=postgres"
    return {name: subprocess.run([str(program), "-r", "700", name, dsn], capture_output=True).returncode == 0
            for name in names}


def main() -> int:
    words = argparse.ArgumentParser()
    for name in ("source", "libraries", "pgxs"):
        words.add_argument(f"--{name}", type=Path, required=True)
    words.add_argument("suites", nargs="+", choices=["regress", "isolation", "pipeline"])
    asked = words.parse_args()
    worse = 0
    for name in asked.suites:
        run, results = (pipeline if name == "pipeline" else schedule), {}
        for way in ("directly", "through hotlane"):
            folder = make_folder("hotlane-suites-")
            pg = Postgres(folder, settings={"fsync": "off", "max_prepared_transactions": 10,
                                            "log_min_messages": "fatal"}).start()
            hotlane = None
            try:
                if way != "directly":
                    hotlane = Harness("127.0.0.1", pg.port, "threads", 2, "database", "*", "isolation",
                                      "read_committed")
                results[way] = run(asked, folder, hotlane.port if hotlane else pg.port, name)
            finally:
                if hotlane:
                    wait_until(lambda h=hotlane: h.stats()["connections"] == 0, 30, "all connections are gone")
                    hotlane.close()
                pg.stop("immediate")
            passed = sum(results[way].values())
            print(f"{name}, {way}: {passed} of {len(results[way])}   ({folder})", flush=True)
        lost = [t for t, ok in results["directly"].items() if ok and not results["through hotlane"].get(t)]
        print(f"{name}: worse through hotlane: {' '.join(lost) or 'none'}", flush=True)
        worse += len(lost)
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())

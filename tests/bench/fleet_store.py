"""What a fleet costs its store: light clients and tools on a private PostgreSQL.
   tests/bench/fleet.sh [CLIENTS [TOOLS [SECONDS]]]      default 500 2000 30"""
import json
import os
import subprocess
import sys

from hotlane_test.process import clear_folder, make_folder, program
from hotlane_test.servers import Postgres, end_servers

LEASE_MS = 9_000


def cpu_s(postmaster: int) -> float:
    """Processor seconds of a server and its children so far, those that have ended included."""
    ticks = 0
    pids = [postmaster] + [int(p) for p in subprocess.run(["pgrep", "-P", str(postmaster)], capture_output=True,
                                                          text=True).stdout.split()]
    for pid in pids:
        try:
            fields = open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()
        except OSError:
            continue
        ticks += int(fields[11]) + int(fields[12])
        if pid == postmaster:
            ticks += int(fields[13]) + int(fields[14])
    return ticks / os.sysconf("SC_CLK_TCK")


def main():
    clients, tools, seconds = (int(sys.argv[i]) if len(sys.argv) > i else d for i, d in ((1, 500), (2, 2000), (3, 30)))
    folder = make_folder("hotlane-fleet-bench-")
    server = Postgres(folder, settings={"max_connections": clients + 20})
    try:
        server.start()
        server.create("app", "state")
        sizes = [str(n) for n in (clients, tools, seconds, LEASE_MS)]
        bench = subprocess.Popen([program("tests/bench/bench-fleet-store"), server.dsn("state", "app"), *sizes],
                                 stdout=subprocess.PIPE, text=True)
        joined = json.loads(bench.stdout.readline())
        began = cpu_s(server.process.pid)
        done = json.loads(bench.stdout.readline())
        used = cpu_s(server.process.pid) - began
        bench.wait(120)
        print(f"{joined['clients']} sidecars, {tools} tools, lease {LEASE_MS} ms, "
              f"a change every 200 ms for {seconds} s")
        print(f"roll-out            {joined['rollout_s']:.1f} s until all have joined and know every tool")
        print(f"statements          {done['statements_per_s']:.0f} a second, {done['failures']} failed")
        print(f"processor of store  {used / seconds:.2f} cores")
        print(f"a change is known   p50 {done['p50_ms']:.0f} ms, p99 {done['p99_ms']:.0f} ms, "
              f"last {done['max_ms']:.0f} ms ({done['seen']} of {done['changes'] * clients})")
    finally:
        end_servers([server])
        clear_folder(folder)


if __name__ == "__main__":
    main()

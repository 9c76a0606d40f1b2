"""One run of one workload over one target: what was done, how long the slowest hundredth took, what it cost."""
import os
import re
import resource
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from hotlane_test.pgwire import Wire
from hotlane_test.process import wait_until
from hotlane_test.servers import PG_BIN
from targets import Target


@dataclass
class Run:
    per_second: float                  # transactions, or MiB
    p99_ms: float | None = None
    cpu_us: float | None = None        # of the proxy, per transaction or MiB


def cpu_seconds(pid: int | None) -> float:
    """User and system time of all threads. schedstat counts nanoseconds where stat counts hundredths."""
    if pid is None:
        return 0.0
    try:
        return sum(int((task / "schedstat").read_text().split()[0])
                   for task in Path(f"/proc/{pid}/task").iterdir()) / 1e9
    except (FileNotFoundError, IndexError, ValueError):
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident(pid: int) -> int:
    text = Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+)", text).group(1)) * 1024


def address(target: Target) -> list[str]:
    return ["-h", "127.0.0.1", "-p", str(target.port), "-U", "app"]


def pgbench(target: Target, folder: Path, transactions: int, clients: int, *options) -> Run:
    """So many transactions of all clients together. Not so many seconds: those would count the connecting, too."""
    before = cpu_seconds(target.pid)
    done = subprocess.run([str(PG_BIN / "pgbench"), "-n", *address(target), "-c", str(clients), "-j", "1",
                           "-t", str(max(1, transactions // clients)), "-l", "--log-prefix", str(folder / "pgbench"),
                           *options, target.database], capture_output=True, text=True, timeout=600)
    spent = cpu_seconds(target.pid) - before
    times = []
    for log in folder.glob("pgbench.*"):
        times += [int(line.split()[2]) for line in log.read_text().splitlines()]
        log.unlink()
    found = re.search(r"tps = ([\d.]+)", done.stdout)
    if done.returncode != 0 or not found or not times:
        raise RuntimeError(f"{target.name}: {done.stdout[-400:]} {done.stderr[-800:]}")
    times.sort()
    cpu = None if target.pid is None else spent * 1e6 / len(times)
    return Run(float(found.group(1)), times[min(len(times) - 1, len(times) * 99 // 100)] / 1000, cpu)


def psql_copy(target: Target, sql: str, mib: int, source: str | None = None) -> Run:
    before, start = cpu_seconds(target.pid), time.monotonic()
    with open(source or os.devnull, "rb") as given:
        subprocess.run([str(PG_BIN / "psql"), "-X", "-q", *address(target), "-d", target.database, "-c", sql],
                       stdin=given, stdout=subprocess.DEVNULL, check=True, timeout=300)
    took = time.monotonic() - start
    cpu = None if target.pid is None else (cpu_seconds(target.pid) - before) * 1e6 / mib
    return Run(mib / took, None, cpu)


def idle_clients(target: Target, count: int) -> float:
    """Bytes that one idle client, which has asked one thing, adds to the proxy."""
    low, high = resource.getrlimit(resource.RLIMIT_NOFILE)
    if low < count + 200:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(high, count + 500), high))
    first = Wire(target.port, 60).login("app", target.database)
    first.run("SELECT 1")
    before = resident(target.pid)
    clients = []
    for _ in range(count):
        clients.append(Wire(target.port, 60).login("app", target.database))
        clients[-1].run("SELECT 1")
    after, sockets = resident(target.pid), others(target.pid)
    for client in clients:
        client.drop()
    first.run("SELECT 1")
    first.drop()
    wait_until(lambda: others(target.pid) <= sockets - count, 60, "they are gone")
    return (after - before) / count


def others(pid: int) -> int:
    """Sockets of the process, about."""
    return len(os.listdir(f"/proc/{pid}/fd"))

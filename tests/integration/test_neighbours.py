"""While one tool is held for its move, the clients of another do not notice."""
import re
import threading
import time

from hotlane_test.process import wait_until
from hotlane_test.servers import Bench

WRITES = 100


def p99_of_writes(connection) -> float:
    took = []
    for _ in range(WRITES):
        began = time.monotonic()
        connection.execute("UPDATE t SET n = n + 1 WHERE id = 1")
        took.append(time.monotonic() - began)
    return sorted(took)[WRITES * 99 // 100]


def figure(bench, name: str, tool: str) -> float:
    found = re.search(rf'^{name}{{tool="{tool}"}} (\S+)$', bench.hotlane.metrics(), re.M)
    return float(found.group(1)) if found else 0.0


def test_a_hold_of_one_tool_is_not_noticed_by_another():
    with Bench(["shop", "other"], commit_latency="1ms",
               policies="policies: {default: {rails: {hold_max: 10s}}}\n", extra_tool="    hold: 10s\n") as b:
        b.hotlane.start()
        for tool in b.tools:
            wait_until(lambda: b.hotlane.where(tool)["served"], 30, f"{tool} is served")
            with b.hotlane.connect(tool) as c:
                c.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER)")
                c.execute("INSERT INTO t VALUES (1, 0)")
        other, straggler, waiter = (b.hotlane.connect(t) for t in ("other", "shop", "shop"))
        quiet = p99_of_writes(other)
        straggler.execute("BEGIN")              # the move waits for its end, and holds the tool meanwhile
        straggler.execute("SELECT n FROM t")
        ended = []
        mover = threading.Thread(target=lambda: ended.append(b.hotlane.route("shop", "postgres")))
        mover.start()
        wait_until(lambda: '"phase":"hold"' in b.hotlane.log.read_text() or ended, 60, "it is held")
        held = threading.Thread(target=waiter.execute, args=("UPDATE t SET n = n + 1 WHERE id = 1",))
        held.start()
        wait_until(lambda: figure(b, "hotlane_held_clients", "shop") == 1 or ended, 10, "a client is held")
        during = p99_of_writes(other)
        assert not ended and figure(b, "hotlane_held_clients", "shop") == 1, "the hold ended before the measurement"
        straggler.execute("COMMIT")
        held.join(60)
        mover.join(60)
        assert ended[0].returncode == 0, ended[0].stdout + ended[0].stderr
        assert figure(b, "hotlane_hold_seconds_count", "shop") >= 1
        assert figure(b, "hotlane_hold_seconds_count", "other") == 0
        print(f"\np99 of the other tool's writes: {quiet * 1e3:.1f} ms before, {during * 1e3:.1f} ms during the hold")
        assert other.execute("SELECT n FROM t").fetchone()[0] == 2 * WRITES
        assert waiter.execute("SELECT n FROM t").fetchone()[0] == 1
        for c in (other, straggler, waiter):
            c.close()

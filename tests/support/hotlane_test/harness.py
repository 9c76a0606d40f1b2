"""The data plane alone (net-harness) in front of one home."""
import json
import os
import subprocess

import psycopg

from .process import program, wait_until


def pool_modes() -> list[str]:
    return os.environ.get("HOTLANE_POOL_MODES", "session transaction").split()


class Harness:
    def __init__(self, host, port: int, *options, pool: str = "session"):
        command = [program("net-harness"), str(host), str(port), *map(str, options)]
        if pool != "session":
            command += ["pool", pool]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.addresses = []
        for line in self.process.stdout:
            if line.strip() == "ready":
                break
            self.addresses.append(line.split()[1])
        self.port = int(self.addresses[0].rsplit(":", 1)[1])

    def tell(self, line: str) -> str:
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().strip()

    def stats(self) -> dict:
        return json.loads(self.tell("stats"))

    def dsn(self, more="") -> str:
        return f"host=127.0.0.1 port={self.port} dbname=postgres user=postgres connect_timeout=10 {more}"

    def connect(self, **options):
        return psycopg.connect(self.dsn(), autocommit=True, **options)

    def close(self):
        """Every test ends with this: nothing may be left inside, and the end is clean."""
        wait_until(lambda: self.stats()["connections"] == 0, 10, "all connections are gone")
        last = self.stats()
        self.process.stdin.close()
        self.process.stdout.read()
        assert self.process.wait(30) == 0
        for gauge in ("inside", "waiting", "sessions", "before_login", "cancels_in_flight", "links_lent",
                      "link_waiters", "pinned"):
            assert last[gauge] == 0, (gauge, last)

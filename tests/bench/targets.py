"""What is measured: ways to the same PostgreSQL, each a port, a database and the process that is charged."""
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from hotlane_test.process import Process, build_dir, free_port, wait_until
from hotlane_test.servers import DevEngine, Hotlane, Postgres

LINKS = 20        # of a transaction pool, the same for all


@dataclass
class Target:
    name: str
    port: int
    database: str = "bench"
    pid: int | None = None         # whose CPU and memory count; None: nobody's (direct)
    transaction: bool = False      # a transaction pool
    prepared: bool = True          # takes prepared statements
    note: str = ""


def listens(port: int) -> bool:
    import socket
    with socket.create_connection(("127.0.0.1", port), timeout=1):
        return True


class Ways:
    """All targets, started; `skipped` says what is missing and why."""

    def __init__(self, folder: Path, modes: list[str]):
        self.folder, self.targets, self.skipped, self.processes, self.hotlanes = folder, [], [], [], []
        self.pg = self.engine = None
        try:
            self._start_all(modes)
        except BaseException:
            self.close()
            raise

    def _start_all(self, modes: list[str]):
        folder = self.folder
        self.pg = Postgres(folder, settings={"fsync": "off", "max_connections": 500, "log_min_messages": "fatal",
                                             "shared_buffers": "128MB"}).start()
        self.pg.create("app", "bench", *modes)
        self.targets.append(Target("direct", self.pg.port))
        self._relay()
        self._haproxy()
        for mode in ("session", "transaction"):
            self._pgbouncer(mode)
        self.engine = DevEngine(folder, modes).start()
        for mode in modes:
            self._hotlane(mode)

    def _start(self, name: str, command: list[str]) -> Process:
        process = Process(command, self.folder / f"{name}.log")
        self.processes.append(process)
        return process

    def _relay(self):
        relay = self._start("relay", [str(build_dir() / "tests/bench/bench-relay"), str(self.pg.port)])
        wait_until(lambda: "listening" in relay.output(), 20, "the relay listens")
        port = int(relay.output().split("listening ")[1].split()[0])
        self.targets.append(Target("relay", port, pid=relay.pid, note="bare epoll, the floor"))

    def _haproxy(self):
        path = shutil.which("haproxy", path="/usr/sbin:/usr/bin:/sbin:/bin")
        if not path:
            self.skipped.append("haproxy is not installed (deploy/install.sh bench): skipped")
            return
        port = free_port()
        config = self.folder / "haproxy.cfg"
        config.write_text(f"global\n  nbthread 1\n  maxconn 6000\ndefaults\n  mode tcp\n  timeout connect 5s\n"
                          f"  timeout client 1h\n  timeout server 1h\nlisten pg\n  bind 127.0.0.1:{port}\n"
                          f"  server pg 127.0.0.1:{self.pg.port}\n")
        process = self._start("haproxy", [path, "-db", "-f", str(config)])
        wait_until(lambda: listens(port), 20, "haproxy listens")
        self.targets.append(Target("haproxy", port, pid=process.pid, note="tcp mode, one thread"))

    def _pgbouncer(self, mode: str):
        path = shutil.which("pgbouncer", path="/usr/sbin:/usr/bin:/sbin:/bin")
        if not path:
            if mode == "session":
                self.skipped.append("pgbouncer is not installed (deploy/install.sh bench): skipped")
            return
        said = subprocess.run([path, "--version"], capture_output=True, text=True).stdout
        version = tuple(int(x) for x in re.search(r"(\d+)\.(\d+)", said).groups())
        prepared = mode == "session" or version >= (1, 21)
        port, name = free_port(), f"pgbouncer-{mode}"
        users = self.folder / "users.txt"
        users.write_text('"app" ""\n')
        config = self.folder / f"{name}.ini"
        config.write_text(
            f"[databases]\nbench = host=127.0.0.1 port={self.pg.port}\n[pgbouncer]\nlisten_addr = 127.0.0.1\n"
            f"listen_port = {port}\nunix_socket_dir =\nauth_type = trust\nauth_file = {users}\npool_mode = {mode}\n"
            f"max_client_conn = 5000\ndefault_pool_size = {400 if mode == 'session' else LINKS}\n"
            f"ignore_startup_parameters = extra_float_digits\nlog_connections = 0\nlog_disconnections = 0\n"
            + ("max_prepared_statements = 200\n" if version >= (1, 21) else ""))
        process = self._start(name, [path, str(config)])
        wait_until(lambda: listens(port), 20, "pgbouncer listens")
        number = ".".join(map(str, version))
        self.targets.append(Target(f"pgbouncer {mode}", port, pid=process.pid, transaction=mode == "transaction",
                                   prepared=prepared, note=f"PgBouncer {number}"))
        if not prepared:
            self.skipped.append(f"PgBouncer {number} has no prepared statements in transaction mode: skipped")

    def _hotlane(self, mode: str):
        """The tool is named after its pool mode, and lives on PostgreSQL."""
        folder = self.folder / f"hotlane-{mode}"
        folder.mkdir()
        shutil.copystat(self.folder, folder)
        shutil.chown(folder, self.folder.owner(), self.folder.group())
        pool = f"    pool: {{mode: {mode}, max: {LINKS}}}\n"
        hotlane = Hotlane(folder, (
            "limits: {client_connections: 5000, clients_before_login: 4000}\n"
            f"postgres:\n  main: {{address: 127.0.0.1:{self.pg.port}, admin: {{user: postgres}}, "
            "require_durable: false}\n"
            f"tools:\n  - name: {mode}\n    engine: {{kind: twill, address: 127.0.0.1:{self.engine.ports[mode]}}}\n"
            f"    postgres: {{server: main, database: {mode}, role: app}}\n{pool}"))
        hotlane.start()
        self.hotlanes.append(hotlane)
        done = hotlane.route(mode, "postgres")
        if done.returncode != 0:
            raise RuntimeError(done.stdout + done.stderr)
        self.targets.append(Target(f"hotlane {mode}", hotlane.port, database=mode, pid=hotlane.process.pid,
                                   transaction=mode == "transaction"))

    def close(self):
        for server in [*self.hotlanes, self.engine]:
            if server:
                server.stop()
        for process in self.processes:
            process.kill()
        if self.pg:
            self.pg.stop("immediate")

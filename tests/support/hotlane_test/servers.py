"""A private PostgreSQL, the development engine, and hotlane itself."""
import json
import os
import re
import signal
import subprocess
from pathlib import Path

import psycopg

from .process import Process, as_unprivileged, clear_folder, free_port, make_folder, program, wait_until

PG_BIN = Path(os.environ.get("PG_BIN", "/usr/lib/postgresql/15/bin"))


OBSERVE = """policies:
  default:
    mode: observe
    rails: {hold_max: 5s}
"""


class Postgres:
    """A private cluster in a folder of its own. Superuser `postgres`; trust unless scram=True."""

    def __init__(self, folder: Path, port: int | None = None, settings: dict | None = None,
                 scram_password: str | None = None):
        self.folder, self.port = folder, port or free_port()
        self.data = folder / f"pg{self.port}"
        self.process: Process | None = None
        command = [str(PG_BIN / "initdb"), "-D", str(self.data), "-U", "postgres", "-E", "UTF8",
                   "--locale=C.UTF-8", "-N"]
        if scram_password:
            pw = folder / f"pw{self.port}"
            pw.write_text(scram_password)
            pw.chmod(0o644)
            command += ["--pwfile", str(pw), "-A", "scram-sha-256"]
        else:
            command += ["-A", "trust"]
        subprocess.run(as_unprivileged(command), check=True, stdout=subprocess.DEVNULL, cwd="/")
        self.settings = {"listen_addresses": "127.0.0.1", "unix_socket_directories": str(folder),
                         "port": self.port, "max_connections": 200, "shared_buffers": "64MB",
                         "wal_level": "logical", "log_min_messages": "warning", **(settings or {})}
        self.password = scram_password

    def start(self):
        args = [str(PG_BIN / "postgres"), "-D", str(self.data)]
        for name, value in self.settings.items():
            args += ["-c", f"{name}={value}"]
        self.process = Process(args, self.folder / f"pg{self.port}.log")
        wait_until(lambda: self._answers(), 30, "PostgreSQL answers")
        return self

    def _answers(self) -> bool:
        if not self.process.alive():
            raise RuntimeError("PostgreSQL ended: " + self.process.output()[-1500:])
        with self.connect():
            return True

    def dsn(self, dbname="postgres", user="postgres") -> str:
        word = f" password={self.password}" if self.password else ""
        return f"host=127.0.0.1 port={self.port} dbname={dbname} user={user} connect_timeout=5{word}"

    def connect(self, dbname="postgres", user="postgres", autocommit=True):
        return psycopg.connect(self.dsn(dbname, user), autocommit=autocommit)

    def execute(self, sql: str, dbname="postgres"):
        with self.connect(dbname) as c:
            cursor = c.execute(sql)
            return cursor.fetchall() if cursor.description else None

    def create(self, role: str, *databases: str):
        with self.connect() as c:
            if not c.execute("select 1 from pg_roles where rolname=%s", (role,)).fetchone():
                c.execute(f'create role "{role}" login')
            for name in databases:
                c.execute(f'create database "{name}" owner "{role}"')

    def standby(self):
        """A streaming standby of this cluster, started; asynchronous, so a promotion may lose a tail."""
        made = object.__new__(Postgres)
        made.folder, made.port, made.password = self.folder, free_port(), self.password
        made.data = self.folder / f"pg{made.port}"
        subprocess.run(as_unprivileged([str(PG_BIN / "pg_basebackup"), "-D", str(made.data), "-R", "-c", "fast",
                                        "-h", "127.0.0.1", "-p", str(self.port), "-U", "postgres"]),
                       check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd="/")
        made.settings = {**self.settings, "port": made.port}
        made.process = None
        return made.start()

    def promote(self):
        self.execute("SELECT pg_promote()")

    def stop(self, mode: str = "fast"):
        if self.process and self.process.alive():
            number = {"smart": signal.SIGTERM, "fast": signal.SIGINT, "immediate": signal.SIGQUIT}[mode]
            self.process.signal(number)
            self.process.wait(60)

    def kill(self):
        """kill -9 of the postmaster; its children follow when they notice."""
        self.process.kill()
        pid_file = self.data / "postmaster.pid"
        # Until the last backend has gone the shared memory is in use and a start is refused.
        wait_until(lambda: subprocess.run(["fuser", "-s", str(self.data / "PG_VERSION")],
                                          stderr=subprocess.DEVNULL).returncode != 0, 20, "backends ended")
        pid_file.unlink(missing_ok=True)


class DevEngine:
    """The development engine with one port a database."""

    def __init__(self, folder: Path, databases: list[str], commit_latency: str = "5ms",
                 scan_cost: str | None = None, ports: dict[str, int] | None = None):
        self.folder, self.databases = folder, databases
        self.ports = ports or {name: free_port() for name in databases}
        self.args = ["--data", str(folder), "--commit-latency", commit_latency]
        if scan_cost:
            self.args += ["--scan-cost", scan_cost]
        self.process: Process | None = None
        self.starts = 0

    def start(self):
        command = [program("hotlane-devengine"), *self.args]
        for name in self.databases:
            command += ["--database", f"{name}:{self.ports[name]}"]
        self.starts += 1
        self.process = Process(command, self.folder / f"engine{self.starts}.log")
        wait_until(lambda: "ready" in self.process.output() or self._ended(), 20, "the engine is ready")
        return self

    def _ended(self):
        if not self.process.alive():
            raise RuntimeError("the development engine ended: " + self.process.output()[-1500:])

    def dsn(self, database: str, user="app") -> str:
        return f"host=127.0.0.1 port={self.ports[database]} dbname={database} user={user} connect_timeout=5"

    def connect(self, database: str):
        return psycopg.connect(self.dsn(database), autocommit=True)

    def execute(self, database: str, sql: str):
        with self.connect(database) as c:
            cursor = c.execute(sql)
            return cursor.fetchall() if cursor.description else None

    def stats(self, database: str) -> dict[str, int]:
        return {k: int(v) for k, v in self.execute(database, "SHOW twill.stats")}

    def stop(self):
        if self.process and self.process.alive():
            self.process.stop()

    def kill(self):
        self.process.kill()


class Hotlane:
    """The program under test, with a configuration file of the test's own."""

    def __init__(self, folder: Path, config: str, port: int | None = None, state: str | None = None):
        self.folder = folder
        self.state_line = state    # of a fleet: what stands behind `state:`
        self.port = port or free_port()
        self.metrics_port = free_port()
        self.socket = folder / "admin.sock"
        self.state = folder / "state.db"
        self.config_path = folder / "hotlane.yaml"
        self.config_path.write_text(self.header() + config)
        self.config_path.chmod(0o644)
        self.process: Process | None = None
        self.starts = 0

    def header(self) -> str:
        return (f"version: 1\nlisten:\n  - tcp: 127.0.0.1:{self.port}\nadmin: {{socket: {self.socket}}}\n"
                f"metrics: {{listen: 127.0.0.1:{self.metrics_port}}}\n"
                f"state: {self.state_line or '{file: %s}' % self.state}\n"
                "log: {level: info, format: json}\n")

    def start(self, env: dict | None = None, wait_ready: bool = True):
        self.starts += 1
        self.log = self.folder / f"hotlane{self.starts}.log"
        self.process = Process([program("hotlane"), "run", "--config", str(self.config_path)], self.log, env)
        if wait_ready:
            wait_until(lambda: self._accepts(), 30, "hotlane is ready")
        return self

    def _accepts(self) -> bool:
        if not self.process.alive():
            raise RuntimeError("hotlane ended: " + self.process.output()[-3000:])
        import urllib.request
        with urllib.request.urlopen(f"http://127.0.0.1:{self.metrics_port}/readyz", timeout=2) as answer:
            return answer.status == 200

    def dsn(self, database: str, user="app") -> str:
        return f"host=127.0.0.1 port={self.port} dbname={database} user={user} connect_timeout=10"

    def connect(self, database: str, user="app", **more):
        return psycopg.connect(self.dsn(database, user), autocommit=True, **more)

    def cli(self, *words: str, check: bool = True, timeout: float = 120) -> subprocess.CompletedProcess:
        done = subprocess.run([program("hotlane"), *words, "--admin-socket", str(self.socket)],
                              capture_output=True, text=True, timeout=timeout)
        if check and done.returncode != 0:
            raise RuntimeError(f"hotlane {' '.join(words)}: exit {done.returncode}\n{done.stdout}{done.stderr}")
        return done

    def json(self, *words: str, timeout: float = 120) -> dict:
        return json.loads(self.cli(*words, "-o", "json", timeout=timeout).stdout)

    def where(self, tool: str) -> dict:
        return self.json("where", tool)

    def route(self, tool: str, home: str, timeout: float = 180) -> subprocess.CompletedProcess:
        return self.cli("route", tool, "--to", home, "--execute", "--wait", check=False, timeout=timeout)

    def metrics(self) -> str:
        import urllib.request
        with urllib.request.urlopen(f"http://127.0.0.1:{self.metrics_port}/metrics", timeout=10) as r:
            return r.read().decode()

    def stop(self):
        if self.process and self.process.alive():
            return self.process.stop(40)

    def kill(self):
        self.process.kill()


def end_servers(servers):
    """Ends what of it runs, in this order; None stands for what was never started."""
    for server in servers:
        if server and server.process and server.process.alive():
            try:
                server.stop()
            except Exception:
                server.process.kill()


class Bench:
    """One PostgreSQL, one engine, one hotlane in a folder; everything ends with the `with` block."""

    def __init__(self, tools: list[str], policy: str = "default", commit_latency="5ms", scan_cost=None,
                 policies: str = "", extra_tool: str = "", pg_settings=None, config_more: str = "",
                 gate=None):
        self.folder = make_folder("hotlane-test-")
        self.tools, self.policy_name = tools, policy
        try:
            self.pg = Postgres(self.folder, settings=pg_settings).start()
            self.pg.create("app", *tools)
            self.engine = DevEngine(self.folder, tools, commit_latency, scan_cost).start()
            self.gates = {t: gate(self.engine.ports[t]) for t in tools} if gate else {}
            self.hotlane = Hotlane(self.folder, self._config(policies, extra_tool) + config_more)
        except BaseException:
            self.close()
            raise

    def _config(self, policies: str, extra: str) -> str:
        text = ("postgres:\n  main: {address: 127.0.0.1:%d, admin: {user: postgres}}\n" % self.pg.port)
        text += policies + "tools:\n"
        for t in self.tools:
            port = self.gates[t].port if t in self.gates else self.engine.ports[t]
            text += (f"  - name: {t}\n    match: {{database: {t}}}\n"
                     f"    engine: {{kind: twill, address: 127.0.0.1:{port}}}\n"
                     f"    postgres: {{server: main, database: {t}, role: app}}\n"
                     f"    policy: {self.policy_name}\n{extra}")
        return text

    def close(self):
        end_servers(getattr(self, name, None) for name in ("hotlane", "engine", "pg"))
        for gate in getattr(self, "gates", {}).values():
            gate.close()
        clear_folder(self.folder)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

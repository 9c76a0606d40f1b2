"""Hostile and unlucky surroundings: floods, few open files, a full disk, roles and secrets that change."""
import json
import os
import shutil
import socket
import subprocess
import urllib.request

import psycopg
import pytest

from hotlane_test.process import Process, make_folder, program, wait_until
from hotlane_test.servers import Bench, DevEngine, Hotlane, Postgres

ADMIN, TOOL, RENEWED = "adm1n-Zq7", "t00l-Zq7", "renewed-Zq7"


class Secrets:
    """hotlane with passwords in files, on a PostgreSQL that asks for them."""

    def __init__(self):
        self.folder = make_folder("hotlane-attack-")
        self.hotlane = self.engine = self.pg = None
        try:
            self.pg = Postgres(self.folder, scram_password=ADMIN).start()
            self.sql(f"CREATE ROLE app LOGIN PASSWORD '{TOOL}'")
            self.sql("CREATE DATABASE shop OWNER app")
            self.engine = DevEngine(self.folder, ["shop"]).start()
            self.write("admin.pw", ADMIN)
            self.write("tool.pw", TOOL)
            self.hotlane = Hotlane(self.folder, f"""
postgres:
  main: {{address: 127.0.0.1:{self.pg.port}, admin: {{user: postgres, password: {{file: {self.folder}/admin.pw}}}}}}
pool: {{mode: session}}   # so that each client logs in
policies: {{default: {{rails: {{hold_max: 5s}}}}}}
tools:
  - name: shop
    engine: {{kind: twill, address: 127.0.0.1:{self.engine.ports['shop']}}}
    postgres: {{server: main, database: shop, role: app, password: {{file: {self.folder}/tool.pw}}}}
""").start()
            wait_until(lambda: self.hotlane.where("shop")["served"], 30, "served")
            with self.hotlane.connect("shop") as c:
                c.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER NOT NULL)")
                c.execute("INSERT INTO t VALUES (1, 1)")
        except BaseException:
            self.close()
            raise

    def sql(self, text):
        self.pg.execute(text)

    def write(self, name, text):
        path = self.folder / name
        path.write_text(text + "\n")
        path.chmod(0o644)

    def count(self) -> int:
        with self.hotlane.connect("shop") as c:
            return c.execute("SELECT count(*) FROM t").fetchone()[0]

    def close(self):
        for server in (self.hotlane, self.engine, self.pg):
            if server:
                server.stop()
        shutil.rmtree(self.folder, ignore_errors=True)


@pytest.fixture(scope="module")
def secrets():
    s = Secrets()
    yield s
    s.close()


def test_a_role_that_may_not_log_in_stops_the_move(secrets):
    secrets.write("tool.pw", "wrong-Zq7")
    refused = secrets.hotlane.route("shop", "postgres")
    assert refused.returncode == 6 and "role_login" in refused.stderr, refused.stderr
    secrets.write("tool.pw", TOOL)
    secrets.sql("ALTER ROLE app NOLOGIN")
    refused = secrets.hotlane.route("shop", "postgres")
    assert refused.returncode == 6 and "not permitted to log in" in refused.stderr, refused.stderr
    secrets.sql("ALTER ROLE app LOGIN")
    assert secrets.hotlane.where("shop")["home"] == "engine" and secrets.count() == 1


def test_a_secret_that_cannot_be_read_is_named(secrets):
    (secrets.folder / "admin.pw").unlink()
    refused = secrets.hotlane.route("shop", "postgres")
    assert refused.returncode == 6 and f"{secrets.folder}/admin.pw" in refused.stderr
    secrets.write("admin.pw", ADMIN)


def test_time_limits_of_the_admin_role_do_not_break_a_move(secrets):
    limits = ("statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout")
    for name in limits:
        secrets.sql(f"ALTER ROLE postgres IN DATABASE shop SET {name} = '1ms'")
    for home in ("postgres", "engine"):
        done = secrets.hotlane.route("shop", home)
        assert done.returncode == 0, done.stderr
    for name in limits:
        secrets.sql(f"ALTER ROLE postgres IN DATABASE shop RESET {name}")


def test_a_renewed_password_is_in_force_after_a_reload(secrets):
    assert secrets.hotlane.route("shop", "postgres").returncode == 0
    with secrets.hotlane.connect("shop") as old:
        old.execute("SELECT 1")
        secrets.sql(f"ALTER ROLE app PASSWORD '{RENEWED}'")
        with pytest.raises(psycopg.OperationalError):
            secrets.count()
        secrets.write("tool.pw", RENEWED)
        assert secrets.hotlane.cli("reload").returncode == 0
        assert secrets.count() == 1
        assert old.execute("SELECT count(*) FROM t").fetchone() == (1,)  # its link stayed
    assert secrets.hotlane.route("shop", "engine").returncode == 0


def test_no_secret_is_told(secrets):
    h = secrets.hotlane
    told = [h.process.output(), h.metrics(), secrets.pg.process.output(),
            open(f"/proc/{h.process.pid}/cmdline").read(),
            *[json.dumps(h.json(*words)) for words in (["status"], ["tools"], ["explain", "shop"], ["moves"])],
            subprocess.run([program("hotlane"), "check", str(h.config_path), "--effective"],
                           capture_output=True, text=True).stdout,
            *[f.read_bytes().decode("latin1") for f in secrets.folder.glob("state.db*")]]
    for word in (ADMIN, TOOL, RENEWED, "wrong-Zq7"):
        assert not [text for text in told if word in text], word


# ---- floods

def test_slow_clients_keep_neither_operator_nor_probe_out(secrets):
    slow = []
    for _ in range(150):
        s = socket.create_connection(("127.0.0.1", secrets.hotlane.metrics_port))
        s.sendall(b"GET /metrics HTTP/1.1\r\nX: ")
        slow.append(s)
    try:
        assert secrets.hotlane.cli("status").returncode == 0
        with urllib.request.urlopen(f"http://127.0.0.1:{secrets.hotlane.metrics_port}/livez", timeout=5) as r:
            assert r.status == 200
    finally:
        for s in slow:
            s.close()


def test_the_soft_limit_of_open_files_is_raised(secrets):
    limits = open(f"/proc/{secrets.hotlane.process.pid}/limits").read()
    soft, hard = next(line for line in limits.splitlines() if line.startswith("Max open files")).split()[3:5]
    assert soft == hard


def test_clients_cannot_use_up_the_open_files():
    with Bench(["shop"]) as b:
        wrapper = b.folder / "few-files"
        wrapper.write_text(f"#!/bin/sh\nulimit -S -n 256; ulimit -H -n 256\n"
                           f"exec {program('hotlane')} run --config {b.hotlane.config_path}\n")
        wrapper.chmod(0o755)
        b.hotlane.log = b.folder / "few.log"
        b.hotlane.process = Process([str(wrapper)], b.hotlane.log)
        wait_until(lambda: b.hotlane.where("shop")["served"], 30, "served")
        assert "256 open files are allowed" in b.hotlane.process.output()
        clients = []
        try:
            with pytest.raises(psycopg.OperationalError):
                while len(clients) < 256:
                    clients.append(b.hotlane.connect("shop"))
            assert len(clients) >= 70
            assert b.hotlane.cli("status").returncode == 0
            assert b.hotlane.json("route", "shop", "--to", "postgres")["would_move"] is True
        finally:
            for c in clients:
                c.close()


# ---- the state file's disk

@pytest.mark.skipif(os.geteuid() != 0, reason="mounts a small file system")
def test_a_full_disk_forgets_no_constraint(tmp_path):
    disk = tmp_path / "small"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1200k,mode=0777", "tmpfs", str(disk)]).returncode:
        pytest.skip("may not mount")
    os.chmod(tmp_path, 0o755)
    for folder in list(tmp_path.parents)[:3]:
        if folder != folder.parent and str(folder) != "/tmp":
            os.chmod(folder, 0o755)
    try:
        with Bench(["shop"]) as b:
            h = b.hotlane
            h.config_path.write_text(h.config_path.read_text().replace(str(h.state), str(disk / "state.db")))
            h.start()
            wait_until(lambda: h.where("shop")["served"], 30, "served")
            with h.connect("shop") as c:
                c.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER NOT NULL)")
                c.execute("INSERT INTO t VALUES (1, 1)")
                assert h.json("route", "shop", "--to", "postgres")["would_move"] is True
                fill(disk / "fill")
                c.execute("CREATE UNIQUE INDEX hidden ON t (n)")
                c.execute("UPDATE t SET n = 2 WHERE id = 1")  # its clients do not notice
                refused = h.route("shop", "postgres")
                assert refused.returncode == 6 and "ddl_not_stored" in refused.stderr, refused.stderr
                pinned = h.cli("pin", "shop", "--home", "engine", "--for", "1h")
                assert "until hotlane is restarted" in pinned.stderr
                h.cli("unpin", "shop")
                (disk / "fill").unlink()
                moved = h.route("shop", "postgres")
                assert moved.returncode == 0, moved.stderr
                with pytest.raises(psycopg.errors.UniqueViolation):
                    c.execute("INSERT INTO t VALUES (2, 2)")
    finally:
        subprocess.run(["umount", str(disk)], check=False)


def fill(path):
    handle = os.open(path, os.O_WRONLY | os.O_CREAT)
    try:
        for size in (65536, 4096, 512, 1):
            try:
                while True:
                    os.write(handle, b"x" * size)
            except OSError:
                continue
    finally:
        os.close(handle)


# ---- words

def test_names_that_are_no_tools(secrets):
    def run(*words):
        return subprocess.run([program("hotlane"), *words, "--admin-socket", str(secrets.hotlane.socket)],
                              capture_output=True, text=True, timeout=60)

    for words in (("where", ""), ("explain", ""), ("unpin", ""), ("route", "", "--to", "engine")):
        assert run(*words).returncode == 2, words
    for name in ("..", "a/b", "%2f", "shop/route", "?limit=1", "ż'\"", "a\nb", "x" * 10_000):
        done = run("where", name, "-o", "json")
        assert done.returncode == 1 and json.loads(done.stdout)["error"], name[:20]
        assert done.stderr.startswith("hotlane: ") and len(done.stderr.strip()) > len("hotlane: -")
    absent = subprocess.run([program("hotlane"), "status", "-o", "json", "--admin-socket", "/nonexistent/a"],
                            capture_output=True, text=True, timeout=60)
    assert absent.returncode == 5 and "not running" in json.loads(absent.stdout)["error"]


def test_nobody_else_may_order(secrets):
    as_nobody = ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups"] if os.geteuid() == 0 else None
    if not as_nobody:
        pytest.skip("cannot be somebody else")
    done = subprocess.run([*as_nobody, program("hotlane"), "route", "shop", "--to", "postgres", "--execute",
                           "--admin-socket", str(secrets.hotlane.socket)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 5 and "permission denied" in done.stderr

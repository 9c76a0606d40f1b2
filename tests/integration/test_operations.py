"""What an operator asks of a tool and its moves: verify, eject, moves --watch, moves ID."""
import contextlib
import json
import socket
import struct
import subprocess
import threading

import psycopg
import pytest

from hotlane_test.process import as_unprivileged, program, wait_until
from hotlane_test.servers import OBSERVE, Bench


@pytest.fixture(scope="module")
def bench():
    with Bench(["shop"], commit_latency="1ms", scan_cost="50ns", policies=OBSERVE) as b:
        b.hotlane.start()
        with b.hotlane.connect("shop") as c:
            c.execute("CREATE TABLE t (id INTEGER PRIMARY KEY AUTOINCREMENT, v TEXT, n REAL)")
            for start in range(0, 2_000, 500):
                c.execute("INSERT INTO t (v, n) VALUES " + ", ".join(f"('row {i}', {i}.5)" for i in range(start,
                start + 500)))
            c.execute("CREATE TABLE log (what TEXT)")
            c.execute("INSERT INTO log VALUES ('same'), ('same'), ('other')")
        yield b


def verify(bench, code=0):
    done = bench.hotlane.cli("verify", "shop", "-o", "json", check=False)
    assert done.returncode == code, done.stdout + done.stderr
    return json.loads(done.stdout)


def bring(bench, home):
    if bench.hotlane.where("shop")["home"] != home:
        done = bench.hotlane.route("shop", home)
        assert done.returncode == 0, done.stdout + done.stderr


def table(found, name):
    return next(t for t in found["tables"] if t["name"] == name)


def test_verify_without_a_copy_says_so(bench):
    found = verify(bench)
    assert found["good"] and "only the live home is read" in " ".join(found["notes"])
    assert table(found, "t")["rows"] == {"live": 2_000} and not table(found, "t")["compared"]


@pytest.mark.parametrize("home", ["postgres", "engine"])
def test_verify_names_what_changed_since(bench, home):
    bring(bench, home)
    found = verify(bench)
    assert all(t["equal"] and t["copy_untouched"] for t in found["tables"]), found
    with bench.hotlane.connect("shop") as c:
        c.execute("UPDATE t SET v = 'changed' WHERE id = 17")
        c.execute("DELETE FROM t WHERE id = 18")
        c.execute("INSERT INTO t (id, v) VALUES (9001, 'new')")
        c.execute("DELETE FROM log WHERE what = 'other'")
    found = verify(bench)
    assert found["good"], found  # the tool works: that is no fault
    t, log = table(found, "t"), table(found, "log")
    assert (t["only"], t["changed"]) == ({"kept": 1, "live": 1}, 1)
    shown = {(r["row"], r["only_at"], tuple(r["columns"])) for r in t["rows_shown"]}
    assert shown == {("id = 17", None, ("v",)), ("id = 18", "kept", ()), ("id = 9001", "live", ())}
    assert log["only"] == {"kept": 1, "live": 0} and log["rows_shown"][0]["row"] == "what = other"
    text = bench.hotlane.cli("verify", "shop").stdout
    assert "1 rows new, 1 gone, 1 changed" in text and "id = 17 (column v)" in text
    with bench.hotlane.connect("shop") as c:  # as it was, for the other direction
        c.execute("DELETE FROM t WHERE id = 9001")
        c.execute("INSERT INTO t (id, v, n) VALUES (18, 'row 17', 17.5)")
        c.execute("UPDATE t SET v = 'row 16' WHERE id = 17")
        c.execute("INSERT INTO log VALUES ('other')")


def test_verify_finds_a_write_into_the_kept_copy(bench):
    bring(bench, "postgres")
    out = bench.hotlane.json("moves")["moves"][0]["id"]
    bench.engine.execute("shop", f"UPDATE hotlane_{out}_f1 SET v = 'late' WHERE id = 5")
    found = verify(bench, 1)
    text = " ".join(found["problems"])
    assert not found["good"] and 'table "t" was changed at its old home' in text and "id = 5 (column v)" in text, text
    bench.engine.execute("shop", f"UPDATE hotlane_{out}_f1 SET v = 'row 4' WHERE id = 5")
    assert verify(bench)["good"]


def test_eject_writes_down_how_to_run_without(bench):
    bring(bench, "postgres")
    lsn = bench.engine.stats("shop")["twill_committed_lsn"]
    how = bench.hotlane.json("eject", "shop")
    assert bench.engine.stats("shop")["twill_committed_lsn"] == lsn
    assert f"port={bench.pg.port} dbname=shop user=app" in how["dsn"] and how["in_schema"] == "public"
    number = how["identities"][0]
    assert (number["table"], number["column"]) == ("t", "id") and int(number["last_value"]) >= 2_000
    text = bench.hotlane.cli("eject", "shop").stdout
    assert how["dsn"] in text and "DROP TABLE" in text
    # As it says: the settings first, then the clients elsewhere.
    for change in how["set_before"]:
        bench.pg.execute(change["sql"], "shop")
    with psycopg.connect(how["dsn"], autocommit=True) as c:
        assert c.execute("INSERT INTO t (v) VALUES ('without') RETURNING id").fetchone()[0] > 2_000
        assert c.execute("SHOW default_transaction_isolation").fetchone() == ("repeatable read",)
        c.execute("DELETE FROM t WHERE v = 'without'")
    bench.pg.execute("ALTER ROLE app IN DATABASE shop RESET ALL", "shop")
    bring(bench, "engine")
    how = bench.hotlane.json("eject", "shop")
    assert f"port={bench.engine.ports['shop']}" in how["dsn"] and how["identities"] == []


def test_a_move_is_watched(bench):
    bring(bench, "engine")
    watching = subprocess.Popen([program("hotlane"), "moves", "--watch", "--admin-socket", str(bench.hotlane.socket)],
                                stdout=subprocess.PIPE, text=True)
    try:
        first = watching.stdout.readline()
        assert "no move is under way" in first
        with bench.hotlane.connect("shop") as c:
            c.execute("BEGIN")
            c.execute("SELECT count(*) FROM t")  # the drain waits for it
            given = bench.hotlane.json("route", "shop", "--to", "postgres", "--execute")["order"]
            seen = []
            for line in watching.stdout:
                seen.append(line)
                if "hold; waits for 1 open transactions to end" in line:
                    break
            assert "ordered by" in seen[-1] and "shop -> postgres" in seen[-1], seen
            order = next(o for o in bench.hotlane.json("moves")["orders"] if o["order"] == given)
            assert order["waits_for"] == "1 open transactions to end"
            c.execute("COMMIT")
        wait_until(lambda: not bench.hotlane.json("moves")["orders"], 20, "the move ended")
    finally:
        watching.terminate()
        watching.wait(10)
    shown = bench.hotlane.cli("moves", order["move"]).stdout
    assert f"hotlane move reverse {order['move']}" in shown and "decision" in shown, shown
    detail = bench.hotlane.json("moves", order["move"])
    assert detail["decision"]["event"] and detail["reverse"] == f"hotlane move reverse {order['move']}"


class AsksInClearText(threading.Thread):
    """A server that wants every password in clear text, and keeps what it is sent."""

    def __init__(self):
        super().__init__(daemon=True)
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.port, self.heard = self.socket.getsockname()[1], []

    def run(self):
        while True:
            try:
                c, _ = self.socket.accept()
            except OSError:
                return
            with c, contextlib.suppress(ConnectionError):
                if struct.unpack("!II", c.recv(8, socket.MSG_PEEK))[1] == 80877103:  # SSLRequest
                    c.recv(8)
                    c.sendall(b"N")
                c.recv(4096)
                c.sendall(b"R" + struct.pack("!II", 8, 3))
                while data := c.recv(4096):
                    self.heard.append(data)


def test_no_password_goes_out_in_clear_text(bench):
    thief = AsksInClearText()
    thief.start()
    secret = bench.folder / "secret"
    secret.write_text("geheim-4711")
    secret.chmod(0o644)
    config = bench.folder / "thief.yaml"
    config.write_text(bench.hotlane.config_path.read_text().replace(
        f"address: 127.0.0.1:{bench.pg.port}, admin: {{user: postgres}}",
        f"address: 127.0.0.1:{thief.port}, admin: {{user: postgres, password: {{file: {secret}}}}}"))
    config.chmod(0o644)
    done = subprocess.run(as_unprivileged([program("move-harness"), "--config", str(config), "--state",
                                           str(bench.folder / "thief.db"), "--tool", "shop", "--to", "postgres"]),
                          capture_output=True, text=True, timeout=60)
    thief.socket.close()
    assert "in clear text" in done.stdout and not json.loads(done.stdout)["moved"], done.stdout + done.stderr
    assert not any(b"geheim" in data for data in thief.heard), thief.heard

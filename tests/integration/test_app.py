"""The command line and the process: exit codes, outputs, reload, drain, crash."""
import json
import os
import signal
import socket
import subprocess
import threading

import psycopg
import pytest

from hotlane_test.process import program, wait_until
from hotlane_test.servers import Bench


@pytest.fixture(scope="module")
def bench():
    with Bench(["shop", "other"]) as b:
        b.hotlane.start()
        wait_until(lambda: b.hotlane.where("shop")["served"], 30, "shop is served")
        with b.hotlane.connect("shop") as c:
            c.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER NOT NULL)")
            c.execute("INSERT INTO t (id, n) VALUES (1, 1)")
        yield b


def run(*words, env=None, timeout=60):
    return subprocess.run([program("hotlane"), *words], capture_output=True, text=True, timeout=timeout,
                          env={**os.environ, **(env or {})})


# ---- words ----

def test_help_begins_with_examples_and_is_data():
    done = run("--help")
    assert done.returncode == 0 and done.stderr == ""
    assert "hotlane route counter --to postgres" in done.stdout


def test_version():
    done = run("version")
    assert done.returncode == 0 and done.stdout.startswith("hotlane ")


@pytest.mark.parametrize("words", [(), ("nonsense",), ("route", "shop"), ("route", "shop", "--to", "mars"),
                                   ("where",), ("shard",), ("tools", "-o", "yaml"), ("run",),
                                   ("pin", "shop", "--home", "engine"),
                                   ("pin", "shop", "--home", "engine", "--for", "soon")])
def test_wrong_words_are_usage_errors(words):
    done = run(*words)
    assert done.returncode == 2, done.stdout + done.stderr
    assert done.stderr


def test_no_hotlane_is_exit_5():
    for words in (("status",), ("route", "shop", "--to", "postgres")):
        done = run(*words, "--admin-socket", "/nonexistent/admin.sock")
        assert done.returncode == 5
        assert "hotlane is not running" in done.stderr and done.stdout == ""


def test_the_socket_may_come_from_the_environment(bench):
    done = run("status", env={"HOTLANE_ADMIN_SOCKET": str(bench.hotlane.socket)})
    assert done.returncode == 0, done.stderr


# ---- check ----

def test_check_says_every_problem_with_its_place(tmp_path):
    bad = tmp_path / "bad.yaml"
    bad.write_text("version: 1\nlistne: []\nthreads: many\n")
    done = run("check", str(bad))
    assert done.returncode == 3 and done.stdout == ""
    assert f"{bad}:2:1: error" in done.stderr and f"{bad}:3:10: error" in done.stderr
    as_json = run("check", str(bad), "-o", "json")
    assert as_json.returncode == 3
    assert {p["line"] for p in json.loads(as_json.stdout)["problems"]} >= {2, 3}


def test_check_of_a_good_file(bench):
    path = str(bench.hotlane.config_path)
    assert run("check", path).returncode == 0
    effective = run("check", path, "--effective")
    assert effective.returncode == 0 and "hold_max" in effective.stdout
    assert json.loads(run("check", path, "-o", "json").stdout)["ok"] is True


def test_a_bad_file_does_not_start(tmp_path):
    bad = tmp_path / "bad.yaml"
    bad.write_text("version: 1\nnonsense: true\n")
    done = run("run", "--config", str(bad))
    assert done.returncode == 3 and "nonsense" in done.stderr
    assert run("run", "--config", str(tmp_path / "missing.yaml")).returncode == 3


def test_a_taken_port_is_exit_4(bench, tmp_path):
    text = bench.hotlane.config_path.read_text()
    own = text.replace(str(bench.hotlane.socket), str(tmp_path / "a.sock"))
    own = own.replace(str(bench.hotlane.state), str(tmp_path / "state.db"))
    path = tmp_path / "hotlane.yaml"
    path.write_text(own)
    done = run("run", "--config", str(path))
    assert done.returncode == 4, done.stderr
    assert str(bench.hotlane.port) in done.stderr


def test_a_store_in_use_is_refused(bench, tmp_path):
    text = bench.hotlane.config_path.read_text().replace(str(bench.hotlane.socket), str(tmp_path / "a.sock"))
    path = tmp_path / "hotlane.yaml"
    path.write_text(text)
    done = run("run", "--config", str(path))
    assert done.returncode == 1 and str(bench.hotlane.state) in done.stderr


# ---- reads ----

def test_json_has_its_schema(bench):
    for words in (("status",), ("tools",), ("where", "shop"), ("explain", "shop"), ("moves",)):
        assert bench.hotlane.json(*words)["schema"] == "hotlane/v1"


def test_an_unknown_tool_names_the_known_ones(bench):
    done = bench.hotlane.cli("where", "nobody", check=False)
    assert done.returncode == 1 and "shop" in done.stderr and done.stdout == ""


def test_probes_and_metrics_over_tcp_and_never_the_api(bench):
    import urllib.error
    import urllib.request
    base = f"http://127.0.0.1:{bench.hotlane.metrics_port}"
    for path in ("/livez", "/readyz", "/metrics"):
        with urllib.request.urlopen(base + path, timeout=10) as r:
            assert r.status == 200
    for path in ("/api/v1/status", "/api/v1/tools"):
        with pytest.raises(urllib.error.HTTPError) as told:
            urllib.request.urlopen(base + path, timeout=10)
        assert told.value.code == 404
    assert oct(bench.hotlane.socket.stat().st_mode & 0o777) == "0o600"


# ---- verbs ----

def test_route_there_and_back(bench):
    dry = bench.hotlane.json("route", "shop", "--to", "postgres")
    assert dry["would_move"] is True and "--execute" in dry["next_steps"][0]
    there = bench.hotlane.route("shop", "postgres")
    assert there.returncode == 0, there.stderr
    assert bench.hotlane.where("shop")["home"] == "postgres"
    assert "hotlane move reverse" in there.stderr
    again = bench.hotlane.route("shop", "postgres")
    assert again.returncode == 6 and "already" in again.stderr
    back = bench.hotlane.route("shop", "engine")
    assert back.returncode == 0, back.stderr
    moves = bench.hotlane.json("moves")["moves"]
    assert [m["to"] for m in moves[:2]] == ["engine", "postgres"]
    assert all(m["outcome"] == "done" and m["held_ms"] is not None and m["ended_at"] for m in moves[:2])


def test_a_pin_guards_and_ends(bench):
    assert bench.hotlane.cli("pin", "other", "--home", "engine", "--for", "2h").returncode == 0
    refused = bench.hotlane.route("other", "postgres")
    assert refused.returncode == 6 and "pin" in refused.stderr
    assert bench.hotlane.cli("unpin", "other").returncode == 0
    assert bench.hotlane.where("other")["pin"] is None


def test_shard_out_of_season(bench):
    assert bench.hotlane.cli("shard", "skip", "shop", check=False).returncode == 6


# ---- reload ----

def test_reload_applies_policies_and_a_bad_file_changes_nothing(bench):
    path = bench.hotlane.config_path
    good = path.read_text()
    with bench.hotlane.connect("shop") as c:
        try:
            path.write_text(good + "nonsense: 1\n")
            refused = bench.hotlane.cli("reload", check=False)
            assert refused.returncode == 3 and "nonsense" in refused.stderr
            assert bench.hotlane.json("status")["config"]["last_reload_ok"] is False
            path.write_text(good + "policies: {default: {mode: advise}}\n")
            bench.hotlane.process.signal(signal.SIGHUP)
            wait_until(lambda: bench.hotlane.where("shop")["mode"] == "advise", 10, "the policy is in force")
        finally:
            path.write_text(good)
        assert c.execute("SELECT n FROM t WHERE id = 1").fetchone() == (1,)
    assert bench.hotlane.cli("reload").returncode == 0


# ---- the process ----

def test_no_core_dump_and_no_secret_readers(bench):
    pid = bench.hotlane.process.pid
    limits = open(f"/proc/{pid}/limits").read()
    core = next(line for line in limits.splitlines() if line.startswith("Max core file size"))
    assert core.split()[4:6] == ["0", "0"]


def test_sigterm_drains_and_exits_0():
    with Bench(["shop"]) as b:
        b.hotlane.start()
        wait_until(lambda: b.hotlane.where("shop")["served"], 30, "served")
        with b.hotlane.connect("shop") as c:
            c.execute("CREATE TABLE t (id INTEGER PRIMARY KEY)")
            c.execute("BEGIN")
            c.execute("INSERT INTO t (id) VALUES (1)")
            ended = {}
            stopper = threading.Thread(target=lambda: ended.update(code=b.hotlane.stop()))
            stopper.start()
            wait_until(lambda: refuses(b.hotlane.port), 10, "no new clients")
            c.execute("COMMIT")  # what was begun may end
            stopper.join(30)
            assert ended["code"] == 0
        b.hotlane.start()
        wait_until(lambda: b.hotlane.where("shop")["served"], 30, "served")
        with b.hotlane.connect("shop") as c:
            assert c.execute("SELECT count(*) FROM t").fetchone()[0] == 1


def test_a_second_signal_ends_at_once():
    with Bench(["shop"]) as b:
        b.hotlane.start()
        wait_until(lambda: b.hotlane.where("shop")["served"], 30, "served")
        with b.hotlane.connect("shop") as c:
            c.execute("CREATE TABLE t (id INTEGER PRIMARY KEY)")
            c.execute("BEGIN")
            c.execute("INSERT INTO t (id) VALUES (1)")
            b.hotlane.process.signal(signal.SIGTERM)
            wait_until(lambda: refuses(b.hotlane.port), 10, "draining")
            b.hotlane.process.signal(signal.SIGTERM)
            wait_until(lambda: not b.hotlane.process.alive(), 3, "it is gone")
            with pytest.raises(psycopg.Error):
                c.execute("COMMIT")


def refuses(port) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
        return False
    except OSError:
        return True

"""Stored passwords: SCRAM in any case, clear text over TLS only, towards a real PostgreSQL."""
import os
import shutil
import subprocess

import pytest

from hotlane_test.process import as_unprivileged, make_folder
from hotlane_test.servers import Postgres

WORD = "geheim-4711"


@pytest.fixture(scope="module")
def server():
    folder = make_folder("hotlane-passwords-")
    pg = Postgres(folder, settings={"ssl": "on"}, scram_password=WORD)
    key, certificate = pg.data / "server.key", pg.data / "server.crt"
    subprocess.run(as_unprivileged(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
                                    "-subj", "/CN=localhost", "-keyout", str(key), "-out", str(certificate)]),
                   check=True, capture_output=True, cwd="/")
    (pg.data / "pg_hba.conf").write_text("host postgres postgres 127.0.0.1/32 scram-sha-256\n"
                                         "host all all 127.0.0.1/32 password\n")
    try:
        pg.start()
        pg.create("app", "clear")
        yield pg
    finally:
        pg.stop()
        shutil.rmtree(folder, ignore_errors=True)


def connect(server, dbname, sslmode):
    program = os.path.join(os.environ["HOTLANE_BUILD"], "tests/unit_placement")
    return subprocess.run([program, "[.connects]"], capture_output=True, text=True, timeout=60,
                          env={**os.environ, "HOTLANE_STORE_DSN": f"{server.dsn(dbname)} sslmode={sslmode}"})


@pytest.mark.parametrize("sslmode", ["disable", "prefer", "require"])
def test_scram_needs_no_tls(server, sslmode):
    done = connect(server, "postgres", sslmode)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("sslmode", ["prefer", "require"])
def test_clear_text_goes_over_tls(server, sslmode):
    done = connect(server, "clear", sslmode)
    assert done.returncode == 0, done.stdout


def test_clear_text_goes_nowhere_without_tls(server):
    done = connect(server, "clear", "disable")
    assert done.returncode != 0 and "in clear text" in done.stdout, done.stdout
    assert WORD not in done.stdout

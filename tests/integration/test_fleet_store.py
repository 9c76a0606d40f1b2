"""The conformance suite of the state store, over a real PostgreSQL of its own."""
import os
import shutil
import subprocess

from hotlane_test.process import make_folder
from hotlane_test.servers import Postgres


def test_the_conformance_suite_holds_over_postgresql():
    folder = make_folder("hotlane-store-")
    pg = Postgres(folder)
    try:
        pg.start()
        pg.create("app", "state")
        done = subprocess.run([os.path.join(os.environ["HOTLANE_BUILD"], "tests/unit_placement"), "[.postgres]"],
                              env={**os.environ, "HOTLANE_STORE_DSN": pg.dsn("state")},
                              capture_output=True, text=True, timeout=240)
        assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
        assert "All tests passed" in done.stdout
    finally:
        pg.stop()
        shutil.rmtree(folder, ignore_errors=True)

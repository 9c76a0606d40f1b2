"""200 clients over 4 links, dropping and cancelling at random: nobody reads another's row, nothing sticks.

HOTLANE_STORM_SECONDS=60 makes it a minute; HOTLANE_STORM_SEED another storm.
"""
import os

import pytest

from hotlane_test.harness import Harness, pool_modes
from hotlane_test.pgwire import Wire
from hotlane_test.process import make_folder, wait_until
from hotlane_test.servers import Postgres
from hotlane_test.storm import Client, storm

SECONDS = float(os.environ.get("HOTLANE_STORM_SECONDS", 10))
SEED = int(os.environ.get("HOTLANE_STORM_SEED", 1))
LINKS = 4
BACKENDS = "SELECT count(*) FROM pg_stat_activity WHERE usename = 'app'"


@pytest.fixture(scope="module")
def pg():
    server = Postgres(make_folder("storm-"), settings={"fsync": "off", "max_connections": 300}).start()
    server.create("app", "parity")
    yield server
    server.stop("immediate")


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("mode", pool_modes())
def test_storm(pg, mode, threads):
    shared = mode == "transaction"
    harness = Harness("127.0.0.1", pg.port, "threads", threads, "database", "*",
                      *(("links", LINKS) if shared else ()), pool=mode)
    before = harness.stats()
    done = storm(harness.port, 200 if shared else 60, SECONDS / 2, seed=SEED)
    assert set(done) == {name for name, _ in Client.ACTIONS}, done
    if shared:
        assert pg.execute(BACKENDS)[0][0] <= LINKS
    wait_until(lambda: harness.stats()["connections"] == 0, 30, "all are gone")
    wait_until(lambda: pg.execute("SELECT count(*) FROM pg_stat_activity WHERE usename = 'app' AND "
                                  "(state <> 'idle' OR backend_xmin IS NOT NULL)")[0][0] == 0, 30, "no link is busy")
    after = harness.stats()
    for gauge in ("inside", "waiting", "sessions", "before_login", "cancels_in_flight"):
        assert after[gauge] == before[gauge], gauge
    # Every link can still be lent: as many transactions at once as there are links.
    wires = [Wire(harness.port).login("app", "parity") for _ in range(LINKS)]
    for wire in wires:
        wire.run("BEGIN")
    assert [w.run("SELECT 'still here'") for w in wires] == [[[b"still here"]]] * LINKS
    for wire in wires:
        wire.drop()
    harness.close()

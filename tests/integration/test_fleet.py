"""Sidecars of one fleet on real servers: moves under load while leaders, stores and links die.

HOTLANE_FLEET_LONG=1 runs eight sidecars with a standby of the store, and everything that kills."""
import os
import random
import signal
import subprocess
import time

import pytest

from hotlane_test.fleet import Fleet
from hotlane_test.ledger import KINDS, assert_exact, check, stop_all
from hotlane_test.process import wait_until

PHASES = "stage", "rehearse", "hold", "fence", "copy", "verify", "commit"
LONG = os.environ.get("HOTLANE_FLEET_LONG")


def write_through_all(fleet, a_kind: int = 1):
    with fleet.sidecars[0].connect(fleet.tool) as c:
        for kind in KINDS.values():
            for sql in kind.schema():
                c.execute(sql)
    writers = [kind(s.dsn(fleet.tool), number=(i * len(KINDS) + k) * a_kind + n, think_s=0.01)
               for i, s in enumerate(fleet.sidecars) for k, kind in enumerate(KINDS.values())
               for n in range(a_kind)]
    for w in writers:
        w.start()
    return writers


def progress(writers):
    before = sum(w.ledger.acknowledged for w in writers)
    wait_until(lambda: sum(w.ledger.acknowledged for w in writers) > before + 40, 60, "the writers make progress")


def assert_ledger(fleet, writers):
    home = set(fleet.homes())
    assert len(home) == 1, home
    connection = fleet.home.connect(fleet.tool) if home == {"postgres"} else fleet.engine.connect(fleet.tool)
    with connection as c:
        rows = check(c, writers)
    for kind, row in rows.items():
        print(kind, row)
    assert_exact(rows)


def test_a_move_reaches_every_sidecar_and_survives_its_leader():
    with Fleet(3) as fleet:
        fleet.start()
        leader = fleet.leader()
        shown = leader.json("fleet")
        assert len(shown["sidecars"]) == 3 and sum(s["leads"] for s in shown["sidecars"]) == 1
        assert all(s["same_policy"] for s in shown["sidecars"])
        follower = next(s for s in fleet.sidecars if s is not leader)
        refused = follower.cli("route", fleet.tool, "--to", "postgres", "--execute", check=False)
        assert refused.returncode == 6 and "leads" in refused.stderr
        writers = write_through_all(fleet)
        try:
            progress(writers)
            fleet.move("postgres")
            held = leader.json("moves")["moves"][0]["held_ms"]
            progress(writers)
            # The leader dies in the middle of the way back.
            seen = len(leader.process.output())
            ordered = subprocess.Popen(_route_command(leader, fleet.tool, "engine"), stdout=subprocess.DEVNULL,
                                       stderr=subprocess.DEVNULL)
            wait_until(lambda: _reached(leader, seen, "fence"), 30, "the way back reaches its fence", 0.002)
            leader.kill()
            died = time.monotonic()
            ordered.wait(30)
            second = fleet.leader(30)
            elected = time.monotonic() - died
            assert second is not leader
            wait_until(lambda: "-" not in fleet.homes() and len(set(fleet.homes())) == 1, 60, "all agree again")
            served = time.monotonic() - died
            leader.start()
            progress(writers)
            fleet.move("engine" if fleet.homes()[0] == "postgres" else "postgres")
            progress(writers)
        finally:
            stop_all(writers)
        print(f"\nheld {held} ms; leader after {elected:.1f} s, served everywhere after {served:.1f} s")
        assert_ledger(fleet, writers)


def _route_command(sidecar, tool, home):
    from hotlane_test.process import program
    return [program("hotlane"), "route", tool, "--to", home, "--execute", "--wait",
            "--admin-socket", str(sidecar.socket)]


def _reached(sidecar, seen: int, phase: str) -> bool:
    lines = sidecar.process.output()[seen:].splitlines()
    return any("move_phase" in line and f'"{phase}"' in line for line in lines)


def test_the_store_may_die_and_forget_everything():
    with Fleet(2) as fleet:
        fleet.start()
        fleet.leader()
        writers = write_through_all(fleet)
        try:
            progress(writers)
            fleet.move("postgres")
            fleet.store.kill()
            # Homes confirm themselves: more than a lease later everyone still serves.
            end = time.monotonic() + 5
            while time.monotonic() < end:
                progress(writers)
            shown = fleet.sidecars[0].json("fleet")
            assert shown["store"]["reachable"] is False and shown["this"]["state"] == "away"
            assert "hotlane_fleet_store_up 0" in fleet.sidecars[0].metrics()
            refused = fleet.sidecars[0].route(fleet.tool, "engine")
            assert refused.returncode == 6
            fleet.store.start()
            fleet.store.execute("DROP SCHEMA hotlane_state CASCADE", "state")
            fleet.leader(60)
            # The empty store is repaired from the homes, never the other way round.
            wait_until(lambda: fleet.store.execute(
                "SELECT home, epoch FROM hotlane_state.placements", "state") == [(1, 2)], 30, "the store is repaired")
            assert set(fleet.homes()) == {"postgres"}
            fleet.move("engine")
            progress(writers)
        finally:
            stop_all(writers)
        assert_ledger(fleet, writers)


@pytest.mark.skipif(not LONG, reason="minutes: HOTLANE_FLEET_LONG=1")
def test_eight_sidecars_with_a_standby_through_everything():
    chance = random.Random(int(os.environ.get("HOTLANE_SEED", "1")))
    with Fleet(8, standby=True) as fleet:
        fleet.start()
        fleet.leader()
        writers = write_through_all(fleet)
        times, promoted = [], False
        try:
            for turn in range(24):
                progress(writers)
                home = "engine" if fleet.homes()[0] == "postgres" else "postgres"
                leader = fleet.leader(60)
                seen, phase = len(leader.process.output()), chance.choice(PHASES)
                order = subprocess.Popen(_route_command(leader, fleet.tool, home), stdout=subprocess.DEVNULL,
                                         stderr=subprocess.DEVNULL)
                wait_until(lambda: _reached(leader, seen, phase) or order.poll() is not None, 60, f"phase {phase}",
                           0.002)
                what = ("nothing", "kill leader", "stop leader", "stop follower", "kill store")[turn % 5]
                began = time.monotonic()
                victim = leader if "leader" in what else next(s for s in fleet.alive() if s is not leader)
                if what == "kill leader":
                    victim.kill()
                elif what.startswith("stop"):
                    victim.process.signal(signal.SIGSTOP)
                elif what == "kill store" and not promoted and turn > 10:
                    fleet.store.kill()
                    fleet.standby.promote()
                    promoted = True
                elif what == "kill store" and not promoted:
                    fleet.store.kill()
                    fleet.store.start()
                if what.startswith("stop"):
                    if chance.random() < 0.7:      # else it is stopped for a moment only
                        progress(writers)          # the others got over it
                    victim.process.signal(signal.SIGCONT)
                order.wait(120)
                fleet.leader(60)
                if what == "kill leader":
                    victim.start()
                wait_until(lambda: "-" not in fleet.homes() and len(set(fleet.homes())) == 1, 90, f"agree: {what}")
                times.append((what, round(time.monotonic() - began, 1)))
        finally:
            for s in fleet.alive():
                s.process.signal(signal.SIGCONT)
            stop_all(writers, 120)
        print("\n", times)
        assert_ledger(fleet, writers)

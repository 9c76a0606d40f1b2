"""Sidecars of one fleet on real servers: moves under load while leaders, stores and links die.

HOTLANE_FLEET_LONG=1 runs eight sidecars with a standby of the store, and everything that kills."""
import os
import random
import signal
import subprocess
import time

import psycopg
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
    writers = []
    for i, s in enumerate(fleet.sidecars):
        for k, kind in enumerate(KINDS.values()):
            for n in range(a_kind):
                writers.append(kind(s.dsn(fleet.tool), number=(i * len(KINDS) + k) * a_kind + n, think_s=0.01))
                writers[-1].through = s
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


def test_a_sidecar_that_a_move_went_past_asks_the_homes_before_its_clients_see_anything():
    with Fleet(3, gates=True) as fleet:
        fleet.start()
        leader = fleet.leader()
        cut_off = next(s for s in fleet.sidecars if s is not leader)
        writers = write_through_all(fleet)
        refused = "SELECT count(*) FROM counter"
        try:
            progress(writers)
            fleet.cut(cut_off)
            wait_until(lambda: sum(s["lapsed"] for s in leader.json("fleet")["sidecars"]) == 1, 30, "its lease is over")
            for home in ("postgres", "engine"):
                # Nobody waits for it any more; the fence is what remains.
                done = leader.route(fleet.tool, home)
                assert done.returncode == 0, done.stdout + done.stderr
                progress(writers)
                wait_until(lambda h=home: cut_off.where(fleet.tool)["home"] == h, 20, "it follows by the markers")
                with cut_off.connect(fleet.tool) as c:
                    if home == "engine":   # its fence could not refuse this one
                        with pytest.raises(psycopg.errors.CannotConnectNow, match="does not confirm"):
                            c.execute(refused)
                    else:
                        c.execute(refused)
            fleet.heal()
            wait_until(lambda: cut_off.json("fleet")["store"]["reachable"], 60, "the store is back")
            with cut_off.connect(fleet.tool) as c:
                wait_until(lambda: _works(c, refused), 20, "confirmed again")
            progress(writers)
        finally:
            fleet.heal()
            stop_all(writers)
        assert_ledger(fleet, writers)


def _works(connection, sql: str) -> bool:
    try:
        connection.execute(sql)
        return True
    except psycopg.errors.CannotConnectNow:
        return False


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


def test_a_standby_of_the_store_takes_over_while_something_still_answers_for_the_dead_one():
    """As a forwarded port or a proxy does: it takes the connection and closes it."""
    with Fleet(2, standby=True, gates=True) as fleet:
        fleet.start()
        fleet.leader()
        writers = write_through_all(fleet)
        try:
            progress(writers)
            fleet.store.kill()
            fleet.standby.promote()
            fleet.leader(30)
            fleet.move("postgres")
            progress(writers)
        finally:
            stop_all(writers)
        assert_ledger(fleet, writers)


ACCIDENTS = ("nothing", "kill leader", "stop leader", "stop follower", "kill store", "cut leader from store",
             "cut follower from store", "leader hears no store", "store hears no follower", "cut leader from home",
             "cut leader from engine")


@pytest.mark.skipif(not LONG, reason="minutes: HOTLANE_FLEET_LONG=1")
def test_eight_sidecars_with_a_standby_through_everything():
    chance = random.Random(int(os.environ.get("HOTLANE_SEED", "1")))
    turns = int(os.environ.get("HOTLANE_TURNS", "33"))
    with Fleet(8, standby=True, gates=True) as fleet:
        fleet.start()
        fleet.leader()
        writers = write_through_all(fleet)
        times, promoted = [], False
        try:
            for turn in range(turns):
                progress(writers)
                home = "engine" if fleet.homes()[0] == "postgres" else "postgres"
                leader = fleet.leader(60)
                seen, phase = len(leader.process.output()), chance.choice(PHASES)
                order = subprocess.Popen(_route_command(leader, fleet.tool, home), stdout=subprocess.DEVNULL,
                                         stderr=subprocess.DEVNULL)
                wait_until(lambda: _reached(leader, seen, phase) or order.poll() is not None, 60, f"phase {phase}",
                           0.002)
                what = ACCIDENTS[turn % len(ACCIDENTS)]
                began = time.monotonic()
                victim = leader if "leader" in what else next(s for s in fleet.alive() if s is not leader)
                promoted = _have(fleet, what, victim, may_promote=turn > turns // 2, promoted=promoted)
                if what.startswith("stop") or "cut" in what or "hears" in what:
                    # Sometimes for a moment only; else until the others got over it.
                    if chance.random() < 0.7:
                        _while_others_go_on([w for w in writers if w.through is not victim])
                    if what.startswith("stop"):
                        victim.process.signal(signal.SIGCONT)
                    fleet.heal()
                order.wait(120)
                leads = time.monotonic()
                fleet.leader(60)
                leads = time.monotonic() - leads
                if what == "kill leader":
                    victim.start()
                wait_until(lambda: "-" not in fleet.homes() and len(set(fleet.homes())) == 1, 90, f"agree: {what}")
                times.append((what, phase, round(leads, 1), round(time.monotonic() - began, 1)))
        finally:
            fleet.heal()
            for s in fleet.alive():
                s.process.signal(signal.SIGCONT)
            stop_all(writers, 120)
            for row in times:
                print("%-24s in %-9s leader after %5.1f s, all agree after %5.1f s" % row)
            held = sorted(m["held_ms"] for m in fleet.leader(60).json("moves")["moves"] if m.get("held_ms"))
            if held:
                print(f"{len(held)} moves held the tool: median {held[len(held) // 2]} ms, longest {held[-1]} ms")
        assert promoted or turns < len(ACCIDENTS) * 2
        assert_ledger(fleet, writers)


def _while_others_go_on(writers):
    """Unless who is stopped or cut off holds the lane, or a row, in a transaction of its own."""
    before = sum(w.ledger.acknowledged for w in writers)
    end = time.monotonic() + 15
    wait_until(lambda: sum(w.ledger.acknowledged for w in writers) > before + 200 or time.monotonic() > end, 20,
               "the others go on, or cannot")


def _have(fleet, what: str, victim, may_promote: bool, promoted: bool) -> bool:
    """The accident; True from the promotion of the standby on."""
    if what == "kill leader":
        victim.kill()
    elif what.startswith("stop"):
        victim.process.signal(signal.SIGSTOP)
    elif what == "kill store" and not promoted:
        fleet.store.kill()
        if may_promote:
            fleet.standby.promote()
            return True
        fleet.store.start()
    elif what.startswith("cut"):
        way = what.split()[-1]
        fleet.cut(victim, "standby" if way == "store" and promoted else way)
    elif what == "leader hears no store":
        fleet.cut(victim, "standby" if promoted else "store", ["to client"])
    elif what == "store hears no follower":
        fleet.cut(victim, "standby" if promoted else "store", ["to home"])
    return promoted

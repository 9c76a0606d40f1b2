"""Twenty moves back and forth under sixteen writers of four kinds, with links cut at COMMIT."""
import time

import pytest

from hotlane_test.gate import Gate
from hotlane_test.ledger import KINDS, assert_exact, check, stop_all
from hotlane_test.process import wait_until
from hotlane_test.servers import Bench

POLICIES = """policies:
  default:
    mode: observe
    rails: {hold_max: 5s}
"""
MOVES = 20


def acknowledged(writers):
    return sum(w.ledger.acknowledged for w in writers)


@pytest.fixture()
def bench():
    with Bench(["shop"], commit_latency="2ms", scan_cost="50ns", policies=POLICIES, gate=Gate) as b:
        b.hotlane.start()
        with b.hotlane.connect("shop") as c:
            for kind in KINDS.values():
                for sql in kind.schema():
                    c.execute(sql)
        yield b


def start_writers(bench):
    writers = [kind(bench.hotlane.dsn("shop"), number=i * 4 + k, think_s=0.005)
               for i in range(4) for k, kind in enumerate(KINDS.values())]
    for w in writers:
        w.start()
    return writers


def test_twenty_moves_lose_nothing_and_double_nothing(bench):
    writers = start_writers(bench)
    gate = bench.gates["shop"]
    held = []
    try:
        for i in range(MOVES):
            before = acknowledged(writers)
            wait_until(lambda: acknowledged(writers) > before + 40, 60, "the writers make progress")
            gate.cut_after("COMMIT", 0.02)
            home = "postgres" if i % 2 == 0 else "engine"
            wait_until(lambda: _moves(bench, home, held), 120, f"move {i + 1} to {home}")
            assert bench.hotlane.where("shop")["home"] == home
    finally:
        gate.cut_after(None)
        stop_all(writers)
    with bench.engine.connect("shop") as c:
        rows = check(c, writers)
    print(f"\ncuts at COMMIT: {gate.cuts}; longest pause of each move, ms: {held}")
    for kind, row in rows.items():
        print(kind, row)
    assert gate.cuts > 0, "no link was cut: the test did not test"
    assert_exact(rows)


def _moves(bench, home, held) -> bool:
    """One try; a move may be undone by a cut link, and then the next try must succeed."""
    done = bench.hotlane.route("shop", home)
    moves = bench.hotlane.json("moves")["moves"]
    if done.returncode == 0:
        held.append(moves[0].get("held_ms"))
        return True
    # A move that failed must have left the tool serving at its old home.
    old = "engine" if home == "postgres" else "postgres"
    wait_until(lambda: bench.hotlane.where("shop")["served"], 30, "the tool serves again")
    assert bench.hotlane.where("shop")["home"] in (old, home)
    return bench.hotlane.where("shop")["home"] == home

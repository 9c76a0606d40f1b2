"""Big rows to clients that do not read, COPY to a home that does not read: memory is bounded, others go on."""
import select
import struct
import threading

import pytest

from hotlane_test.gate import Gate
from hotlane_test.harness import Harness, pool_modes
from hotlane_test.pgwire import (Wire, bind, copy_data, copy_done, execute, parse, query, sync)
from hotlane_test.process import make_folder, wait_until
from hotlane_test.servers import Postgres

MIB = 1 << 20
BOUND_KB = 12 * 1024      # what a session may add to the process, its buffers and the allocator's included


@pytest.fixture(scope="module")
def pg():
    server = Postgres(make_folder("pressure-"), settings={"fsync": "off"}).start()
    server.create("app", "parity")
    yield server
    server.stop("immediate")


@pytest.fixture(params=pool_modes())
def hl(request, pg):
    gate = Gate(pg.port)
    harness = Harness("127.0.0.1", gate.port, "database", "*", pool=request.param)
    harness.gate = gate
    yield harness
    harness.close()
    gate.close()


def login(hl, **more) -> Wire:
    return Wire(hl.port, **more).login("app", "parity")


class Watch:
    """Samples the resident memory until it is over; others must be served meanwhile."""

    def __init__(self, hl):
        self.hl, self.other, self.before = hl, login(hl), hl.stats()["rss_kb"]
        self.most = 0

    def look(self, times: int = 1) -> bool:
        for _ in range(times):
            assert self.other.run("SELECT 'others go on'") == [[b"others go on"]]
            self.most = max(self.most, self.hl.stats()["rss_kb"] - self.before)
        assert self.most < BOUND_KB
        return True

    def done(self):
        self.look()
        self.other.drop()


def count_bytes(wire: Wire, ends: int = 1) -> int:
    """Reads up to so many ReadyForQuery and keeps nothing: the size of all that came."""
    total, need, head = 0, 0, b""
    wire.socket.setblocking(False)
    while True:
        if not select.select([wire.socket], [], [], 60)[0]:
            raise TimeoutError(f"nothing more after {total} bytes")
        data = wire.socket.recv(MIB)
        if not data:
            return total
        total += len(data)
        while data:
            if need:
                step = min(need, len(data))
                need, data = need - step, data[step:]
                continue
            step = 5 - len(head)
            head, data = head + data[:step], data[step:]
            if len(head) == 5:
                need = struct.unpack_from("!I", head, 1)[0] - 4
                if head[:1] == b"Z":
                    ends -= 1
                    if ends == 0:
                        return total
                head = b""


def test_rows_of_fifty_mebibytes_to_a_client_that_reads_late(hl):
    watch, slow = Watch(hl), login(hl, receive_buffer=65536)
    slow.send(query("SELECT repeat('x', 50 << 20) FROM generate_series(1, 3)"))
    wait_until(lambda: slow.read_some(0.5) is not None and slow.left_over(), 60, "it begins")
    watch.look(50)
    assert count_rest(slow) > 150 * MIB - len(slow.left_over()) - 2 * MIB
    watch.done()
    slow.drop()


def count_rest(wire: Wire) -> int:
    """The size of the rows that are left; the ReadyForQuery behind them is found by its place."""
    total, tail = len(wire.left_over()), wire.left_over()[-6:]
    while tail[-6:] != b"Z\0\0\0\5I":
        if not select.select([wire.socket], [], [], 60)[0]:
            raise TimeoutError(f"nothing more after {total} bytes")
        data = wire.socket.recv(MIB)
        if not data:
            break
        total, tail = total + len(data), (tail + data)[-6:]
    return total


def test_a_client_that_resets_in_the_middle_of_a_row(hl, pg):
    watch = Watch(hl)
    for _ in range(3):
        slow = login(hl, receive_buffer=65536)
        slow.send(query("SELECT repeat('x', 50 << 20) FROM generate_series(1, 3)"))
        wait_until(lambda s=slow: s.read_some(0.5) is not None and s.left_over(), 60, "it begins")
        slow.drop(reset=True)
        watch.look(5)
    wait_until(lambda: pg.execute("SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND "
                                  "query LIKE '%repeat%' AND pid <> pg_backend_pid()")[0][0] == 0, 30,
               "the home was told")
    watch.done()


def test_a_row_of_three_hundred_mebibytes_streams(hl):
    watch, wire = Watch(hl), login(hl)
    wire.send(query("SELECT repeat('x', 300 << 20)"))
    assert count_bytes(wire) > 300 * MIB
    watch.done()
    wire.drop()


@pytest.mark.parametrize("how", ["query", "parameter"])
def test_a_request_of_hundred_mebibytes_streams(hl, how):
    watch, wire = Watch(hl), login(hl)
    text = b"x" * (100 * MIB)
    if how == "query":
        wire.send(query(b"SELECT length('" + text + b"')"))
    else:
        wire.send(parse("SELECT length($1::text)") + bind(text) + execute() + sync())
    wire.wait_for(lambda m: m[0] == b"Z", since=len(wire.messages))
    assert b"104857600" in wire.messages[-3][1]
    watch.done()
    wire.drop()


def test_a_hundred_thousand_queries_from_a_client_that_reads_nothing(hl):
    watch, wire = Watch(hl), login(hl, receive_buffer=65536)
    out, sent = b"".join(query(f"SELECT {i}, repeat('y', 100)") for i in range(1000)), 0
    wire.socket.setblocking(False)
    rest = memoryview(out)
    while sent < 100 and select.select([], [wire.socket], [], 2)[1]:    # until nothing is taken any more
        rest = rest[wire.socket.send(rest):]
        if not rest:
            rest, sent = memoryview(out), sent + 1
    watch.look(20)
    left = bytes(rest) if len(rest) < len(out) else b""
    reader = threading.Thread(target=lambda: wire.socket.sendall(left))
    wire.socket.settimeout(60)
    whole = sent + (1 if left else 0)
    reader.start()
    wire.wait_for(lambda m: m[0] == b"Z", 1000 * whole, since=len(wire.messages))
    reader.join(60)
    rows = [m for m in wire.messages if m[0] == b"D"]
    assert len(rows) == 1000 * whole
    watch.done()
    wire.drop()


def test_copy_to_a_home_that_does_not_read(hl):
    own = login(hl)
    own_link = hl.gate.newest            # is not read any more, the others' are
    own.run("BEGIN; CREATE TEMP TABLE c (t text) ON COMMIT DROP")
    own.send(query("COPY c FROM STDIN"))
    own.wait_for(lambda m: m[0] == b"G")
    watch = Watch(hl)
    hl.gate.deaf_to = own_link
    line = copy_data("z" * 8000 + "\n") * 100
    sent, rest = 0, memoryview(line)
    own.socket.setblocking(False)
    while sent < 200 and select.select([], [own.socket], [], 1)[1]:
        rest = rest[own.socket.send(rest):]
        if not rest:
            rest, sent = memoryview(line), sent + 1
    assert sent < 200, "160 MB were taken by somebody"
    watch.look(20)
    hl.gate.deaf_to = None
    own.send(bytes(rest) + copy_done())
    own.wait_for(lambda m: m[0] == b"Z", since=len(own.messages))
    assert any(m[0] == b"C" for m in own.messages[-2:])
    own.run("COMMIT")
    watch.done()
    own.drop()

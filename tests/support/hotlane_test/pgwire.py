"""PostgreSQL's protocol, version 3, encoded and decoded by hand: what watches bytes must not lean on a driver.

Encoders return bytes; Wire is one socket that gathers whole messages. Nothing here knows what is right.
"""
import select
import socket
import struct
import time

TEXT, BINARY = 0, 1
SSL_REQUEST, GSSENC_REQUEST, CANCEL_REQUEST = 80877103, 80877104, 80877102


def cstr(text) -> bytes:
    return (text if isinstance(text, bytes) else text.encode()) + b"\0"


def message(tag: bytes, body: bytes = b"") -> bytes:
    return tag + struct.pack("!I", len(body) + 4) + body


def packet(code: int, body: bytes = b"") -> bytes:
    return struct.pack("!II", len(body) + 8, code) + body


def startup(*parameters, version=0x00030000, end=b"\0", **named) -> bytes:
    """Pairs of names and values in order, then the keywords."""
    pairs = list(parameters) + list(named.items())
    return packet(version, b"".join(cstr(n) + cstr(v) for n, v in pairs) + end)


def ssl_request() -> bytes:
    return packet(SSL_REQUEST)


def gssenc_request() -> bytes:
    return packet(GSSENC_REQUEST)


def cancel_request(pid: int, secret: bytes) -> bytes:
    return packet(CANCEL_REQUEST, struct.pack("!I", pid) + secret)


def query(sql) -> bytes:
    return message(b"Q", cstr(sql))


def parse(sql, name="", types=()) -> bytes:
    return message(b"P", cstr(name) + cstr(sql) + struct.pack(f"!H{len(types)}I", len(types), *types))


def bind(*values, portal="", name="", formats=(), results=()) -> bytes:
    """Values are None, str or bytes."""
    body = cstr(portal) + cstr(name) + struct.pack(f"!H{len(formats)}H", len(formats), *formats)
    body += struct.pack("!H", len(values))
    parts = []
    for value in values:
        raw = value.encode() if isinstance(value, str) else value
        parts.append(struct.pack("!i", -1) if raw is None else struct.pack("!I", len(raw)) + raw)
    return message(b"B", body + b"".join(parts) + struct.pack(f"!H{len(results)}H", len(results), *results))


def describe(kind: str, name="") -> bytes:
    return message(b"D", kind.encode() + cstr(name))


def execute(portal="", rows=0) -> bytes:
    return message(b"E", cstr(portal) + struct.pack("!I", rows))


def close(kind: str, name="") -> bytes:
    return message(b"C", kind.encode() + cstr(name))


def sync() -> bytes:
    return message(b"S")


def flush() -> bytes:
    return message(b"H")


def terminate() -> bytes:
    return message(b"X")


def copy_data(data) -> bytes:
    return message(b"d", data.encode() if isinstance(data, str) else data)


def copy_done() -> bytes:
    return message(b"c")


def copy_fail(why) -> bytes:
    return message(b"f", cstr(why))


def function_call(oid: int, *values, formats=(BINARY,), result=BINARY) -> bytes:
    body = struct.pack(f"!IH{len(formats)}HH", oid, len(formats), *formats, len(values))
    for raw in values:
        body += struct.pack("!i", -1) if raw is None else struct.pack("!I", len(raw)) + raw
    return message(b"F", body + struct.pack("!H", result))


def fields_of(body: bytes) -> dict[str, str]:
    """The fields of an ErrorResponse or NoticeResponse."""
    found = {}
    for part in body.split(b"\0"):
        if part:
            found[chr(part[0])] = part[1:].decode(errors="replace")
    return found


def values_of(body: bytes) -> list[bytes | None]:
    """The columns of a DataRow."""
    count, at, row = struct.unpack_from("!H", body)[0], 2, []
    for _ in range(count):
        size = struct.unpack_from("!i", body, at)[0]
        at += 4
        row.append(None if size < 0 else body[at:at + size])
        at += max(size, 0)
    return row


class Closed(Exception):
    """The other side closed, or reset, the connection."""


class Wire:
    """One connection. `messages` are all that came, (tag, body), in order."""

    def __init__(self, port: int, deadline_s: float = 20.0, receive_buffer: int | None = None):
        self.deadline_s = deadline_s
        self.messages: list[tuple[bytes, bytes]] = []
        self.at_end = self.dropped = False
        self._rest = bytearray()
        self.key: tuple[int, bytes] | None = None
        self.socket = socket.socket()
        if receive_buffer:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.socket.settimeout(deadline_s)
        self.socket.connect(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def login(self, user="postgres", database="postgres", **more):
        self.send(startup(user=user, database=database, **more))
        self.wait_for(lambda m: m[0] in b"ZE")
        if self.messages[-1][0] == b"E":
            raise RuntimeError(f"login refused: {fields_of(self.messages[-1][1])}")
        return self

    def send(self, data: bytes):
        """All of it, while what comes is read: neither side may wait for the other."""
        view = memoryview(data)
        self.socket.setblocking(False)
        end = time.monotonic() + self.deadline_s
        while view:
            happened = self._poll(select.POLLOUT | (0 if self.at_end else select.POLLIN), 1)
            if happened & ~select.POLLOUT and not self.at_end:
                self.read_some()
            if happened & ~select.POLLIN:
                try:
                    view = view[self.socket.send(view[:1 << 20]):]
                except BlockingIOError:
                    pass
                except OSError as e:
                    raise Closed(str(e)) from e
            if time.monotonic() > end:
                raise TimeoutError(f"{len(view)} bytes could not be sent")

    def _poll(self, events: int, wait_s: float) -> int:
        """What of `events` (or an end, or a fault) there is. select() knows no socket above 1,023."""
        poll = select.poll()
        poll.register(self.socket, events)
        happened = poll.poll(wait_s * 1000)
        return happened[0][1] if happened else 0

    def read_some(self, wait_s: float = 0.0) -> bool:
        """False: nothing came, or the end."""
        if self.at_end or not self._poll(select.POLLIN, wait_s):
            return False
        try:
            data = self.socket.recv(1 << 20)
        except BlockingIOError:
            return False
        except OSError:
            data = b""
        if not data:
            self.at_end = True
            return False
        self._rest += data
        self._gather()
        return True

    def _gather(self):
        at = 0
        while len(self._rest) - at >= 5:
            size = struct.unpack_from("!I", self._rest, at + 1)[0]
            if len(self._rest) - at <= size:
                break
            tag, body = bytes(self._rest[at:at + 1]), bytes(self._rest[at + 5:at + 1 + size])
            self.messages.append((tag, body))
            if tag == b"K":
                self.key = (struct.unpack_from("!I", body)[0], body[4:])
            at += size + 1
        del self._rest[:at]

    def one_byte(self) -> bytes:
        """The answer to an SSLRequest: no message."""
        self.socket.settimeout(self.deadline_s)
        try:
            return self.socket.recv(1)
        except ConnectionError:
            return b""

    def wait_for(self, claim, count: int = 1, since: int = 0):
        """Until `count` messages from `since` on satisfy the claim; returns the index behind the last."""
        end = time.monotonic() + self.deadline_s
        at, seen = since, 0
        while True:
            while at < len(self.messages):
                seen += 1 if claim(self.messages[at]) else 0
                at += 1
                if seen == count:
                    return at
            if self.at_end:
                raise Closed(f"closed after {self.messages[since:]!r:.2000}")
            if time.monotonic() > end:
                raise TimeoutError(f"only {seen} of {count} came: {self.messages[since:]!r:.2000}")
            if self.read_some(0.2):
                end = time.monotonic() + self.deadline_s

    def wait_end(self):
        end = time.monotonic() + self.deadline_s
        while not self.at_end:
            if time.monotonic() > end:
                raise TimeoutError(f"not closed: {self.messages[-5:]!r:.2000}")
            self.read_some(0.2)

    def left_over(self) -> bytes:
        return bytes(self._rest)

    def run(self, sql: str) -> list[list[bytes | None]]:
        """A simple query; its rows. Errors are raised as RuntimeError."""
        since = len(self.messages)
        self.send(query(sql))
        self.wait_for(lambda m: m[0] == b"Z", since=since)
        for tag, body in self.messages[since:]:
            if tag == b"E":
                raise RuntimeError(fields_of(body).get("M", "?"))
        return [values_of(body) for tag, body in self.messages[since:] if tag == b"D"]

    def half_close(self):
        self.socket.shutdown(socket.SHUT_WR)

    def drop(self, reset: bool = False):
        if reset:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()
        self.at_end = self.dropped = True

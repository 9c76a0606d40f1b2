"""Scripts of raw messages, run against any address, and what is compared of what came back.

A Case is a name and steps. Each step is a small function over a Play: one run of the case at one address.
What may differ is masked, and nothing else: the process number and secret in BackendKeyData, and the process
number in NotificationResponse. A case that says `own=REASON` is answered by hotlane itself where PostgreSQL
answers: then file, line and routine of errors are left out as well.
"""
import struct
from dataclasses import dataclass, field

from . import pgwire
from .pgwire import Closed, Wire


@dataclass
class Case:
    name: str
    steps: tuple
    own: str = ""              # reason why an error is hotlane's own
    ends: str = ""             # SQLSTATE of the one FATAL with which hotlane itself ends it; compared with nothing
    owed: int = 0              # of `ends`: how many requests before it are answered first
    more: str = ""             # reason why hotlane may say more than PostgreSQL does
    unordered: str = ""        # reason why the order of messages is not compared
    deaf: str = ""             # reason why only what is left behind is compared
    only: str = ""             # a pool mode: what it says is not promised in the other
    why_only: str = ""
    isolation: str = ""        # reason why it shows isolation levels, which hotlane chooses (rule 9)
    whole: bool = False        # too long to be sent byte by byte
    after: str = ""            # a query, asked directly at the end, whose rows are compared too
    startup: tuple | None = () # further startup parameters; None: the script begins with the bare socket
    user: str = "app"
    alone: str = ""            # reason why no neighbour may use the pool meanwhile


def case(name, *steps, **more) -> Case:
    return Case(name, steps, **more)


class Play:
    """One run. `wires` by name; `log` what the outside saw."""

    def __init__(self, port: int, outside, case_: Case, byte_by_byte: bool = False, neighbour=None,
                 direct: bool = False):
        self.port, self.outside, self.case, self.direct = port, outside, case_, direct
        self.byte_by_byte, self.neighbour = byte_by_byte and not case_.whole, neighbour
        self.wires: dict[str, Wire] = {}
        self.marks: dict[str, int] = {}
        self.bare: dict[str, bytes] = {}
        self.log: list = []
        self.name = "a"

    @property
    def wire(self) -> Wire:
        return self.wires[self.name]

    def open(self, name: str, parameters=()):
        self.name = name
        self.wires[name] = Wire(self.port)
        self.marks[name] = 0
        if parameters is not None:
            self.send(pgwire.startup(("user", self.case.user), ("database", "parity"), *parameters))
            self.wait(lambda m: m[0] in (b"Z", b"E"))

    def send(self, data: bytes):
        try:
            if self.byte_by_byte:
                for at in range(len(data)):
                    self.wire.send(data[at:at + 1])
            else:
                self.wire.send(data)
        except Closed:
            pass                       # the end is seen, and compared, when it is waited for

    def wait(self, claim, count: int = 1):
        try:
            self.marks[self.name] = self.wire.wait_for(claim, count, self.marks[self.name])
        except Closed:
            self.marks[self.name] = len(self.wire.messages)

    def run(self) -> dict:
        if self.neighbour:
            self.neighbour.next()
        try:
            self.open("a", self.case.startup)
            for step in self.case.steps:
                if self.neighbour:
                    self.neighbour.next()
                step(self)
            for name, wire in self.wires.items():
                if not wire.at_end:
                    self.name = name
                    self.send(pgwire.terminate())
                    wire.wait_end()
            if self.case.after:
                self.log.append(self.outside(self.case.after))
            return self.transcript()
        finally:
            for wire in self.wires.values():
                wire.drop()
            if self.neighbour:
                self.neighbour.rest()

    def transcript(self) -> dict:
        own = bool(self.case.own)
        said = {name: [masked(tag, body, own) for tag, body in wire.messages] +
                ([("half a message", wire.left_over())] if wire.left_over() and not wire.dropped else [])
                for name, wire in self.wires.items()}
        return {"said": said, "bare": self.bare, "outside": self.log}


def masked(tag: bytes, body: bytes, own: bool = False):
    if tag == b"K":
        return tag, b"key of %d bytes" % (len(body) - 4)
    if tag == b"A":
        return tag, b"...." + body[4:]
    if own and tag in (b"E", b"N"):
        fields = pgwire.fields_of(body)
        return tag, str({k: fields.get(k) for k in "SVC"}).encode()
    return tag, body


def same(case_: Case, expected: list[str], got: list[str]) -> bool:
    if case_.deaf:
        return [x for x in expected if x.startswith("outside")] == [x for x in got if x.startswith("outside")]
    if case_.more:
        rest = iter(got)
        return all(line in rest for line in expected)
    if case_.unordered:
        return sorted(expected) == sorted(got)
    return expected == got


def shown(transcript: dict) -> list[str]:
    """One line a message, for the assertion's diff."""
    lines = []
    for name, messages in transcript["said"].items():
        for tag, body in messages:
            text = repr(body if len(body) < 600 else body[:300] + b"... %d bytes" % len(body))
            lines.append(f"{name} {tag.decode(errors='replace') if isinstance(tag, bytes) else tag} {text}")
    lines += [f"bare {k} {v!r}" for k, v in transcript["bare"].items()]
    return lines + [f"outside {x!r}" for x in transcript["outside"]]


# ---- steps ----

def send(*messages):
    """In one write."""
    data = b"".join(messages)
    return lambda play: play.send(data)


def ready(count: int = 1):
    return lambda play: play.wait(lambda m: m[0] == b"Z", count)


def until(tags: str, count: int = 1):
    wanted = tags.encode()
    return lambda play: play.wait(lambda m: m[0] in wanted, count)


def ask(sql: str, count: int = 1):
    """A simple query and its ReadyForQuery."""
    def step(play):
        play.send(pgwire.query(sql))
        play.wait(lambda m: m[0] == b"Z", count)
    return step


def closed():
    return lambda play: play.wire.wait_end()


def half_close():
    return lambda play: play.wire.half_close()


def drop():
    """Gone without a word; what has come unasked-for by then is nobody's."""
    def step(play):
        del play.wire.messages[play.marks[play.name]:]
        play.wire.drop()
    return step


def client(name: str, parameters=()):
    """From here on this client acts; it connects when it is named first."""
    def step(play):
        if name in play.wires:
            play.name = name
        else:
            play.open(name, parameters)
    return step


def one_byte():
    """The answer to SSLRequest and its kin."""
    def step(play):
        play.bare[play.name] = play.bare.get(play.name, b"") + play.wire.one_byte()
    return step


def no_gss():
    """GSSENCRequest. PostgreSQL may offer it, so it is only asked of hotlane, which must say no."""
    def step(play):
        if not play.direct:
            play.send(pgwire.gssenc_request())
            assert play.wire.one_byte() == b"N"
    return step


def ask_until(tag: str, sql: str):
    """Asks until the reply has such a message, and forgets the replies before: a signal takes its time."""
    def step(play):
        from .process import wait_until
        wire = play.wire

        def told():
            since = len(wire.messages)
            ask(sql)(play)
            if any(m[0] == tag.encode() for m in wire.messages[since:]):
                return True
            del wire.messages[since:]
            play.marks[play.name] = since
            return False
        wait_until(told, 20, f"{tag} comes")
    return step


def outside(sql: str):
    """Asked directly at the server, by the superuser; its rows are compared too."""
    return lambda play: play.log.append(play.outside(sql))


def eventually(sql: str):
    """Until a direct query has a true first column; bounded."""
    from .process import wait_until
    return lambda play: wait_until(lambda: play.outside(sql)[0][0], 20, sql)


def cancel():
    """Of what the client that acts is doing now."""
    def step(play):
        pid, secret = play.wire.key
        other = Wire(play.port)
        other.send(pgwire.cancel_request(pid, secret))
        other.wait_end()
        other.drop()
    return step


def many(count: int, make):
    """make(i) for each i, in one write."""
    return send(*[make(i) for i in range(count)])



@dataclass
class Neighbour:
    """Another client of the same pool that begins a transaction on a link, holds it, dirties what it may, and
    lets go at the next step: the client under test is lent another link, or a link in another state."""
    port: int
    turn: int = 0
    wires: list = field(default_factory=list)
    dirt: tuple = (
        "SET TimeZone = 'Pacific/Chatham'; SET search_path = pg_catalog; BEGIN",
        "SET application_name = 'neighbour'; SET DateStyle = 'German'; BEGIN; SET LOCAL work_mem = '1MB'",
        "SET extra_float_digits = -3; SET bytea_output = 'escape'; BEGIN",
        "BEGIN; SELECT set_config('my.own', 'dirty', true)",
    )

    def next(self):
        if not self.wires:
            self.wires = [Wire(self.port).login("app", "parity") for _ in range(2)]
            self.open = [False, False]
        for index in (0, 1):
            wire = self.wires[index]
            if self.open[index] and (self.turn + index) % 2 == 0:
                wire.run("COMMIT")
                self.open[index] = False
            elif not self.open[index] and (self.turn + index) % 2 == 1:
                wire.run(self.dirt[self.turn % len(self.dirt)])
                self.open[index] = True
                since = len(wire.messages)
                wire.send(pgwire.parse("SELECT 'a stranger'") + pgwire.sync())
                wire.wait_for(lambda m: m[0] == b"Z", since=since)
        self.turn += 1

    def rest(self):
        for index, wire in enumerate(self.wires):
            if self.open[index]:
                wire.run("COMMIT")
                self.open[index] = False

    def close(self):
        for wire in self.wires:
            wire.drop()


def oid(name: str) -> int:
    """Of built-in functions that FunctionCall cases use."""
    return {"int4pl": 177, "textcat": 1258, "lo_creat": 957, "lo_open": 952, "loread": 954, "lowrite": 955,
            "lo_unlink": 964, "int4div": 154, "pg_notify": 3036}[name]


def int4(value: int) -> bytes:
    return struct.pack("!i", value)

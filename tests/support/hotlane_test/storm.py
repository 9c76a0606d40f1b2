"""Many rude clients over few links: each asks for rows that carry its own tag, and drops, cancels, pipelines.

Everything is counted. A client that reads a row that is not its own, a reply too few or too many, or an error
that it did not ask for, ends the storm with that as its first fault.
"""
import asyncio
import random
import struct

from .pgwire import (bind, cancel_request, copy_data, copy_done, execute, fields_of, parse, query, startup, sync,
                     terminate, values_of)


class Fault(AssertionError):
    pass


class Client:
    def __init__(self, number: int, port: int, user: str, database: str, seed: int):
        self.tag = f"client-{number}-"
        self.port, self.user, self.database = port, user, database
        self.random = random.Random(seed * 1_000_003 + number)
        self.reader = self.writer = None
        self.asked = 0
        self.prepared = False
        self.setting = None
        self.done: dict[str, int] = {}

    # ---- the wire ----
    async def connect(self):
        self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port)
        self.prepared, self.setting = False, None
        self.writer.write(startup(user=self.user, database=self.database))
        while True:
            tag, body = await self.message()
            if tag == b"K":
                self.key = (struct.unpack_from("!I", body)[0], body[4:])
            elif tag == b"E":
                raise Fault(f"{self.tag} login: {fields_of(body)}")
            elif tag == b"Z":
                return

    async def message(self):
        head = await self.reader.readexactly(5)
        return head[:1], await self.reader.readexactly(struct.unpack_from("!I", head, 1)[0] - 4)

    async def replies(self, ends: int, allowed=()):
        """Rows and errors up to so many ReadyForQuery."""
        rows, errors = [], []
        while ends:
            tag, body = await asyncio.wait_for(self.message(), 120)
            if tag == b"D":
                rows.append(values_of(body))
            elif tag == b"E":
                fields = fields_of(body)
                if fields["C"] not in allowed:
                    raise Fault(f"{self.tag}: {fields}")
                errors.append(fields["C"])
            elif tag == b"Z":
                ends -= 1
        return rows, errors

    def new_tag(self) -> str:
        self.asked += 1
        return f"{self.tag}{self.asked}"

    def expect(self, rows, tags):
        got = [row[0].decode() for row in rows]
        if got != tags:
            raise Fault(f"{self.tag} asked for {tags[:5]} and read {got[:5]}")

    def drop(self):
        if self.writer:
            self.writer.transport.abort()
        self.writer = None

    # ---- what it does ----
    async def simple(self):
        tag, count = self.new_tag(), self.random.choice((0, 1, 3, 200))
        self.writer.write(query(f"SELECT '{tag}' FROM generate_series(1, {count})"))
        rows, _ = await self.replies(1)
        self.expect(rows, [tag] * count)

    async def pipeline(self):
        tags = [self.new_tag() for _ in range(self.random.randint(2, 9))]
        out = b""
        for tag in tags:
            out += query(f"SELECT '{tag}'") if self.random.random() < 0.4 else (
                parse("SELECT $1::text") + bind(tag) + execute() + sync())
        self.writer.write(out)
        rows, _ = await self.replies(len(tags))
        self.expect(rows, tags)

    async def failing(self):
        tags = [self.new_tag() for _ in range(3)]
        self.writer.write(parse("SELECT $1::text") + bind(tags[0]) + execute() + sync()
                          + parse("SELECT 1/0") + bind() + execute()
                          + parse("SELECT 'never'") + bind() + execute() + sync()
                          + query(f"SELECT '{tags[1]}'"))
        rows, errors = await self.replies(3, ("22012",))
        self.expect(rows, tags[:2])
        if errors != ["22012"]:
            raise Fault(f"{self.tag} wanted one error and had {errors}")

    async def named(self):
        """One name for all clients, another text for each."""
        tag = self.new_tag()
        first = b"" if self.prepared else parse(f"SELECT '{self.tag}' || $1::text", "the_name")
        self.prepared = True
        self.writer.write(first + bind(str(self.asked), name="the_name") + execute() + sync())
        rows, _ = await self.replies(1)
        self.expect(rows, [tag])

    async def transaction(self):
        tags, whole = [self.new_tag() for _ in range(3)], self.random.random() < 0.5
        texts = ["BEGIN", *[f"SELECT '{t}'" for t in tags], self.random.choice(("COMMIT", "ROLLBACK"))]
        rows = []
        if whole:
            self.writer.write(b"".join(query(t) for t in texts))
            rows, _ = await self.replies(len(texts))
        else:
            for text in texts:
                self.writer.write(query(text))
                rows += (await self.replies(1))[0]
        self.expect(rows, tags)

    async def settings(self):
        if self.setting is None or self.random.random() < 0.3:
            self.setting = self.new_tag()
            self.writer.write(query(f"SET application_name = '{self.setting}'"))
            await self.replies(1)
        self.writer.write(query("SHOW application_name"))
        rows, _ = await self.replies(1)
        self.expect(rows, [self.setting])

    async def copy(self):
        tag = self.new_tag()
        self.writer.write(query("BEGIN; CREATE TEMP TABLE c (t text) ON COMMIT DROP; COPY c FROM STDIN"))
        while (await self.message())[0] != b"G":
            pass
        self.writer.write(copy_data(tag + "\n") + copy_done())
        await self.replies(1)
        self.writer.write(query("SELECT t FROM c; COMMIT"))
        rows, _ = await self.replies(1)
        self.expect(rows, [tag])

    async def send_cancel(self):
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        writer.write(cancel_request(*self.key))
        await reader.read()                      # its end: from now on it may hit nothing any more
        writer.close()

    async def cancelled(self):
        tag = self.new_tag()
        self.writer.write(query(f"SELECT '{tag}', pg_sleep({self.random.random() * 0.05})"))
        cancel = asyncio.create_task(self.send_cancel())
        rows, errors = await self.replies(1, ("57014",))
        await cancel
        if len(rows) + len(errors) != 1:
            raise Fault(f"{self.tag} cancelled: {rows} {errors}")
        self.expect(rows, [tag] * len(rows))
        await self.simple()                      # not hit by it

    async def stray_cancel(self):
        await self.send_cancel()
        await self.simple()

    async def rude(self):
        """Goes away at a bad moment, and comes back as somebody new."""
        moment = self.random.randrange(7)
        if moment == 0:
            self.writer.write(query(f"SELECT '{self.new_tag()}', pg_sleep(0.02)"))
        elif moment == 1:
            self.writer.write(query("BEGIN"))
            await self.replies(1)
        elif moment == 2:
            self.writer.write(query("SELECT repeat('x', 10000) FROM generate_series(1, 2000)"))
            await self.message()
        elif moment == 3:
            self.writer.write(parse("SELECT 'nobody reads it'") + bind() + execute())
        elif moment == 4:
            self.writer.write(query("SELECT 'half a message'")[:11])
        elif moment == 5:
            self.writer.write(query("BEGIN; CREATE TEMP TABLE c (t text) ON COMMIT DROP; COPY c FROM STDIN")
                              + copy_data("a line\n"))
        else:
            self.writer.write(query("SELECT 'gone'") + terminate())
        if self.random.random() < 0.5:
            await self.writer.drain()
        self.drop()
        await self.connect()

    ACTIONS = (("simple", 6), ("pipeline", 6), ("failing", 3), ("named", 6), ("transaction", 5), ("settings", 4),
               ("copy", 2), ("cancelled", 3), ("stray_cancel", 2), ("rude", 5))

    async def run(self, until):
        await self.connect()
        names, weights = zip(*self.ACTIONS)
        while not until():
            name = self.random.choices(names, weights)[0]
            await getattr(self, name)()
            self.done[name] = self.done.get(name, 0) + 1
        self.writer.write(terminate())
        await self.reader.read()
        self.drop()


def storm(port: int, count: int, seconds: float, user="app", database="parity", seed=1) -> dict[str, int]:
    """Runs them all; returns how often each thing was done. Raises the first fault."""
    async def all_of_them():
        loop = asyncio.get_running_loop()
        clients = [Client(i, port, user, database, seed) for i in range(count)]
        failed = asyncio.Event()
        end = loop.time() + seconds
        tasks = []

        async def guarded(client):
            try:
                await client.run(lambda: failed.is_set() or loop.time() > end)
            except BaseException:
                failed.set()
                raise
            finally:
                client.drop()

        tasks = [asyncio.create_task(guarded(c)) for c in clients]
        for result in await asyncio.gather(*tasks, return_exceptions=True):
            if isinstance(result, BaseException):
                raise result
        total: dict[str, int] = {}
        for client in clients:
            for name, times in client.done.items():
                total[name] = total.get(name, 0) + times
        return total
    return asyncio.run(all_of_them())

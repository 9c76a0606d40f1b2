"""A client of protocol v3 on a raw socket: shows every message as it came."""

import socket
import struct


class ServerError(Exception):
    def __init__(self, sqlstate, message):
        super().__init__(f"{sqlstate}: {message}")
        self.sqlstate = sqlstate
        self.message = message


class Answer:
    """What came for one request up to ReadyForQuery (or until the time was over)."""

    def __init__(self):
        self.columns = []  # (name, type)
        self.rows = []
        self.tags = []
        self.errors = []
        self.status = None  # None: no ReadyForQuery came
        self.kinds = ""  # tags of all messages, in order

    @property
    def error(self):
        return self.errors[0] if self.errors else None

    def check(self):
        if self.errors:
            raise self.errors[0]
        return self


def message(tag, body=b""):
    return tag + struct.pack("!i", len(body) + 4) + body


def cstring(text):
    return text.encode() + b"\0"


class Client:
    def __init__(self, host, port, timeout=20.0, user="facts", database="facts", first=b""):
        self.socket = socket.create_connection((host, port), timeout)
        self.timeout = timeout
        self.buffer = b""
        self.first_replies = b""
        for byte in range(0, len(first), 8):
            self.socket.sendall(first[byte : byte + 8])
            self.first_replies += self.socket.recv(1)
        body = struct.pack("!i", 196608)
        body += cstring("user") + cstring(user) + cstring("database") + cstring(database) + b"\0"
        self.socket.sendall(struct.pack("!i", len(body) + 4) + body)
        self.parameters, self.key, self.startup_kinds = {}, None, ""
        while True:
            tag, body = self.receive()
            self.startup_kinds += tag
            if tag == "S":
                name, value = body[:-1].split(b"\0")
                self.parameters[name.decode()] = value.decode()
            elif tag == "K":
                self.key = body
            elif tag == "E":
                raise error_of(body)
            elif tag == "Z":
                return

    def close(self):
        self.socket.close()

    def receive(self):
        while True:
            if len(self.buffer) >= 5:
                size = struct.unpack("!i", self.buffer[1:5])[0] + 1
                if len(self.buffer) >= size:
                    tag, body = chr(self.buffer[0]), self.buffer[5:size]
                    self.buffer = self.buffer[size:]
                    return tag, body
            chunk = self.socket.recv(65536)
            if not chunk:
                raise ConnectionError("the server closed the connection")
            self.buffer += chunk

    def send(self, data):
        self.socket.sendall(data)

    def answer(self, timeout=None):
        """Reads up to ReadyForQuery. With a timeout: up to then, whatever came."""
        result = Answer()
        formats = []
        self.socket.settimeout(timeout or self.timeout)
        try:
            while True:
                tag, body = self.receive()
                result.kinds += tag
                if tag == "T":
                    result.columns, formats = columns_of(body)
                elif tag == "D":
                    result.rows.append(row_of(body))
                elif tag == "C":
                    result.tags.append(body[:-1].decode())
                elif tag == "E":
                    result.errors.append(error_of(body))
                elif tag == "Z":
                    result.status = body.decode()
                    return result
        except TimeoutError:
            if timeout is None:
                raise
            return result
        finally:
            self.socket.settimeout(self.timeout)

    def ask(self, sql):
        """A simple Query, errors and all."""
        self.send(message(b"Q", cstring(sql)))
        return self.answer()

    def run(self, sql):
        """A simple Query that must succeed."""
        return self.ask(sql).check()

    def value(self, sql):
        rows = self.run(sql).rows
        return rows[0][0].decode() if rows and rows[0][0] is not None else None

    def extended(self, sql, parameters=(), types=(), formats=(), result_format=0, limit=0,
                 describe=True):
        data = message(b"P", b"\0" + cstring(sql) + struct.pack("!h", len(types)) +
                       b"".join(struct.pack("!I", t) for t in types))
        data += message(b"B", bind_body(parameters, formats, result_format))
        if describe:
            data += message(b"D", b"P\0")
        data += message(b"E", b"\0" + struct.pack("!i", limit)) + message(b"S")
        self.send(data)
        return self.answer()


def bind_body(parameters, formats, result_format):
    body = b"\0\0" + struct.pack("!h", len(formats)) + b"".join(struct.pack("!h", f) for f in formats)
    body += struct.pack("!h", len(parameters))
    for value in parameters:
        body += struct.pack("!i", -1) if value is None else struct.pack("!i", len(value)) + value
    return body + struct.pack("!hh", 1, result_format)


def columns_of(body):
    count, at = struct.unpack("!h", body[:2])[0], 2
    columns, formats = [], []
    for _ in range(count):
        end = body.index(b"\0", at)
        name = body[at:end].decode()
        kind, _, _, form = struct.unpack("!IhiH", body[end + 7 : end + 19])
        columns.append((name, kind))
        formats.append(form)
        at = end + 19
    return columns, formats


def row_of(body):
    count, at = struct.unpack("!h", body[:2])[0], 2
    row = []
    for _ in range(count):
        size = struct.unpack("!i", body[at : at + 4])[0]
        at += 4
        row.append(None if size < 0 else body[at : at + size])
        at += max(size, 0)
    return row


def error_of(body):
    fields = {part[:1]: part[1:].decode() for part in body.split(b"\0") if part}
    return ServerError(fields.get(b"C", ""), fields.get(b"M", ""))

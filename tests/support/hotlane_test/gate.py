"""A TCP gate between hotlane and a home, with named faults."""
import random
import select
import socket
import threading


class Gate:
    """Forwards bytes to 127.0.0.1:target. Faults are set on the object while it runs.

    cut_after(word, chance): when a client message carries `word` (COMMIT), the bytes are forwarded and
    the link is cut before the answer can pass: the outcome is then unknown to the client's side.
    """

    def __init__(self, target: int, seed: int = 1):
        self.target = target
        self.word: bytes | None = None
        self.chance = 0.0
        self.refuse = False
        self.silent = False
        self.blocked: set[str] = set()   # "to home", "to client": a partition; what was sent comes after it
        self.deaf_to = None           # a pair whose client's side is not read
        self.newest = None            # the pair that was opened last
        self.cuts = 0
        self.random = random.Random(seed)
        self._lock = threading.Lock()
        self._stop = False
        self._pairs: set = set()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._listener.settimeout(0.2)
        self.port = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    def cut_after(self, word: str | None, chance: float = 1.0):
        self.word, self.chance = (word.encode() if word else None), chance

    def cut_all(self):
        with self._lock:
            pairs = list(self._pairs)
        for pair in pairs:
            self._close(pair)

    def close(self):
        self._stop = True
        self._listener.close()
        self.cut_all()
        self._thread.join(5)

    def _accept(self):
        while not self._stop:
            try:
                client, _ = self._listener.accept()
            except (TimeoutError, OSError):
                continue
            if self.refuse:
                client.close()
                continue
            # Nobody answers a SYN across a partition: the link stays open here and is never served.
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket):
        while self.blocked and not self._stop:
            select.select([], [], [], 0.1)
        try:
            home = socket.create_connection(("127.0.0.1", self.target), timeout=5)
        except OSError:
            client.close()
            return
        for s in (client, home):
            s.settimeout(None)
            s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        pair = (client, home)
        with self._lock:
            self._pairs.add(pair)
            self.newest = pair
        try:
            self._pump(pair)
        except (OSError, ValueError):   # ValueError: cut_all() closed a socket that select was to watch
            pass
        self._close(pair)

    def _pump(self, pair):
        client, home = pair
        while not self._stop:
            watched = [home] if self.deaf_to is pair else [client, home]
            if "to home" in self.blocked:
                watched = [s for s in watched if s is not client]
            if "to client" in self.blocked:
                watched = [s for s in watched if s is not home]
            ready, _, _ = select.select(watched, [], [], 0.2)
            for side in ready:
                data = side.recv(65536)
                if not data:
                    return
                if self.silent:
                    continue
                if side is client and self._strikes(data):
                    home.sendall(data)
                    # The home has it all and answers; nobody hears. Wait for the answer, then cut.
                    select.select([home], [], [], 2.0)
                    self.cuts += 1
                    return
                (home if side is client else client).sendall(data)

    def _strikes(self, data: bytes) -> bool:
        return bool(self.word) and self.word in data.upper() and self.random.random() < self.chance

    def _close(self, pair):
        with self._lock:
            self._pairs.discard(pair)
        for s in pair:
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            s.close()

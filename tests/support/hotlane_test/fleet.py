"""Several hotlanes that share a state store, one engine and one PostgreSQL home."""
from .gate import Gate
from .process import clear_folder, make_folder, wait_until
from .servers import DevEngine, Hotlane, Postgres, end_servers

POLICIES = """policies:
  default:
    mode: observe
    rails: {hold_max: 5s, moves_per_hour: 1000, min_stay: 0s, cooldown: 1s}
"""


class Fleet:
    """gates: every sidecar has its own way to the store and to both homes, which can be cut:
    fleet.gates[i]["store"] and so on."""

    def __init__(self, size: int, tool: str = "shop", lease: str = "3s", standby: bool = False,
                 gates: bool = False):
        self.folder, self.tool = make_folder("hotlane-fleet-"), tool
        self.sidecars: list[Hotlane] = []
        self.gates: list[dict[str, Gate]] = []
        try:
            # The store on a server of its own: it dies without taking the home with it.
            self.home = Postgres(self.folder).start()
            self.home.create("app", tool)
            self.store = Postgres(self.folder).start()
            self.store.create("app", "state")
            self.standby = self.store.standby() if standby else None
            self.engine = DevEngine(self.folder, [tool], "2ms", "50ns").start()
            for i in range(size):
                ways = {"store": self.store.port, "home": self.home.port, "engine": self.engine.ports[tool]}
                if self.standby:
                    ways["standby"] = self.standby.port
                if gates:
                    self.gates.append({name: Gate(port) for name, port in ways.items()})
                    ways = {name: gate.port for name, gate in self.gates[-1].items()}
                ports = ",".join(str(ways[name]) for name in ("store", "standby") if name in ways)
                hosts = ",".join("127.0.0.1" for _ in ports.split(","))
                folder = self.folder / f"s{i}"
                folder.mkdir()
                folder.chmod(0o777)
                state = (f'{{postgres: "host={hosts} port={ports} dbname=state user=app", name: s{i}, '
                         f"lease: {lease}, statement_timeout: 1s}}")
                self.sidecars.append(Hotlane(folder, self._config(ways), state=state))
        except BaseException:
            self.close()
            raise

    def _config(self, ways: dict[str, int]) -> str:
        return ("postgres:\n  main: {address: 127.0.0.1:%d, admin: {user: postgres}}\n" % ways["home"] + POLICIES +
                f"tools:\n  - name: {self.tool}\n    match: {{database: {self.tool}}}\n"
                f"    engine: {{kind: twill, address: 127.0.0.1:{ways['engine']}}}\n"
                f"    postgres: {{server: main, database: {self.tool}, role: app}}\n")

    def cut(self, sidecar: Hotlane, way: str = "store", directions=("to home", "to client")):
        self.gates[self.sidecars.index(sidecar)][way].blocked = set(directions)

    def heal(self):
        for gate in (g for ways in self.gates for g in ways.values()):
            gate.blocked = set()

    def start(self):
        for s in self.sidecars:
            s.start()
        return self

    def alive(self) -> list[Hotlane]:
        return [s for s in self.sidecars if s.process and s.process.alive()]

    def leader(self, deadline_s: float = 30) -> Hotlane:
        """The sidecar that leads and decides; waits for one."""
        return wait_until(self._leader, deadline_s, "a leader decides", 0.05)

    def _leader(self):
        for s in self.alive():
            done = s.cli("fleet", "-o", "json", check=False, timeout=10)
            if done.returncode == 0 and '"state": "leading"' in done.stdout:
                return s
        return None

    def homes(self) -> list[str]:
        return [s.where(self.tool)["home"] if s.where(self.tool)["served"] else "-" for s in self.alive()]

    def wait_home(self, home: str, deadline_s: float = 60):
        wait_until(lambda: set(self.homes()) == {home}, deadline_s, f"all sidecars serve at {home}")

    def move(self, home: str, deadline_s: float = 120):
        """Until a move to `home` has succeeded; one may be undone by what a test does meanwhile."""
        def moved():
            done = self.leader().route(self.tool, home)
            if done.returncode != 0 and set(self.homes()) != {home}:
                raise RuntimeError(done.stdout + done.stderr)
            return True
        wait_until(moved, deadline_s, f"a move to {home}", 0.2)
        self.wait_home(home)

    def close(self):
        end_servers(self.sidecars)
        for gate in (g for ways in self.gates for g in ways.values()):
            gate.close()
        end_servers(getattr(self, name, None) for name in ("engine", "standby", "store", "home"))
        clear_folder(self.folder)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

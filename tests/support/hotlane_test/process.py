"""Starting and ending programs: by pid, with deadlines, never by name."""
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

REPO = Path(__file__).resolve().parents[3]


def build_dir() -> Path:
    """Where the programs were built: HOTLANE_BUILD, or build/ in the checkout."""
    return Path(os.environ.get("HOTLANE_BUILD", REPO / "build"))


def program(name: str) -> str:
    for folder in ("router/app", "tests/devengine", "tests/integration", "."):
        path = build_dir() / folder / name
        if path.exists():
            return str(path)
    raise FileNotFoundError(f"{name} is not built in {build_dir()}; run tests/run.sh first")


def unprivileged_user() -> str | None:
    """The user to run servers as when we are root (PostgreSQL refuses root); None: as ourselves."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        try:
            pwd.getpwnam(name)
            return name
        except KeyError:
            continue
    raise RuntimeError("no unprivileged user to run PostgreSQL as")


def as_unprivileged(command: list[str]) -> list[str]:
    user = unprivileged_user()
    return ["setpriv", f"--reuid={user}", f"--regid={user}", "--init-groups", *command] if user else command


def free_port() -> int:
    """A port that was free a moment ago, outside the range that the kernel gives to clients."""
    import random
    for _ in range(200):
        port = random.randint(20_000, 31_000)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
                return port
            except OSError:
                continue
    raise RuntimeError("no free port found")


def make_folder(prefix: str) -> Path:
    folder = Path(tempfile.mkdtemp(prefix=prefix))
    user = unprivileged_user()
    if user:
        shutil.chown(folder, user, user)
    folder.chmod(0o755)
    return folder


def clear_folder(folder: Path):
    """Removes a test's folder; HOTLANE_KEEP_FOLDERS=1 leaves it to be looked at."""
    if os.environ.get("HOTLANE_KEEP_FOLDERS"):
        print(f"kept {folder}")
    else:
        shutil.rmtree(folder, ignore_errors=True)


def wait_until(claim, deadline_s: float, what: str, interval_s: float = 0.02):
    """Waits for claim() to be true and returns its value; fails loudly at the deadline."""
    end = time.monotonic() + deadline_s
    error = None
    while True:
        try:
            value = claim()
            if value:
                return value
            error = None
        except Exception as e:  # the condition itself may fail while a server starts
            error = e
        if time.monotonic() > end:
            raise TimeoutError(f"not within {deadline_s} s: {what}" + (f" (last: {error})" if error else ""))
        time.sleep(interval_s)


class Process:
    """One child with its output in a file; ended by pid, and waited for."""

    def __init__(self, command: list[str], log: Path, env: dict | None = None, privileged: bool = False):
        self.command, self.log_path = command, log
        full_env = dict(os.environ, **(env or {}))
        self._log = open(log, "ab")
        self.child = subprocess.Popen(
            command if privileged else as_unprivileged(command),
            stdin=subprocess.DEVNULL, stdout=self._log, stderr=subprocess.STDOUT,
            env=full_env, cwd="/", start_new_session=True)

    @property
    def pid(self) -> int:
        return self.child.pid

    def alive(self) -> bool:
        return self.child.poll() is None

    def output(self) -> str:
        return self.log_path.read_text(errors="replace")

    def signal(self, number: int):
        if self.alive():
            os.kill(self.pid, number)

    def wait(self, deadline_s: float = 20.0) -> int:
        return self.child.wait(timeout=deadline_s)

    def stop(self, deadline_s: float = 20.0) -> int:
        self.signal(signal.SIGTERM)
        try:
            code = self.wait(deadline_s)
        except subprocess.TimeoutExpired:
            self.kill()
            raise TimeoutError(f"{self.command[0]} did not end on SIGTERM\n{self.output()[-2000:]}")
        self._log.close()
        return code

    def kill(self):
        self.signal(signal.SIGKILL)
        self.child.wait(timeout=20)
        self._log.close()

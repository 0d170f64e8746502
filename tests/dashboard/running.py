"""A real `plimsoll` in its own process, own data folder and own port, for tests of what happens around it."""

import http.client
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.services import free_port

PLIMSOLL = [sys.executable, "-P", "-m", "dashboard.cli"]
START_SECONDS = 180.0  # with other tests beside
PATIENCE = 3  # times what a quiet machine needs
# Some machines forbid bytecode beside the sources: compiled once for all processes of a run, each starts much sooner.
BYTECODE = {
    "PYTHONPYCACHEPREFIX": sys.pycache_prefix or str(Path(tempfile.gettempdir()) / f"plimsoll-bytecode-{os.getuid()}"),
    "PYTHONDONTWRITEBYTECODE": "",
}


def environment_for(folder: Path, **settings: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PLIMSOLL_", "DATABASE_URL"))}
    return {**kept, **BYTECODE, "PLIMSOLL_DATA": str(folder / "data"), "PLIMSOLL_FOLLOW": "off", **settings}


def run_plimsoll(folder: Path, *arguments: str, typed: str = "", **settings: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [*PLIMSOLL, *arguments],
        env=environment_for(folder, **settings),
        cwd=folder,
        input=typed,
        capture_output=True,
        text=True,
        timeout=START_SECONDS,
        check=False,
    )


def wait_until(condition: Callable[[], bool], *, seconds: float, what: str) -> None:
    """`seconds` are those of a quiet machine."""
    give_up_at = time.monotonic() + seconds * PATIENCE
    while not condition():
        assert time.monotonic() < give_up_at, f"not within {seconds * PATIENCE:g} s: {what}"
        time.sleep(0.05)


def is_running(pid: int) -> bool:
    """A zombie that nobody has reaped yet has ended."""
    done = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return bool(done.stdout.strip()) and not done.stdout.startswith("Z")


@dataclass
class Running:
    process: "subprocess.Popen[bytes]"
    port: int
    folder: Path

    @property
    def output(self) -> str:
        return (self.folder / "log").read_text(errors="replace")

    def get(self, path: str) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        try:
            connection.request("GET", path)
            response = connection.getresponse()
            return response.status, response.read()
        finally:
            connection.close()

    def serves(self) -> bool:
        try:
            return self.get("/health/live")[0] == 200
        except OSError:
            assert self.process.poll() is None, self.output
            return False

    def children(self, command: str = "") -> list[int]:
        """All of them, or those that run one command of `plimsoll`."""
        called = ["-f", f"dashboard.cli {command}"] if command else []
        asked = ["pgrep", "-P", str(self.process.pid), *called]
        done = subprocess.run(asked, capture_output=True, text=True, check=False)
        return [int(pid) for pid in done.stdout.split()]

    def stop(self) -> float:
        """Seconds from SIGTERM to the end."""
        asked_at = time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(15)
        return time.monotonic() - asked_at


@contextmanager
def running_plimsoll(folder: Path, *arguments: str, **settings: str) -> Iterator[Running]:
    port = free_port()
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [*PLIMSOLL, *(arguments or ("up",))],
            env=environment_for(folder, PLIMSOLL_PORT=str(port), **settings),
            cwd=folder,
            stdout=log,
            stderr=log,
        )
    running = Running(process, port, folder)
    try:
        wait_until(running.serves, seconds=START_SECONDS / PATIENCE, what="the first answer")
        yield running
    finally:
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(12)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

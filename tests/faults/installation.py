"""One installation under attack: its database, its broker, and real processes that a test starts and kills."""

import json
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.dashboard.running import PLIMSOLL, environment_for, wait_until
from tests.faults.brokers import Broker
from tests.faults.databases import Database

ROOT = Path(__file__).resolve().parents[2]
LEASE_SECONDS = 2
DONE_SECONDS = 60.0
LOG_SHOWN = 3000


@dataclass(frozen=True)
class JobRow:
    key: str
    kind: str
    state: str
    attempts: int
    fence: int
    fence_rejections: int
    worker: str
    last_error: str

    @property
    def worker_pid(self) -> int:
        return int(self.worker.split(":")[1]) if self.worker else 0


class Installation:
    def __init__(self, name: str, folder: Path, database: Database, broker: Broker) -> None:
        self.name, self.folder, self.database, self.broker = name, folder, database, broker
        self.gate = folder / "gate"
        self.clock = folder / "clock"
        self.set_clock(0)
        self._processes: list[subprocess.Popen[bytes]] = []
        self._console: subprocess.Popen[str] | None = None

    # --- its processes ---

    def start(self, command: str, **settings: str) -> "subprocess.Popen[bytes]":
        with (self.folder / f"{len(self._processes)}-{command}.log").open("wb") as log:
            process = subprocess.Popen(
                [*PLIMSOLL, command], env=self.environment(**settings), cwd=self.folder, stdout=log, stderr=log
            )
        self._processes.append(process)
        return process

    def tend(self, process: "subprocess.Popen[bytes]") -> None:
        """It ends with the test, whatever happens."""
        self._processes.append(process)

    def start_web(self, port: int) -> "subprocess.Popen[bytes]":
        return self.start("web", PLIMSOLL_PORT=str(port), PLIMSOLL_LOG_LEVEL="WARNING")

    def open_console(self, **settings: str) -> None:
        self._console = subprocess.Popen(
            [sys.executable, "-P", "-m", "tests.faults.console"],
            env=self.environment(**settings),
            cwd=self.folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run_module(self, name: str, *arguments: str, **settings: str) -> str:
        """What it printed."""
        done = subprocess.run(
            [sys.executable, "-P", "-m", name, *arguments],
            env=self.environment(**settings),
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def environment(self, **settings: str) -> dict[str, str]:
        own = {
            "DJANGO_SETTINGS_MODULE": "tests.faults.settings",
            "PYTHONPATH": str(ROOT),
            "PLIMSOLL_JOB_LEASE_SECONDS": str(LEASE_SECONDS),
            "PLIMSOLL_TEST_CLOCK": str(self.clock),
        }
        told = environment_for(self.folder, **{**own, **self.database.settings, **self.broker.settings, **settings})
        # Coverage would slow every start down, and a killed process writes none.
        return {name: value for name, value in told.items() if not name.startswith("COVERAGE_")}

    def close(self) -> None:
        for process in self._processes:
            process.kill()
            process.wait()
        if self._console:
            self._console.kill()
            self._console.communicate()
        for log in sorted(self.folder.glob("*.log")):  # pytest shows it where a test failed
            sys.stdout.write(f"--- {log.name}\n{log.read_text(errors='replace')[-LOG_SHOWN:]}\n")

    # --- what a test does to it ---

    def post(self, kind: str, count: int, *, posters: int = 1, **payload: str | float) -> list[str]:
        keys = [f"{kind} {number}" for number in range(count)]
        options = {"kind": kind, "keys": keys, "payload": {"gate": str(self.gate), **payload}, "posters": posters}
        assert self.tell("post", **options) == count
        return keys

    def tell(self, act: str, **options: object) -> object:
        if self._console is None:
            self.open_console()
        assert self._console
        assert self._console.stdin
        assert self._console.stdout
        self._console.stdin.write(json.dumps([act, options]) + "\n")
        self._console.stdin.flush()
        return json.loads(self._console.stdout.readline())

    def open_gate(self) -> None:
        self.gate.touch()

    def set_clock(self, seconds: float) -> None:
        fresh = self.clock.with_name("clock.new")
        fresh.write_text(str(seconds))
        fresh.rename(self.clock)

    def stop_in_its_tracks(self, process: "subprocess.Popen[bytes]") -> None:
        """SIGSTOP at a moment when it holds no lock: a writer that sleeps would stop SQLite for everybody."""

        def stopped_without_lock() -> bool:
            process.send_signal(signal.SIGSTOP)
            wait_until(lambda: _state(process.pid) == "T", seconds=5, what="the stop")
            if self.database.is_locked():
                process.send_signal(signal.SIGCONT)
                return False
            return True

        wait_until(stopped_without_lock, seconds=20, what="a stop without a lock")

    # --- what can be seen of it ---

    def jobs(self, *keys: str) -> list[JobRow]:
        fields = ", ".join(JobRow.__dataclass_fields__)
        rows = [JobRow(*row) for row in self.database.rows(f"SELECT {fields} FROM dashboard_job ORDER BY id")]
        return [row for row in rows if not keys or row.key in keys]

    def states(self, *keys: str) -> Counter[str]:
        return Counter(row.state for row in self.jobs(*keys))

    def effects(self) -> Counter[str]:
        return Counter(job for (job,) in self.database.rows("SELECT job FROM effect"))

    def running_on(self, process: "subprocess.Popen[bytes]") -> list[JobRow]:
        return [row for row in self.jobs() if row.state == "running" and row.worker_pid == process.pid]

    def await_done(self, keys: list[str], *, tend: Callable[[], None] = lambda: None) -> None:
        def all_done() -> bool:
            tend()
            return self.states(*keys)["done"] == len(keys)

        wait_until(all_done, seconds=DONE_SECONDS, what=f"{len(keys)} jobs done")


def _state(pid: int) -> str:
    told = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=True)
    return told.stdout[:1]

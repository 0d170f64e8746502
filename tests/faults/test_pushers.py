"""A laptop's pusher, its server and the line between them: killed and cut at random while sessions are being written.

Half a minute in every run, five minutes with PLIMSOLL_TEST_LONG=1. Figures: -s, or at the end of a failure.
"""

import http.client
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.dashboard.running import run_plimsoll, wait_until
from tests.faults.cut_line import CutLine
from tests.faults.figures import IS_LONG
from tests.faults.growing_sessions import SESSIONS, append, describe, make_sessions, take_in_once
from tests.faults.installation import Installation
from tests.services import free_port

SECONDS, TURNS = (300.0, 1200) if IS_LONG else (15.0, 60)
QUIET_SECONDS = 120.0  # the pusher waits up to a minute between two tries
WRITES_PER_SECOND = 10


@dataclass
class Laptop:
    """The pusher, the line it uses, and the server at the other end of it."""

    installation: Installation
    root: Path
    key: str
    chance: random.Random
    server_port: int = field(default_factory=free_port)
    done: Counter[str] = field(default_factory=Counter)
    _mend_at: float | None = None

    def __post_init__(self) -> None:
        self.server = self.installation.start("up", PLIMSOLL_PORT=str(self.server_port))
        wait_until(self.is_served, seconds=60, what="the server")
        self.line = CutLine(free_port(), server_port=self.server_port)
        self.pusher = self.start_pusher()

    def do_something(self) -> None:
        act = self.chance.choice((self.kill_web, self.kill_pusher, self.cut_line))
        if act():
            self.done[act.__name__] += 1

    def kill_web(self) -> bool:
        """Only one that serves: what cannot start takes nothing in, and shows nothing."""
        if not self.is_served():
            return False
        found = subprocess.run(
            ["pgrep", "-P", str(self.server.pid), "-f", "dashboard.cli web"], capture_output=True, text=True, check=True
        )
        for pid in found.stdout.split():
            os.kill(int(pid), signal.SIGKILL)
        return True

    def kill_pusher(self) -> bool:
        self.pusher.kill()
        self.pusher.wait()
        self.pusher = self.start_pusher()
        return True

    def cut_line(self) -> bool:
        if self._mend_at is not None:
            return False
        self.line.cut()
        self._mend_at = time.monotonic() + self.chance.uniform(0.1, 2.0)
        return True

    def mend_line(self, *, now: float) -> None:
        if self._mend_at is not None and now >= self._mend_at:
            self.line.mend()
            self._mend_at = None

    def start_pusher(self, *more: str) -> "subprocess.Popen[bytes]":
        folder = self.installation.folder
        environment = self.installation.environment(
            PLIMSOLL_KEY=self.key, PLIMSOLL_CLIENT_FOLDER=str(folder / "client"), DJANGO_SETTINGS_MODULE=""
        )
        url = f"http://127.0.0.1:{self.line.port}"
        command = ["watch", "--server", url, "--root", str(self.root), *more]
        with (folder / "pusher.log").open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-P", "-m", "dashboard.console", *command],
                env=environment,
                cwd=folder,
                stdout=log,
                stderr=log,
            )
        self.installation.tend(process)
        return process

    def is_served(self) -> bool:
        connection = http.client.HTTPConnection("127.0.0.1", self.server_port, timeout=0.5)
        try:
            connection.request("GET", "/health/live")
            return connection.getresponse().status == 200
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()

    def count_calls(self) -> int:
        return int(self.installation.database.rows("SELECT count(*) FROM dashboard_apicall")[0][0])


def test_killed_and_cut_off_at_random_while_sessions_grow(
    installation: Installation, migrated_folder: Path, tmp_path: Path
) -> None:
    """At the end every row is as if each file had been taken in once, in one piece, on the server itself."""
    chance = random.Random(11)
    root = tmp_path / "projects"
    files = {root / name: data for name, data in make_sessions(chance, TURNS).items()}
    laptop = Laptop(installation, root, _make_key(installation), chance)
    _write_in_chaos(files, laptop, chance)
    laptop.mend_line(now=float("inf"))
    over_at = time.monotonic()
    wait_until(lambda: laptop.count_calls() == (SESSIONS + 1) * TURNS, seconds=QUIET_SECONDS, what="every call")
    quiet_seconds = time.monotonic() - over_at
    laptop.pusher.terminate()
    assert laptop.pusher.wait(10) == 0
    assert laptop.start_pusher("--once").wait(60) == 0
    reference = take_in_once(migrated_folder, tmp_path / "reference", root)
    lines = sum(data.count(b"\n") for data in files.values())
    did = ", ".join(f"{name} {count}" for name, count in sorted(laptop.done.items()))
    told = f"{did}; {lines:,} lines, {len(reference['ApiCall']):,} calls; quiet after {quiet_seconds:.1f} s"
    sys.stdout.write(f"{installation.name}: {SECONDS:.0f} s: {told}\n")
    assert _as_followed(describe(installation)) == reference
    assert len(reference["ApiCall"]) == (SESSIONS + 1) * TURNS
    assert len(laptop.done) == 3, "each of them happened"


def _write_in_chaos(files: dict[Path, bytes], laptop: Laptop, chance: random.Random) -> None:
    """Every file grows in pieces of chance length, which end anywhere in a line."""
    began_at = time.monotonic()
    next_act_at = began_at + 1.0
    pieces = _cut_pieces(files, chance, count=int(SECONDS * WRITES_PER_SECOND))
    for number, (path, piece) in enumerate(pieces):
        append(path, piece)
        now = time.monotonic()
        laptop.mend_line(now=now)
        if now >= next_act_at:
            laptop.do_something()
            next_act_at = time.monotonic() + chance.uniform(0.1, 2.0)
        time.sleep(max(0.0, began_at + (number + 1) / WRITES_PER_SECOND - time.monotonic()))


def _cut_pieces(files: dict[Path, bytes], chance: random.Random, *, count: int) -> Iterator[tuple[Path, bytes]]:
    """All bytes, the files in turn; the last piece of each ends it."""
    rounds = max(1, count // len(files))
    at = dict.fromkeys(files, 0)
    for part in range(1, rounds + 1):
        for path, data in files.items():
            end = (
                len(data)
                if part == rounds
                else min(len(data), int(len(data) * (part + chance.uniform(-0.5, 0)) / rounds))
            )
            end = max(end, at[path])
            yield path, data[at[path] : end]
            at[path] = end


def _as_followed(rows: dict[str, list[str]]) -> dict[str, list[str]]:
    """The way in is the one thing that differs."""
    push, follow = (json.dumps({"sources": [name]})[1:-1] for name in ("push", "follow"))
    return {name: sorted(row.replace(push, follow) for row in each) for name, each in rows.items()}


def _make_key(installation: Installation) -> str:
    settings = installation.database.settings
    run_plimsoll(installation.folder, "signinlink", **settings)  # makes the local team
    key = run_plimsoll(installation.folder, "createkey", "--name", "laptop", "--scope", "ingest", **settings)
    assert key.returncode == 0, key.stderr
    return key.stdout.strip().splitlines()[-1]

"""How soon a new line of a followed transcript is stored, what a first start takes, what following costs while nothing
happens: told by the kernel, and by looking often. What a line costs that is added to a long session.
`python -m bench.follow`, some minutes.
"""

import argparse
import json
import os
import random
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PLIMSOLL = [sys.executable, "-P", "-m", "dashboard.cli"]
TICKS = os.sysconf("SC_CLK_TCK")
SETTLE_SECONDS = 6  # beyond the second look at files that were written to a moment ago
LINES_PER_FILE = 4
GIVE_UP_SECONDS = 1200


@dataclass(frozen=True)
class Place:
    folder: Path
    environment: dict[str, str]

    @property
    def root(self) -> Path:
        return self.folder / "projects"

    @property
    def database(self) -> Path:
        return self.folder / "data" / "plimsoll.sqlite3"

    def bytes_read(self) -> int:
        with closing(sqlite3.connect(self.database, timeout=20)) as connection:
            return int(connection.execute('SELECT total("offset") FROM dashboard_followedfile').fetchone()[0])


def make_place(folder: Path, *, is_polling: bool) -> Place:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PLIMSOLL_")}
    own = {
        "PYTHONPATH": str(ROOT),
        "PLIMSOLL_DATA": str(folder / "data"),
        "PLIMSOLL_FOLLOW": str(folder / "projects"),
        "PLIMSOLL_FOLLOW_POLL": "1" if is_polling else "0",
    }
    place = Place(folder, {**kept, **own})
    subprocess.run([*PLIMSOLL, "migrate", "-v", "0"], env=place.environment, check=True)
    return place


def make_line(session: str, number: int) -> bytes:
    usage = {"input_tokens": 5, "cache_read_input_tokens": 20_000 + number, "output_tokens": 9}
    message = {"id": f"m{session}{number}", "role": "assistant", "model": "claude-opus-4-5", "usage": usage}
    told = {"type": "assistant", "uuid": f"u{session}{number}", "sessionId": session, "message": message}
    return json.dumps({**told, "timestamp": f"2026-05-01T10:00:{number % 60:02}.000Z"}).encode() + b"\n"


def write_files(root: Path, count: int) -> int:
    """Sessions in folders of fifty, all of them old; their bytes."""
    total = 0
    for number in range(count):
        session = f"00000000-0000-4000-8000-{number:012}"
        path = root / f"-project-{number // 50}" / f"{session}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        data = b"".join(make_line(session, line) for line in range(LINES_PER_FILE))
        path.write_bytes(data)
        os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))
        total += len(data)
    return total


@contextmanager
def started_follower(place: Place) -> Iterator["subprocess.Popen[bytes]"]:
    with (place.folder / "log").open("wb") as log:
        process = subprocess.Popen([*PLIMSOLL, "follow"], env=place.environment, stdout=log, stderr=log)
    try:
        yield process
    finally:
        process.terminate()
        process.wait(20)


def wait_for(condition: Callable[[], bool]) -> None:
    give_up_at = time.monotonic() + GIVE_UP_SECONDS
    while not condition():
        if time.monotonic() > give_up_at:
            sys.exit(f"not within {GIVE_UP_SECONDS} s")
        time.sleep(0.005)


def cpu_seconds(process: "subprocess.Popen[bytes]") -> float:
    fields = Path(f"/proc/{process.pid}/stat").read_text().rsplit(") ", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def measure_latency(place: Place, path: Path, numbers: range, known_bytes: int) -> list[float]:
    """Milliseconds from the end of a write to the place kept behind it, which follows the session's rows."""
    chance = random.Random(7)
    took = []
    for number in numbers:
        line = make_line(path.stem, number)
        with path.open("ab") as file:
            file.write(line)
        known_bytes += len(line)
        wrote_at = time.monotonic()
        wait_for(lambda: place.bytes_read() >= known_bytes)  # noqa: B023 (called at once)
        took.append((time.monotonic() - wrote_at) * 1000)
        time.sleep(chance.uniform(0.2, 1.5))  # not in step with any polling
    return took


def measure(file_count: int, *, is_polling: bool, line_count: int, idle_seconds: float) -> None:
    with tempfile.TemporaryDirectory(prefix="plimsoll-bench-") as scratch:
        place = make_place(Path(scratch), is_polling=is_polling)
        total = write_files(place.root, file_count)
        began = time.monotonic()
        with started_follower(place) as follower:
            wait_for(lambda: place.bytes_read() == total)
            first = time.monotonic() - began
            path = place.root / "-live" / "ffffffff-0000-4000-8000-000000000000.jsonl"
            path.parent.mkdir(exist_ok=True)
            took = measure_latency(place, path, range(line_count), total)
            time.sleep(SETTLE_SECONDS)
            before = cpu_seconds(follower)
            time.sleep(idle_seconds)
            idle = (cpu_seconds(follower) - before) / idle_seconds * 100
    way = "polling" if is_polling else "told by the kernel"
    figures = f"median {statistics.median(took):5.0f} ms, worst {max(took):5.0f} ms"
    print(
        f"{way:<20}{file_count:>7,} files  first start {first:6.1f} s  new line {figures}  idle {idle:.2f}% of a core"
    )


def measure_long(call_count: int, *, line_count: int) -> None:
    """A line that is added to a long session: how soon it is stored, and how long other writers are kept out."""
    session = "eeeeeeee-0000-4000-8000-000000000000"
    with tempfile.TemporaryDirectory(prefix="plimsoll-bench-") as scratch:
        place = make_place(Path(scratch), is_polling=False)
        path = place.root / "-long" / f"{session}.jsonl"
        path.parent.mkdir(parents=True)
        path.write_bytes(b"".join(make_line(session, number) for number in range(call_count)))
        with started_follower(place):
            wait_for(lambda: place.bytes_read() == path.stat().st_size)
            with watched_lock(place) as held:
                took = measure_latency(place, path, range(call_count, call_count + line_count), path.stat().st_size)
    figures = f"median {statistics.median(took):5.0f} ms, worst {max(took):5.0f} ms"
    print(f"session of {call_count:>6,} calls  new line {figures}  others kept out for at most {max(held):.0f} ms")


@contextmanager
def watched_lock(place: Place) -> Iterator[list[float]]:
    """Milliseconds for which nobody else could begin to write, one after the other."""
    held, stopping = [0.0], threading.Event()

    def watch() -> None:
        with closing(sqlite3.connect(place.database, timeout=0, isolation_level=None)) as connection:
            free_at = time.monotonic()
            while not stopping.wait(0.001):
                try:
                    connection.execute("BEGIN IMMEDIATE")
                    connection.execute("ROLLBACK")
                except sqlite3.OperationalError:
                    continue
                held.append((time.monotonic() - free_at) * 1000)
                free_at = time.monotonic()

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield held
    finally:
        stopping.set()
        thread.join()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, nargs="+", default=[100, 2000])
    parser.add_argument("--calls", type=int, nargs="+", default=[5_000, 20_000], help="of one long session")
    parser.add_argument("--lines", type=int, default=30)
    parser.add_argument("--idle-seconds", type=float, default=30.0)
    options = parser.parse_args()
    for file_count in options.files:
        for is_polling in (False, True):
            measure(file_count, is_polling=is_polling, line_count=options.lines, idle_seconds=options.idle_seconds)
    for call_count in options.calls:
        measure_long(call_count, line_count=options.lines)


if __name__ == "__main__":
    main()

"""How soon a job starts, how many are done in a second, what waiting costs: on SQLite with files and on PostgreSQL with
Redis (where they are installed). `python -m bench.jobs`, about two minutes.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.services import find_postgresql, find_redis, started_postgresql, started_redis

ROOT = Path(__file__).resolve().parents[1]
PLIMSOLL = [sys.executable, "-P", "-m", "dashboard.cli"]
TICKS = os.sysconf("SC_CLK_TCK")
SETTLE_SECONDS = 5

# Runs in a process of its own, as the web process would: post, then look at the rows.
POST = """
import sys, time, django
django.setup()
from dashboard.jobs.post import post_job
from dashboard.models import Job, JobState
mode, count = sys.argv[1], int(sys.argv[2])
ended = Job.objects.filter(key__startswith=mode, state=JobState.DONE)
def wait_for(number):
    give_up_at = time.monotonic() + 120
    while ended.count() < number:
        if time.monotonic() > give_up_at:
            sys.exit("the jobs were not done within 120 s")
        time.sleep(0.02)
post_job("plain", key="first")  # opens the connections
if mode == "latency":
    for number in range(count):
        job = post_job("plain", key=f"{mode} {number}")
        posted = time.time()
        wait_for(number + 1)
        job.refresh_from_db()
        print((job.started_at.timestamp() - posted) * 1000)
        time.sleep(number % 10 * 0.02)  # not in step with the broker's polling
else:
    began = time.monotonic()
    for number in range(count):
        post_job("plain", key=f"{mode} {number}")
    posted = time.monotonic()
    wait_for(count)
    print(count / (posted - began), count / (time.monotonic() - began))
"""


@dataclass(frozen=True)
class Place:
    name: str
    environment: dict[str, str]

    def ask(self, mode: str, count: int) -> list[float]:
        command = [sys.executable, "-P", "-c", POST, mode, str(count)]
        told = subprocess.run(command, env=self.environment, capture_output=True, text=True, check=False)
        if told.returncode:
            sys.exit(f"{self.name}, {mode}: {told.stderr.strip()[-500:]}")
        return [float(number) for number in told.stdout.split()]


@contextmanager
def started(place: Place, command: str) -> Iterator[int]:
    quiet = subprocess.DEVNULL
    process = subprocess.Popen([*PLIMSOLL, command], env=place.environment, stdout=quiet, stderr=quiet)
    try:
        yield process.pid
    finally:
        process.terminate()
        process.wait(15)


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def measure_idle(pids: dict[str, int], seconds: int) -> dict[str, float]:
    """Percent of one core, per process."""
    before = {name: cpu_seconds(pid) for name, pid in pids.items()}
    time.sleep(seconds)
    return {name: (cpu_seconds(pid) - before[name]) / seconds * 100 for name, pid in pids.items()}


def measure(place: Place, options: argparse.Namespace) -> None:
    subprocess.run([*PLIMSOLL, "migrate", "-v", "0"], env=place.environment, check=True)
    create_effects(place)
    print(f"\n{place.name}")
    with started(place, "worker") as worker, started(place, "sweeper") as sweeper:
        place.ask("warm", 20)
        time.sleep(SETTLE_SECONDS)
        idle = measure_idle({"worker": worker, "sweeper": sweeper}, options.idle)
        told = ", ".join(f"{name} {percent:.1f}%" for name, percent in idle.items())
        print(f"  idle for {options.idle} s      {told} of a core")
        latency = sorted(place.ask("latency", options.jobs))
        p95 = latency[int(len(latency) * 0.95) - 1]
        print(f"  enqueue to start   p50 {statistics.median(latency):.0f} ms, p95 {p95:.0f} ms ({options.jobs} jobs)")
        posted, done = place.ask("throughput", options.burst)
        print(f"  {options.burst} jobs at once   posted {posted:.0f}/s, done {done:.0f}/s")


def create_effects(place: Place) -> None:
    """The kind of work is that of the fault tests: it writes one row into this table."""
    script = "import django; django.setup()\nfrom django.db import connection\nfrom tests.faults.databases import *\n"
    script += "connection.cursor().execute(EFFECT_TABLE)"
    subprocess.run([sys.executable, "-P", "-c", script], env=place.environment, check=True)


def places(scratch: Path, stack: ExitStack) -> Iterator[Place]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PLIMSOLL_", "DATABASE_URL"))}
    kept |= {"DJANGO_SETTINGS_MODULE": "tests.faults.settings", "PYTHONPATH": str(ROOT)}
    yield Place("SQLite, files", {**kept, "PLIMSOLL_DATA": str(scratch / "sqlite")})
    if find_postgresql() is None or find_redis() is None:
        print("\nPostgreSQL or Redis is not installed: left out.")
        return
    urls = {
        "DATABASE_URL": stack.enter_context(started_postgresql()),
        "PLIMSOLL_BROKER_URL": stack.enter_context(started_redis()),
    }
    yield Place("PostgreSQL, Redis", {**kept, **urls, "PLIMSOLL_DATA": str(scratch / "postgresql")})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=60, help="posted one at a time, for the latency")
    parser.add_argument("--burst", type=int, default=500, help="posted at once, for the throughput")
    parser.add_argument("--idle", type=int, default=30, help="seconds of waiting")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="plimsoll-bench-") as scratch, ExitStack() as stack:
        for place in places(Path(scratch), stack):
            measure(place, options)


if __name__ == "__main__":
    main()

"""R9 and R10: telemetry at a steady rate beside people who read pages, then far more of it than can be taken.

Run: python -m bench.load [--rate 200] [--seconds 60] [--crowd 100] [--crowd-seconds 10]. Needs two quiet cores or more:
the client is one of the programs that share them. Everything runs as `plimsoll up` starts it, on SQLite.
"""

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp

from bench.otlp import CHECKOUT, DROPPED, started
from tests.services import free_port

EVENTS, SESSIONS, READERS = 20, 200, 2
PAGES = ("/", "/sessions/")
PAGE_GOAL_MS, REFUSAL_GOAL_MS, MEMORY_GOAL_MB, RECOVERY_GOAL_SECONDS = 300, 100, 100, 10
PREPARE = """
import django
django.setup()
from django.test import Client
from dashboard.accounts.keys import create_key
from dashboard.accounts.local import ensure_local_owner
from dashboard.models import ApiKey, Scope, Team
owner = ensure_local_owner()
team = Team.objects.get(is_local=True)
key, text = create_key(team, owner, name="bench", scopes=[Scope.INGEST, Scope.READ], expires_at=None, by=owner)
ApiKey.objects.update(requests_per_minute=0, mib_per_minute=0)
client = Client()
client.force_login(owner, backend="django.contrib.auth.backends.ModelBackend")
print(text, "; ".join(f"{name}={morsel.value}" for name, morsel in client.cookies.items()), sep="\\n")
"""


@dataclass(frozen=True)
class Place:
    base: str
    key: str
    cookies: str
    supervisor_pid: int

    def measure_mb(self) -> float:
        """Resident memory of the web processes: children of the supervisor that listen."""
        told = subprocess.run(
            ["ps", "-o", "rss=,args=", "--ppid", str(self.supervisor_pid)], capture_output=True, text=True, check=True
        )
        lines = [line.split(maxsplit=1) for line in told.stdout.splitlines()]
        webs = [int(size) for size, command in lines if "dashboard.cli web" in command]
        if not webs:
            sys.exit("No web process was found below the supervisor.")
        return sum(webs) / 1024


@dataclass
class Seen:
    """Milliseconds by what the answer was."""

    statuses: Counter[str] = field(default_factory=Counter)
    took_ms: dict[str, list[float]] = field(default_factory=dict)
    without_retry_after: int = 0

    def note(self, status: str, began: float) -> None:
        self.statuses[status] += 1
        self.took_ms.setdefault(status, []).append((time.perf_counter() - began) * 1000)

    def find_percentile(self, status: str, percent: int) -> float:
        took = self.took_ms.get(status, [])
        return statistics.quantiles(took, n=100)[percent - 1] if len(took) > 1 else sum(took)

    @property
    def dishonest(self) -> int:
        """Answers that are neither a commitment nor a request to come again."""
        return sum(count for status, count in self.statuses.items() if status not in ("200", "503"))


def write_export(number: int) -> bytes:
    """Twenty calls of one session, as Claude Code reports them."""
    now_ns = time.time_ns()
    records = [
        {
            "timeUnixNano": str(now_ns + place),
            "body": {"stringValue": "claude_code.api_request"},
            "attributes": [
                {"key": name, "value": {"stringValue": str(value)}}
                for name, value in {
                    "event.name": "api_request",
                    "session.id": f"load-{number % SESSIONS}",
                    "request_id": f"req_{number}_{place}",
                    "model": "claude-sonnet-4-5",
                    "input_tokens": 3,
                    "output_tokens": 200,
                    "cache_read_tokens": 20_000 + place * 500,
                    "cache_creation_tokens": 500,
                    "cost_usd": "0.01",
                    "duration_ms": 900,
                }.items()
            ],
        }
        for place in range(EVENTS)
    ]
    return json.dumps({"resourceLogs": [{"scopeLogs": [{"logRecords": records}]}]}).encode()


async def send(client: aiohttp.ClientSession, place: Place, number: int, seen: Seen) -> None:
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {place.key}"}
    body = write_export(number)
    began = time.perf_counter()
    try:
        async with client.post(f"{place.base}/v1/logs", data=body, headers=headers) as answer:
            await answer.read()
            seen.note(str(answer.status), began)
            if answer.status == 503 and "Retry-After" not in answer.headers:
                seen.without_retry_after += 1
    except (aiohttp.ClientError, TimeoutError) as error:
        seen.note(type(error).__name__, began)


async def read_pages(client: aiohttp.ClientSession, place: Place, seen: Seen, over: asyncio.Event) -> None:
    while not over.is_set():
        for path in PAGES:
            began = time.perf_counter()
            try:
                async with client.get(f"{place.base}{path}", headers={"Cookie": place.cookies}) as answer:
                    await answer.read()
                    seen.note(str(answer.status), began)
            except (aiohttp.ClientError, TimeoutError) as error:
                seen.note(type(error).__name__, began)
        await asyncio.sleep(0.2)


async def run_steady(place: Place, *, rate: int, seconds: int) -> tuple[Seen, Seen]:
    """Requests leave on time, whether or not those before them were answered."""
    sent, pages, over = Seen(), Seen(), asyncio.Event()
    async with open_client() as client, asyncio.TaskGroup() as readers:
        for _ in range(READERS):
            readers.create_task(read_pages(client, place, pages, over))
        async with asyncio.TaskGroup() as group:
            began = time.perf_counter()
            for number in range(rate * seconds):
                await asyncio.sleep(max(0.0, began + number / rate - time.perf_counter()))
                group.create_task(send(client, place, number, sent))
        over.set()
    return sent, pages


async def run_crowd(place: Place, *, crowd: int, seconds: int) -> tuple[Seen, float, float]:
    """Everybody sends again at once, whatever the answer. Also the most memory it took, and seconds to recover."""
    sent, until = Seen(), time.perf_counter() + seconds
    before_mb = peak_mb = place.measure_mb()

    async def insist(client: aiohttp.ClientSession, first: int) -> None:
        number = first
        while time.perf_counter() < until:
            await send(client, place, number, sent)
            number += crowd

    async with open_client() as client:
        async with asyncio.TaskGroup() as group:
            for first in range(crowd):
                group.create_task(insist(client, 10_000_000 + first))
            while time.perf_counter() < until:
                peak_mb = max(peak_mb, await asyncio.to_thread(place.measure_mb))
                await asyncio.sleep(0.5)
        recovered_seconds = await _wait_for_recovery(client, place)
    return sent, peak_mb - before_mb, recovered_seconds


async def _wait_for_recovery(client: aiohttp.ClientSession, place: Place) -> float:
    """Until telemetry is taken in and a page comes within its time."""
    began = time.perf_counter()
    while time.perf_counter() - began < 60:
        probe, pages, over = Seen(), Seen(), asyncio.Event()
        over.set()
        await send(client, place, 99_000_000, probe)
        asked = time.perf_counter()
        async with client.get(f"{place.base}/sessions/", headers={"Cookie": place.cookies}) as answer:
            await answer.read()
            pages.note(str(answer.status), asked)
        if probe.statuses["200"] and pages.took_ms.get("200", [9e9])[0] <= PAGE_GOAL_MS:
            break
    return time.perf_counter() - began


def open_client(connections: int = 0) -> aiohttp.ClientSession:
    """With so many connections at most; 0: as many as are wanted."""
    timeout = aiohttp.ClientTimeout(total=60)
    return aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=connections), timeout=timeout)


@contextmanager
def started_place(folder: Path, **settings: str) -> Iterator[Place]:
    port = free_port()
    kept = {name: value for name, value in os.environ.items() if name not in DROPPED}
    own = {"PLIMSOLL_DATA": str(folder / "data"), "PLIMSOLL_PORT": str(port), "PLIMSOLL_FOLLOW": "off"}
    environment = kept | own | {"PYTHONPATH": str(CHECKOUT), "DJANGO_SETTINGS_MODULE": "dashboard.settings"}
    environment |= {"PLIMSOLL_LOG_LEVEL": "WARNING", **settings}
    command = [sys.executable, "-m", "dashboard.cli"]
    subprocess.run([*command, "migrate", "-v", "0"], env=environment, cwd=folder, check=True)
    made = subprocess.run(
        [sys.executable, "-c", PREPARE], env=environment, cwd=folder, check=True, capture_output=True, text=True
    )
    key, cookies = made.stdout.splitlines()[-2:]
    base = f"http://127.0.0.1:{port}"
    with started([*command, "up"], environment, f"{base}/health/live", folder):
        lines = subprocess.run(["ps", "-eo", "pid=,args="], capture_output=True, text=True, check=True).stdout
        family = f"/proc/{os.getpid()}/task/{os.getpid()}/children"
        own_children = set(Path(family).read_text().split())
        pids = [line.split()[0] for line in lines.splitlines() if line.rstrip().endswith("dashboard.cli up")]
        yield Place(base, key, cookies, next(int(pid) for pid in pids if pid in own_children))


def print_steady(sent: Seen, pages: Seen, *, rate: int, seconds: int) -> bool:
    p95 = pages.find_percentile("200", 95)
    print(f"R9   {rate} requests/s x {EVENTS} events for {seconds} s: {dict(sent.statuses)}")
    print(f"     taken in: p50 {sent.find_percentile('200', 50):.0f} ms, p95 {sent.find_percentile('200', 95):.0f} ms")
    print(f"     pages meanwhile: {dict(pages.statuses)}, p95 {p95:.0f} ms (goal {PAGE_GOAL_MS})")
    print(f"     neither taken in nor told to come again: {sent.dishonest}; 503 alone: {sent.without_retry_after}")
    return not sent.dishonest and not sent.without_retry_after and p95 <= PAGE_GOAL_MS


def print_crowd(sent: Seen, grown_mb: float, recovered_seconds: float, *, crowd: int) -> bool:
    p95 = sent.find_percentile("503", 95)
    print(f"R10  {crowd} senders at once: {dict(sent.statuses)}; 503 alone: {sent.without_retry_after}")
    print(f"     refused: p50 {sent.find_percentile('503', 50):.0f} ms, p95 {p95:.0f} ms (goal {REFUSAL_GOAL_MS})")
    print(f"     memory +{grown_mb:.0f} MB (goal {MEMORY_GOAL_MB}), back after {recovered_seconds:.1f} s")
    is_quick = p95 <= REFUSAL_GOAL_MS and recovered_seconds <= RECOVERY_GOAL_SECONDS
    return is_quick and grown_mb <= MEMORY_GOAL_MB and not sent.dishonest and not sent.without_retry_after


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rate", type=int, default=200)
    parser.add_argument("--seconds", type=int, default=60)
    # Three times as many as are let in. None of them waits as it is told to, so with more of them a refusal takes as
    # long as it takes to refuse all others first.
    parser.add_argument("--crowd", type=int, default=100)
    parser.add_argument("--crowd-seconds", type=int, default=10)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="plimsoll-load-") as scratch, started_place(Path(scratch)) as place:
        asyncio.run(run_steady(place, rate=20, seconds=3))  # warm up
        sent, pages = asyncio.run(run_steady(place, rate=options.rate, seconds=options.seconds))
        is_steady = print_steady(sent, pages, rate=options.rate, seconds=options.seconds)
        told = asyncio.run(run_crowd(place, crowd=options.crowd, seconds=options.crowd_seconds))
        is_held = print_crowd(*told, crowd=options.crowd)
    sys.exit(0 if is_steady and is_held else 1)


if __name__ == "__main__":
    main()

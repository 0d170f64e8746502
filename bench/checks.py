"""Checks of agents at a steady rate beside people who read pages: what rate is reached, and what it does to the pages.

Run: python -m bench.checks [--rate 500] [--seconds 10] [--web-processes 2]. Needs two quiet cores or more: the client
is one of the programs that share them. Everything runs as `plimsoll up` starts it, on SQLite. The readers alone take
about half a core, so one web process has not enough left for that rate.
"""

import argparse
import asyncio
import sys
import tempfile
import time
from pathlib import Path

import aiohttp

from bench.load import READERS, Place, Seen, open_client, read_pages, started_place

PAGE_GOAL_MS, CHECK_GOAL_MS, REACHED_PERCENT = 300, 100, 98
CONNECTIONS = 16  # kept open, as agents do that ask between their calls
QUESTION = {
    "model": "claude-sonnet-5-5",
    "usage": {"input_tokens": 12, "cache_read_input_tokens": 161_000, "output_tokens": 900},
}


async def run_beside_pages(place: Place, *, rate: int, seconds: int) -> tuple[Seen, Seen, float]:
    """Answers to checks and to readers, and how many checks were answered in a second. A rate of 0 sends none."""
    checks, pages, over = Seen(), Seen(), asyncio.Event()
    async with open_client() as reading, open_client(CONNECTIONS) as asking, asyncio.TaskGroup() as readers:
        for _ in range(READERS):
            readers.create_task(read_pages(reading, place, pages, over))
        began = time.perf_counter()
        if rate:
            await _send_checks(asking, place, checks, rate=rate, seconds=seconds)
        else:
            await asyncio.sleep(seconds)
        took_seconds = time.perf_counter() - began
        over.set()
    return checks, pages, checks.statuses["200"] / took_seconds


async def _send_checks(client: aiohttp.ClientSession, place: Place, seen: Seen, *, rate: int, seconds: int) -> None:
    """Checks become due on time, whether or not those before them were answered; waiting for a connection counts."""
    async with asyncio.TaskGroup() as group:
        began = time.perf_counter()
        for number in range(rate * seconds):
            due = began + number / rate
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            group.create_task(_check(client, place, seen, due))


async def _check(client: aiohttp.ClientSession, place: Place, seen: Seen, due: float) -> None:
    headers = {"Authorization": f"Bearer {place.key}"}
    try:
        async with client.post(f"{place.base}/api/v1/check", json=QUESTION, headers=headers) as answer:
            await answer.read()
            seen.note(str(answer.status), due)
    except (aiohttp.ClientError, TimeoutError) as error:
        seen.note(type(error).__name__, due)


def tell(checks: Seen, quiet: Seen, busy: Seen, reached: float, *, rate: int) -> bool:
    before, beside = quiet.find_percentile("200", 95), busy.find_percentile("200", 95)
    p95 = checks.find_percentile("200", 95)
    print(f"checks  asked {rate}/s, reached {reached:.0f}/s: {dict(checks.statuses)}")
    print(f"        p50 {checks.find_percentile('200', 50):.0f} ms, p95 {p95:.0f} ms (goal {CHECK_GOAL_MS})")
    print(f"pages   p95 {before:.0f} ms without checks, {beside:.0f} ms beside them (goal {PAGE_GOAL_MS})")
    is_reached = reached * 100 >= rate * REACHED_PERCENT and set(checks.statuses) == {"200"}
    return is_reached and p95 <= CHECK_GOAL_MS and beside <= PAGE_GOAL_MS


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rate", type=int, default=500)
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("--web-processes", type=int, default=2)
    options = parser.parse_args()
    own = {"PLIMSOLL_WEB_PROCESSES": str(options.web_processes)}
    with (
        tempfile.TemporaryDirectory(prefix="plimsoll-checks-") as scratch,
        started_place(Path(scratch), **own) as place,
    ):
        asyncio.run(run_beside_pages(place, rate=20, seconds=2))  # warm up
        _, quiet, _ = asyncio.run(run_beside_pages(place, rate=0, seconds=options.seconds))
        checks, busy, reached = asyncio.run(run_beside_pages(place, rate=options.rate, seconds=options.seconds))
    sys.exit(0 if tell(checks, quiet, busy, reached, rate=options.rate) else 1)


if __name__ == "__main__":
    main()

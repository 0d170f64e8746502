"""Open pages: what they cost other pages, and how soon a new line is on them (R11). `python -m bench.live`, a minute.

One web process is looked at, another takes the lines in: nobody tells the first but the database. The pages are open
in the browsers of as many people, or with --people 1 of one. Ends with 1 where the promise is not held.
"""

import argparse
import asyncio
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from http import HTTPStatus
from pathlib import Path

from tests.dashboard.running import environment_for, run_plimsoll, running_plimsoll
from tests.live_load import Audience, Talker, Web, open_page, percentile, sign_in, time_pages

LOADS = 100
CHANGES = 20
PROMISED_MS = 250  # the slowest page of a hundred, beside the open ones


async def measure(web: Web, talker: Talker, pages: int, people: list[Web]) -> list[str]:
    """What was not held of the promise."""
    paths = ["/sessions/"] * LOADS
    audience = Audience(web, 1, "local:0", people=people)
    tell("pages alone", await time_pages(web, paths))
    async with audience.seated(pages):
        feeding = asyncio.ensure_future(feed(talker))
        beside_ms = await time_pages(web, paths)
        tell(f"pages beside {pages} open ones of {len(people) or 1} people, a change every 0.5 s", beside_ms)
        await feeding
        refused = await open_page(web, "since=local:0")
        print(f"  page {pages + 1}: {refused.status}, Retry-After {refused.headers.get('retry-after', 'none')}")
    tell(f"{audience.heard} fetched headers", audience.fetched_ms)
    await asyncio.sleep(1)
    tell("pages after they left", await time_pages(web, paths))
    tell("from sending a line to hearing of it", await time_changes(web, talker))
    return list_failures(audience, beside_ms, refused.status)


def list_failures(audience: Audience, beside_ms: list[float], refused_status: int) -> list[str]:
    slowest_ms = percentile(beside_ms, 0.99)
    checks = [
        (slowest_ms <= PROMISED_MS, f"pages p99 is {slowest_ms:.0f} ms, promised are {PROMISED_MS}"),
        (refused_status == HTTPStatus.SERVICE_UNAVAILABLE, f"a page too many got {refused_status}, not 503"),
        (audience.heard > 0 and not audience.failed, f"{audience.heard} heard, failed with {audience.failed[:5]}"),
    ]
    return [words for is_held, words in checks if not is_held]


def sign_in_people(folder: Path, port: int, count: int) -> list[Web]:
    done = subprocess.run(
        [sys.executable, "-m", "bench.live_people", str(count)],
        env={**environment_for(folder), "DJANGO_SETTINGS_MODULE": "dashboard.settings"},
        cwd=Path(__file__).parents[1],
        capture_output=True,
        text=True,
        check=True,
    )
    return [Web(port, cookie) for cookie in done.stdout.split()]


async def feed(talker: Talker) -> None:
    for _ in range(CHANGES):
        await asyncio.to_thread(talker.go_on)
        await asyncio.sleep(0.5)


async def time_changes(web: Web, talker: Talker) -> list[float]:
    page = await open_page(web, "since=local:0&sessions=1")
    heard = page.hear()
    took = []
    async for name, _ in heard:
        if name == "changed":
            break
    for _ in range(CHANGES):
        began_at = time.perf_counter()
        await asyncio.to_thread(talker.go_on)
        async for name, _ in heard:
            if name == "changed":
                break
        took.append((time.perf_counter() - began_at) * 1000)
    page.close()
    return took


def tell(what: str, took_ms: list[float]) -> None:
    print(f"  {what:60} p50 {statistics.median(took_ms):6.1f} ms  p99 {percentile(took_ms, 0.99):6.1f} ms", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pages", type=int, default=200)
    parser.add_argument("--people", type=int, default=200, help="so many different ones have them open")
    arguments = parser.parse_args()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="plimsoll-bench-")))
        quiet = {"PLIMSOLL_LOG_LEVEL": "WARNING", "PLIMSOLL_LIVE_STREAMS": str(arguments.pages)}
        run_plimsoll(folder, "migrate", "-v", "0")
        link = run_plimsoll(folder, "signinlink").stdout.split()[-1]
        key = run_plimsoll(folder, "createkey", "--name", "bench", "--scope", "ingest").stdout.split()[-1]
        watched = stack.enter_context(running_plimsoll(folder, "web", **quiet))
        fed = stack.enter_context(running_plimsoll(folder, "web", **quiet))
        talker = Talker(fed.port, key)
        talker.go_on()
        people = sign_in_people(folder, watched.port, arguments.people) if arguments.people > 1 else []
        failures = asyncio.run(measure(sign_in(watched.port, link), talker, arguments.pages, people))
    print("  not held: " + "; ".join(failures) if failures else "  held")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()

"""Open pages: what they cost other pages, and how soon a new line is on them (R11). `python -m bench.live`, a minute.

One web process is looked at, another takes the lines in: nobody tells the first but the database.
"""

import argparse
import asyncio
import statistics
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

from tests.dashboard.running import run_plimsoll, running_plimsoll
from tests.live_load import Audience, Talker, Web, open_page, percentile, sign_in, time_pages

LOADS = 100
CHANGES = 20


async def measure(web: Web, talker: Talker, pages: int) -> None:
    paths = ["/sessions/"] * LOADS
    audience = Audience(web, 1, "local:0")
    tell("pages alone", await time_pages(web, paths))
    async with audience.seated(pages):
        feeding = asyncio.ensure_future(feed(talker))
        tell(f"pages beside {pages} open ones, a change every 0.5 s", await time_pages(web, paths))
        await feeding
        refused = await open_page(web, "since=local:0")
        print(f"  page {pages + 1}: {refused.status}, Retry-After {refused.headers.get('retry-after', 'none')}")
    tell(f"{audience.heard} fetched headers", audience.fetched_ms)
    await asyncio.sleep(1)
    tell("pages after they left", await time_pages(web, paths))
    tell("from sending a line to hearing of it", await time_changes(web, talker))


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
    print(f"  {what:52} p50 {statistics.median(took_ms):6.1f} ms  p99 {percentile(took_ms, 0.99):6.1f} ms", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pages", type=int, default=200)
    arguments = parser.parse_args()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="plimsoll-bench-")))
        quiet = {"PLIMSOLL_LOG_LEVEL": "WARNING"}
        run_plimsoll(folder, "migrate", "-v", "0")
        link = run_plimsoll(folder, "signinlink").stdout.split()[-1]
        key = run_plimsoll(folder, "createkey", "--name", "bench", "--scope", "ingest").stdout.split()[-1]
        watched = stack.enter_context(running_plimsoll(folder, "web", **quiet))
        fed = stack.enter_context(running_plimsoll(folder, "web", **quiet))
        talker = Talker(fed.port, key)
        talker.go_on()
        asyncio.run(measure(sign_in(watched.port, link), talker, arguments.pages))


if __name__ == "__main__":
    main()

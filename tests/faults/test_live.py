"""R11 and R15: two hundred open pages on one process, the next one refused, and a stop that waits for none of them."""

import asyncio
import signal
import subprocess
import time
from collections.abc import Callable
from functools import partial

from tests.dashboard.running import run_plimsoll, wait_until
from tests.faults.installation import Installation
from tests.live_load import Audience, Talker, Web, answers, open_page, sign_in, time_pages
from tests.services import free_port

PAGES = 200
LOADS = 30
CHANGES = 6
STOP_SECONDS = 10


def test_two_hundred_open_pages_keep_no_other_page_waiting(installation: Installation) -> None:
    ports = [free_port(), free_port()]
    watched, fed = (installation.start_web(port) for port in ports)
    for port in ports:
        wait_until(partial(answers, port), seconds=60, what="the first answer")
    web, talker = _settle(installation, *ports)
    pk, slug, number = _find_session(installation)
    asyncio.run(_look_on(web, talker, Audience(web, pk, f"{slug}:{number}")))
    asyncio.run(_stop_with_pages_open(watched, Audience(web, pk, f"{slug}:{number}")))
    fed.terminate()


async def _look_on(web: Web, talker: Talker, audience: Audience) -> None:
    paths = ["/sessions/"] * LOADS
    async with audience.seated(PAGES):
        assert {page.status for page in audience.pages} == {200}
        assert {page.headers["x-accel-buffering"] for page in audience.pages} == {"no"}
        refused = await open_page(web, f"since={audience.since}")
        assert (refused.status, refused.headers["retry-after"]) == (503, "5")
        refused.close()
        feeding = asyncio.ensure_future(_feed(talker))
        await time_pages(web, paths)  # answered, all of them; how fast is for bench/live.py to say
        await feeding
        # Written by another process: nobody has told this one but the database, or Redis.
        await _wait(lambda: audience.heard >= PAGES)
        await _wait(lambda: len(audience.fetched_ms) == audience.heard)
        assert not audience.failed
    await _wait_until_free(web, audience)
    await time_pages(web, paths)


async def _feed(talker: Talker) -> None:
    for _ in range(CHANGES):
        await asyncio.to_thread(talker.go_on)
        await asyncio.sleep(0.2)


async def _stop_with_pages_open(process: "subprocess.Popen[bytes]", audience: Audience) -> None:
    async with audience.seated(20):
        asked_at = time.monotonic()
        process.send_signal(signal.SIGTERM)
        await asyncio.to_thread(process.wait, STOP_SECONDS)
    assert time.monotonic() - asked_at < STOP_SECONDS / 2


async def _wait(condition: Callable[[], bool]) -> None:
    give_up_at = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < give_up_at
        await asyncio.sleep(0.05)


async def _wait_until_free(web: Web, audience: Audience) -> None:
    """Who left has made room."""
    give_up_at = time.monotonic() + 10
    while True:
        page = await open_page(web, f"since={audience.since}")
        page.close()
        if page.status == 200:
            return
        assert time.monotonic() < give_up_at
        await asyncio.sleep(0.05)


def _settle(installation: Installation, watched_port: int, fed_port: int) -> tuple[Web, Talker]:
    """A person who looks on at one process, and a session that goes on at the other."""
    settings = installation.database.settings
    link = run_plimsoll(installation.folder, "signinlink", **settings).stdout.split()[-1]
    key = run_plimsoll(installation.folder, "createkey", "--name", "sender", "--scope", "ingest", **settings)
    assert key.returncode == 0, key.stderr
    talker = Talker(fed_port, key.stdout.strip().splitlines()[-1])
    talker.go_on()
    return sign_in(watched_port, link), talker


def _find_session(installation: Installation) -> tuple[int, str, int]:
    ((pk, slug, number),) = installation.database.rows(
        "SELECT s.id, t.slug, c.number FROM dashboard_agentsession s JOIN dashboard_team t ON t.id = s.team_id "
        "JOIN dashboard_changecounter c ON c.team_id = t.id"
    )
    return pk, slug, number

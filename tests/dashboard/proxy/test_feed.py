"""The way from forwarder to recorder: it never waits, survives a recorder that is killed, and counts what it loses."""

import asyncio
import socket
import stat
import time
from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest
import uvloop

from dashboard.proxy.feed import QUEUE_FULL, Feed
from dashboard.proxy.inbox import Delivery, Inbox, InUse
from dashboard.proxy.wire import Exchange, Lost, find_socket_path
from tests.dashboard.proxy.talking import Client


@pytest.fixture
def path(tmp_path: Path) -> Iterator[Path]:
    found = find_socket_path(tmp_path)
    yield found
    found.unlink(missing_ok=True)


def run(walk: Coroutine[Any, Any, None]) -> None:
    """In the loop that web processes use."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(walk)


def make_exchange(number: int, size_bytes: int = 100) -> Exchange:
    return Client().send(b"x" * size_bytes, f"msg_{number}")


def ids(deliveries: list[Delivery]) -> list[str]:
    return [delivery.message.id for delivery in deliveries if isinstance(delivery.message, Exchange)]


async def take(inbox: Inbox, count: int, *, confirms: bool = True) -> list[Delivery]:
    taken: list[Delivery] = []
    give_up_at = time.monotonic() + 5
    while len(taken) < count and time.monotonic() < give_up_at:
        taken += await asyncio.to_thread(inbox.take, wait_seconds=0.05, most=1000)
    for delivery in taken if confirms else ():
        delivery.confirm()
    return taken


async def wait_for_empty(feed: Feed) -> None:
    async with asyncio.timeout(5):
        while feed.waiting_count:  # noqa: ASYNC110 (the recorder's answers are on their way)
            await asyncio.sleep(0.01)


def test_calls_arrive_in_order_and_are_let_go_when_confirmed(path: Path) -> None:
    async def walk() -> None:
        inbox, feed = Inbox(path), Feed(path)
        for number in range(50):
            feed.offer(make_exchange(number))
        assert ids(await take(inbox, 50)) == [f"exchange-msg_{number}" for number in range(50)]
        await wait_for_empty(feed)
        await feed.close()
        await asyncio.sleep(0.01)
        inbox.close()

    run(walk())


def test_what_was_not_confirmed_is_told_to_the_next_recorder(path: Path) -> None:
    async def walk() -> None:
        first, feed = Inbox(path), Feed(path)
        for number in range(10):
            feed.offer(make_exchange(number))
        taken = await take(first, 10, confirms=False)
        for delivery in taken[:4]:
            delivery.confirm()
        await asyncio.sleep(0.1)
        first.close()  # killed with six calls unwritten
        feed.offer(make_exchange(10))
        second = Inbox(path)
        assert ids(await take(second, 7)) == [f"exchange-msg_{number}" for number in range(4, 11)]
        await wait_for_empty(feed)
        await feed.close()
        await asyncio.sleep(0.01)
        second.close()

    run(walk())


def test_a_recorder_that_dies_at_any_moment_is_found_again(path: Path) -> None:
    async def walk() -> None:
        feed, seen = Feed(path), set[str]()
        for number in range(60):
            inbox = Inbox(path)
            feed.offer(make_exchange(number, 50_000))
            if number % 3:
                await asyncio.sleep(0.001 * (number % 7))
            for delivery in await asyncio.to_thread(inbox.take, wait_seconds=0.02, most=2):
                seen |= set(ids([delivery]))
                delivery.confirm()
            inbox.close()
        last = Inbox(path)
        while feed.waiting_count:
            for delivery in await asyncio.to_thread(last.take, wait_seconds=0.02, most=100):
                seen |= set(ids([delivery]))
                delivery.confirm()
        assert len(seen) == 60
        await feed.close()
        last.close()

    run(asyncio.wait_for(walk(), 60))


def test_without_a_recorder_nothing_waits_and_the_loss_is_told_later(path: Path) -> None:
    async def walk() -> None:
        feed = Feed(path, most_waiting_bytes=20_000)
        began = time.perf_counter()
        for number in range(1000):
            feed.offer(make_exchange(number, 1_000))
        assert time.perf_counter() - began < 1.0
        kept = feed.waiting_count
        assert 10 <= kept <= 20
        inbox = Inbox(path)
        taken = await take(inbox, kept + 1)
        lost = [delivery.message for delivery in taken if isinstance(delivery.message, Lost)]
        assert [(each.team_pk, each.reason, each.count) for each in lost] == [(1, QUEUE_FULL, 1000 - kept)]
        await feed.close()
        await asyncio.sleep(0.01)
        inbox.close()

    run(walk())


def test_a_call_too_large_for_any_store_is_told_as_that(path: Path) -> None:
    async def walk() -> None:
        inbox, feed = Inbox(path), Feed(path, most_waiting_bytes=20_000)
        feed.offer(make_exchange(0, 20_000))
        feed.offer(make_exchange(1, 1_000))
        taken = await take(inbox, 2)
        assert ids(taken) == ["exchange-msg_1"]
        lost = [delivery.message for delivery in taken if isinstance(delivery.message, Lost)]
        assert [(each.reason, each.count) for each in lost] == [("too large to record", 1)]
        await feed.close()
        await asyncio.sleep(0.01)
        inbox.close()

    run(walk())


def test_a_full_inbox_makes_senders_wait_not_grow(path: Path) -> None:
    async def walk() -> None:
        inbox, feed = Inbox(path, most_waiting_bytes=50_000), Feed(path)
        for number in range(100):
            feed.offer(make_exchange(number, 10_000))
        await asyncio.sleep(0.3)
        assert inbox._waiting_bytes <= 60_000
        assert len(ids(await take(inbox, 100))) == 100
        await feed.close()
        await asyncio.sleep(0.01)
        inbox.close()

    run(walk())


def test_the_socket_is_for_its_user_alone_and_for_one_recorder(path: Path) -> None:
    inbox = Inbox(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with pytest.raises(InUse):
        Inbox(path)
    inbox.close()
    Inbox(path).close()


def test_a_socket_left_behind_by_a_killed_recorder_is_replaced(path: Path) -> None:
    left = socket.socket(socket.AF_UNIX)
    path.parent.mkdir(parents=True, exist_ok=True)
    left.bind(str(path))
    left.close()
    assert path.exists()
    Inbox(path).close()

"""The journal of a web process: after a kill each call is delivered or counted, once, and nothing can be read in it."""

import errno
import os
import random
import shutil
import stat
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from dashboard.proxy import journal as journal_module
from dashboard.proxy.feed import QUEUE_FULL, Feed
from dashboard.proxy.inbox import Inbox
from dashboard.proxy.journal import Journal, make_cipher
from dashboard.proxy.journal_replay import KILLED, NOT_READABLE, JournalReplay
from dashboard.proxy.wire import FRAME_HEAD, Exchange, Lost, Message, find_socket_path, write_frame
from tests.dashboard.proxy.test_feed import ids, make_exchange, run, take, wait_for_empty

CIPHER = make_cipher("a secret key")
TEAM = 1


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    made = Journal(tmp_path / "proxy", CIPHER)
    yield made
    made.close()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "proxy"


def name(number: int) -> str:
    return f"exchange-msg_{number}"


def end(journal: Journal, number: int, *, begins: bool = True, size_bytes: int = 100) -> None:
    exchange = make_exchange(number, size_bytes)
    if begins:
        journal.begin(exchange.id, TEAM)
    journal.end(exchange.id, TEAM, write_frame(1, exchange)[FRAME_HEAD.size :])


def replay(folder: Path, *, confirms: bool = True, secret_key: str = "a secret key") -> list[Message]:
    """What a recorder that is started now gets."""
    replaying = JournalReplay(folder, make_cipher(secret_key))
    deliveries = []
    while taken := replaying.take(most=3):
        deliveries += taken
    for delivery in deliveries if confirms else ():
        delivery.confirm()
    replaying.close()
    return [delivery.message for delivery in deliveries]


def replay_copy(folder: Path, copy: Path) -> list[Message]:
    """What a recorder would get if the process of the journal were killed now."""
    shutil.rmtree(copy, ignore_errors=True)
    if not folder.exists():
        return []
    shutil.copytree(folder, copy)
    return replay(copy)


def calls(messages: list[Message]) -> list[str]:
    return [message.id for message in messages if isinstance(message, Exchange)]


def losses(messages: list[Message]) -> dict[str, int]:
    return {message.reason: message.count for message in messages if isinstance(message, Lost)}


def test_calls_of_a_killed_process_are_delivered_and_the_others_counted(
    journal: Journal, folder: Path, tmp_path: Path
) -> None:
    for number in range(5):
        end(journal, number)
    journal.begin("under-way-1", TEAM)
    journal.begin("under-way-2", TEAM)
    journal.begin("dropped", TEAM)
    journal.lose(Lost("loss", TEAM, QUEUE_FULL, 7), "dropped")
    delivered = replay_copy(folder, tmp_path / "copy")
    assert calls(delivered) == [name(number) for number in range(5)]
    assert losses(delivered) == {QUEUE_FULL: 7, KILLED: 2}
    assert list((tmp_path / "copy").iterdir()) == []


def test_the_journal_of_a_living_process_is_left_alone(journal: Journal, folder: Path) -> None:
    end(journal, 1)
    assert replay(folder) == []
    journal.close()
    assert calls(replay(folder)) == [name(1)]
    assert replay(folder) == []


def test_a_journal_stays_until_all_of_it_is_confirmed(journal: Journal, folder: Path) -> None:
    journal.begin("under-way", TEAM)
    end(journal, 1)
    journal.close()
    first = replay(folder, confirms=False)  # the recorder is killed before it has written them down
    assert replay(folder) == first
    assert list(folder.iterdir()) == []


def test_nothing_of_a_prompt_can_be_read_in_it_and_nothing_stays(journal: Journal, folder: Path) -> None:
    exchange = make_exchange(1)
    assert b"You sail." in exchange.request_body
    journal.begin("under-way", TEAM)
    end(journal, 1)
    segments = list(folder.glob("*.journal"))
    assert all(b"You sail." not in path.read_bytes() for path in segments)
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    journal.confirm(exchange.id)
    assert [path.stat().st_size < 100 for path in folder.glob("*.journal")] == [True]  # the call that is under way
    journal.confirm("under-way")
    assert list(folder.glob("*.journal")) == []
    journal.close()
    assert list(folder.iterdir()) == []


def test_a_call_that_another_secret_key_encrypted_is_counted(journal: Journal, folder: Path) -> None:
    end(journal, 1)
    journal.close()
    lost = replay(folder, secret_key="another key")
    assert lost == [Lost(name(1), TEAM, NOT_READABLE, 1)]


def test_a_kill_in_the_middle_of_a_write_counts_the_call(journal: Journal, folder: Path, tmp_path: Path) -> None:
    end(journal, 1)
    end(journal, 2)
    (segment,) = folder.glob("*.journal")
    whole = segment.read_bytes()
    for length in range(len(whole) - 150, len(whole)):
        segment.write_bytes(whole[:length])
        delivered = replay_copy(folder, tmp_path / "copy")
        assert (calls(delivered), losses(delivered)) == ([name(1)], {KILLED: 1})


@pytest.mark.parametrize("writes_part", [False, True])
def test_a_full_disk_stops_nothing_and_is_survived(
    journal: Journal, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, writes_part: bool
) -> None:
    def refuse(descriptor: int, parts: list[bytes]) -> int:
        if writes_part:
            return os.write(descriptor, parts[0])
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(journal_module, "RETRY_SECONDS", 0.0)
    end(journal, 1)
    journal.begin(name(2), TEAM)
    with monkeypatch.context() as full:
        full.setattr("dashboard.proxy.journal.os.writev", refuse)
        end(journal, 2, begins=False)
        end(journal, 3)
        journal.confirm(name(3))  # it was recorded from memory
        assert calls(replay_copy(folder, tmp_path / "copy")) == [name(1)]
    end(journal, 4)
    delivered = replay_copy(folder, tmp_path / "copy")
    assert (calls(delivered), losses(delivered)) == ([name(1), name(4)], {KILLED: 1})
    journal.confirm(name(2))
    assert losses(replay_copy(folder, tmp_path / "copy")) == {}


def test_a_folder_that_cannot_be_used_stops_nothing(tmp_path: Path) -> None:
    (tmp_path / "proxy").write_text("a file")
    journal = Journal(tmp_path / "proxy", CIPHER)
    end(journal, 1)
    journal.confirm(name(1))
    journal.close()


def test_a_slow_disk_is_left_alone_for_a_while(journal: Journal, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    end(journal, 1)
    monkeypatch.setattr(journal_module, "SLOW_WRITE_SECONDS", -1.0)
    end(journal, 2)
    size_bytes = sum(path.stat().st_size for path in folder.glob("*.journal"))
    end(journal, 3)
    assert sum(path.stat().st_size for path in folder.glob("*.journal")) == size_bytes


def test_all_journals_together_are_bounded(
    journal: Journal, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal_module, "MOST_FOLDER_BYTES", 60_000)
    monkeypatch.setattr(journal_module, "SEGMENT_BYTES", 10_000)
    for number in range(100):
        end(journal, number, size_bytes=5_000)
    assert sum(path.stat().st_size for path in folder.glob("*.journal")) < 90_000
    delivered = replay_copy(folder, tmp_path / "copy")
    assert len(calls(delivered)) + losses(delivered)[KILLED] == 100
    for number in range(100):
        journal.confirm(name(number))
    assert list(folder.glob("*.journal")) == []


def test_contents_that_come_too_fast_are_counted_instead(
    journal: Journal, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Encrypting and writing all of them would hold up the calls that pass."""
    monkeypatch.setattr(journal_module, "MOST_CONTENT_BUDGET_BYTES", 20_000)
    monkeypatch.setattr(journal_module, "CONTENT_BYTES_PER_SECOND", 0)
    for number in range(10):
        end(journal, number, size_bytes=5_000)
    delivered = replay_copy(folder, tmp_path / "copy")
    assert (len(calls(delivered)), losses(delivered)) == (4, {KILLED: 6})
    for number in range(10):
        journal.confirm(name(number))
    assert replay_copy(folder, tmp_path / "copy") == []


@pytest.mark.parametrize("seed", range(5))
def test_a_kill_at_any_moment_leaves_each_call_delivered_or_counted_once(
    journal: Journal, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    monkeypatch.setattr(journal_module, "SEGMENT_BYTES", 3_000)
    choose = random.Random(seed)
    begun: set[str] = set()
    ended: set[str] = set()
    confirmed: set[str] = set()
    lost_count = number = 0
    for _ in range(120):
        act = choose.choice(["begin", "begin", "end", "end", "lose", "confirm", "confirm"])
        if act == "begin":
            number += 1
            journal.begin(name(number), TEAM)
            begun.add(name(number))
        elif act == "confirm" and ended:
            journal.confirm(call := choose.choice(sorted(ended)))
            ended.remove(call)
            confirmed.add(call)
        elif act in ("end", "lose") and begun:
            begun.remove(call := choose.choice(sorted(begun)))
            if act == "end":
                end(journal, int(call.removeprefix("exchange-msg_")), begins=False)
                ended.add(call)
            else:
                lost_count += 1
                journal.lose(Lost("loss", TEAM, QUEUE_FULL, lost_count), call)
        delivered = replay_copy(folder, tmp_path / "copy")
        assert ended <= set(calls(delivered)) <= ended | confirmed
        assert len(calls(delivered)) == len(set(calls(delivered)))
        expected = {QUEUE_FULL: lost_count, KILLED: len(begun)}
        assert losses(delivered) == {reason: count for reason, count in expected.items() if count}


def test_what_the_feed_could_not_tell_is_told_by_its_journal(tmp_path: Path) -> None:
    path, folder = find_socket_path(tmp_path), tmp_path / "proxy"

    async def walk() -> None:
        feed = Feed(path, Journal(folder, CIPHER), most_waiting_bytes=20_000)
        for number in range(100):
            exchange = make_exchange(number, 1_000)
            feed.begin(exchange.id, TEAM)
            feed.offer(exchange)
        feed.begin("under-way", TEAM)
        kept = feed.waiting_count
        began = time.monotonic()
        await feed.close()
        assert time.monotonic() - began < 5
        delivered = replay(folder)
        assert calls(delivered) == [name(number) for number in range(kept)]
        assert losses(delivered) == {QUEUE_FULL: 100 - kept, KILLED: 1}

    run(walk())


def test_what_the_recorder_confirmed_leaves_no_journal(tmp_path: Path) -> None:
    path, folder = find_socket_path(tmp_path), tmp_path / "proxy"

    async def walk() -> None:
        inbox, feed = Inbox(path), Feed(path, Journal(folder, CIPHER), most_waiting_bytes=20_000)
        for number in range(100):
            exchange = make_exchange(number, 1_000)
            feed.begin(exchange.id, TEAM)
            feed.offer(exchange)
        kept = feed.waiting_count
        taken = await take(inbox, kept + 1)
        assert len(ids(taken)) == kept
        await wait_for_empty(feed)
        assert list(folder.glob("*.journal")) == []
        await feed.close()
        inbox.close()
        assert list(folder.iterdir()) == []

    run(walk())

"""Calls that passed the proxy of a whole installation: whatever is killed, each is recorded or counted, once."""

import contextlib
import http.client
import json
import os
import resource
import shutil
import signal
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from dashboard.proxy.journal_replay import KILLED
from tests.dashboard.proxy.talking import Client, make_usage, stream_answer, write_events
from tests.dashboard.running import Running, running_plimsoll, wait_until
from tests.fakes.raw_upstream import Connection, RawUpstream

pytestmark = pytest.mark.sqlite_only
CALLERS, CALLS_PER_SECOND = 5, 15
RECORDED_SECONDS = 30.0


class Api:
    """Counts every call that reaches it, and answers with a new message id."""

    def __init__(self) -> None:
        self.count = 0
        self._lock = threading.Lock()

    def __call__(self, connection: Connection) -> None:
        with self._lock:
            self.count += 1
            number = self.count
        connection.stream([write_events(stream_answer(f"msg_{number}", make_usage(written=5_000)))])


@pytest.fixture
def api() -> Api:
    return Api()


@pytest.fixture
def upstream(api: Api) -> Iterator[RawUpstream]:
    with RawUpstream(api) as started:
        yield started


@contextmanager
def installation(folder: Path, upstream: RawUpstream, *, web_processes: int = 2) -> Iterator[Running]:
    settings = {"PLIMSOLL_UPSTREAM": upstream.url, "PLIMSOLL_WEB_PROCESSES": str(web_processes)}
    with running_plimsoll(folder, **settings) as up:
        wait_until((folder / "data/proxy/recorder.sock").exists, seconds=30, what="the recorder")
        yield up


class Load:
    """Callers that go on whatever happens; `passed` are the messages whose whole answer they got."""

    def __init__(self, port: int) -> None:
        self.passed: set[str] = set()
        self._port, self._stopping = port, threading.Event()
        self._threads = [threading.Thread(target=self._call_on, args=(number,)) for number in range(CALLERS)]

    def __enter__(self) -> "Load":
        for thread in self._threads:
            thread.start()
            time.sleep(1 / CALLS_PER_SECOND)
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        for thread in self._threads:
            thread.join()

    def _call_on(self, number: int) -> None:
        headers = {"x-claude-code-session-id": f"0000000{number}-1111-4111-8111-111111111111"}
        talk = Client(headers=headers, messages=[{"role": "user", "content": f"Question of caller {number}"}])
        while not self._stopping.wait(CALLERS / CALLS_PER_SECOND):
            with contextlib.suppress(OSError, http.client.HTTPException):
                self._call(talk)

    def _call(self, talk: Client) -> None:
        with closing(http.client.HTTPConnection("127.0.0.1", self._port, timeout=30)) as connection:
            connection.request("POST", "/proxy/v1/messages", json.dumps(talk.body()), talk.headers)
            answer = connection.getresponse().read()
        if b"message_stop" in answer:
            self.passed.add("msg_" + answer.partition(b"msg_")[2].partition(b'"')[0].decode())


def kill_tree(up: Running) -> None:
    """All processes at once, without a chance to do anything."""
    up.process.send_signal(signal.SIGSTOP)  # it would start children again
    for pid in [*up.children(), up.process.pid]:
        os.kill(pid, signal.SIGKILL)
    up.process.wait()


def read_rows(folder: Path, statement: str) -> list[tuple[str | int, ...]]:
    with closing(sqlite3.connect(folder / "data/plimsoll.sqlite3", timeout=20)) as connection:
        return connection.execute(statement).fetchall()


def read_recorded(folder: Path) -> list[str]:
    return [str(row[0]) for row in read_rows(folder, "SELECT call_id FROM dashboard_apicall")]


def read_drops(folder: Path) -> dict[str, int]:
    return {str(reason): int(count) for reason, count in read_rows(folder, "SELECT reason, count FROM dashboard_drop")}


def wait_for_balance(folder: Path, api: Api) -> None:
    """Passed = recorded + counted, and it stays so."""

    def count() -> int:
        return len(read_recorded(folder)) + sum(read_drops(folder).values())

    wait_until(lambda: count() >= api.count, seconds=RECORDED_SECONDS, what="all calls to be recorded or counted")
    wait_until(lambda: not list((folder / "data/proxy").glob("*.journal")), seconds=20, what="empty journals")
    assert count() == api.count
    assert len(set(read_recorded(folder))) == len(read_recorded(folder))


def test_a_killed_installation_records_or_counts_every_call_that_passed(
    prepared: Path, api: Api, upstream: RawUpstream, tmp_path: Path
) -> None:
    passed: set[str] = set()
    for _ in range(2):
        with installation(prepared, upstream) as up, Load(up.port) as load:
            wait_until(lambda load=load: len(load.passed) > 40, seconds=30, what="calls")  # type: ignore[misc]
            kill_tree(up)
        passed |= load.passed
    left = tmp_path / "left"
    shutil.copytree(prepared / "data/proxy", left, ignore=shutil.ignore_patterns("*.sock"))
    assert list(left.glob("*.journal")), "the kill lost nothing, and shows nothing"
    with installation(prepared, upstream) as up:
        wait_for_balance(prepared, api)
        up.stop()
    assert passed <= set(read_recorded(prepared))
    assert set(read_drops(prepared)) <= {KILLED}

    before = read_recorded(prepared), read_drops(prepared)
    shutil.copytree(left, prepared / "data/proxy", dirs_exist_ok=True)
    with installation(prepared, upstream) as up:
        wait_until(lambda: not list((prepared / "data/proxy").glob("*.journal")), seconds=20, what="the second replay")
        up.stop()
    assert (read_recorded(prepared), read_drops(prepared)) == before


def test_calls_of_a_database_outage_survive_a_kill(prepared: Path, api: Api, upstream: RawUpstream) -> None:
    with installation(prepared, upstream) as up, Load(up.port) as load:
        wait_until(lambda: len(read_recorded(prepared)) > 5, seconds=30, what="recorded calls")
        with closing(sqlite3.connect(prepared / "data/plimsoll.sqlite3", timeout=20)) as lock:
            lock.execute("BEGIN IMMEDIATE")
            recorded = len(read_recorded(prepared))
            wait_until(lambda: len(load.passed) > recorded + 60, seconds=30, what="calls during the outage")
            kill_tree(up)
            lock.rollback()
    with installation(prepared, upstream):
        wait_for_balance(prepared, api)
    assert load.passed <= set(read_recorded(prepared))


def test_single_processes_that_are_killed_lose_nothing(prepared: Path, api: Api, upstream: RawUpstream) -> None:
    with installation(prepared, upstream) as up, Load(up.port) as load:
        for command in ("recorder", "web", "recorder", "web"):
            known = len(load.passed)
            wait_until(lambda known=known: len(load.passed) > known + 15, seconds=30, what="calls")  # type: ignore[misc]
            os.kill(up.children(command)[0], signal.SIGKILL)
            wait_until(lambda command=command: bool(up.children(command)), seconds=30, what="a new process")  # type: ignore[misc]
        load.__exit__()
        wait_for_balance(prepared, api)
        assert load.passed <= set(read_recorded(prepared))


def test_calls_pass_and_are_recorded_while_the_journal_cannot_be_written(
    prepared: Path, api: Api, upstream: RawUpstream
) -> None:
    with installation(prepared, upstream, web_processes=1) as up:
        (web,) = up.children("web")
        with Load(up.port) as load:
            wait_until(lambda: len(load.passed) > 5, seconds=30, what="the first calls")
            # No file of the web process grows any more, as on a full disk.
            resource.prlimit(web, resource.RLIMIT_FSIZE, (10, resource.RLIM_INFINITY))
            known = len(load.passed)
            wait_until(lambda: len(load.passed) > known + 30, seconds=30, what="calls")
        wait_for_balance(prepared, api)
        assert load.passed == set(read_recorded(prepared))
        assert read_drops(prepared) == {}
        assert up.children("web") == [web]

"""The proxy as `plimsoll up` runs it: recorder killed, database locked, disk full, stopped with a stream in flight."""

import http.client
import json
import os
import resource
import signal
import sqlite3
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dashboard.proxy.recorder import GATHER_SECONDS
from tests.dashboard.proxy.talking import Client, make_usage, stream_answer, write_events
from tests.dashboard.running import Running, running_plimsoll, wait_until
from tests.fakes.raw_upstream import Connection, RawUpstream

pytestmark = pytest.mark.sqlite_only


class Api:
    """Answers every call with the next message id."""

    def __init__(self) -> None:
        self.count = 0
        self.pause_seconds = 0.0

    def __call__(self, connection: Connection) -> None:
        self.count += 1
        events = stream_answer(f"msg_{self.count}", make_usage(written=5_000))
        connection.send_head("200 OK", ("content-type", "text/event-stream"), ("transfer-encoding", "chunked"))
        for event in events:
            connection.send_chunk(write_events([event]))
            time.sleep(self.pause_seconds)
        connection.end_chunks()


@pytest.fixture
def api() -> Api:
    return Api()


@pytest.fixture
def up(prepared: Path, api: Api) -> Iterator[Running]:
    with RawUpstream(api) as upstream, running_plimsoll(prepared, PLIMSOLL_UPSTREAM=upstream.url) as running:
        yield running


def call(up: Running, talk: Client) -> tuple[int, bytes]:
    talk.messages.append({"role": "user", "content": f"Question {len(talk.messages)}"})
    connection = http.client.HTTPConnection("127.0.0.1", up.port, timeout=30)
    try:
        connection.request("POST", "/proxy/v1/messages?beta=true", json.dumps(talk.body()), talk.headers)
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


def ask_database(up: Running, question: str) -> Any:
    database = sqlite3.connect(up.folder / "data" / "plimsoll.sqlite3", timeout=20)
    try:
        return database.execute(question).fetchone()[0]
    finally:
        database.close()


def count_calls(up: Running) -> int:
    return int(ask_database(up, "SELECT count(*) FROM dashboard_apicall"))


def test_calls_pass_whatever_happens_to_the_recorder_and_the_database(up: Running) -> None:
    talk = Client()
    assert call(up, talk)[0] == 200
    wait_until(lambda: count_calls(up) == 1, seconds=20, what="the first call to be recorded")

    os.kill(up.children("recorder")[0], signal.SIGKILL)
    began = time.monotonic()
    assert [call(up, talk)[0] for _ in range(5)] == [200] * 5
    assert time.monotonic() - began < 5
    wait_until(lambda: count_calls(up) == 6, seconds=60, what="calls made while no recorder ran")

    lock = sqlite3.connect(up.folder / "data" / "plimsoll.sqlite3", timeout=20)
    lock.execute("BEGIN IMMEDIATE")
    began = time.monotonic()
    assert [call(up, talk)[0] for _ in range(5)] == [200] * 5
    assert time.monotonic() - began < 5
    lock.rollback()
    lock.close()
    wait_until(lambda: count_calls(up) == 11, seconds=60, what="calls made while the database was locked")

    recorder, unlimited = up.children("recorder")[0], resource.RLIM_INFINITY
    resource.prlimit(recorder, resource.RLIMIT_FSIZE, (4096, unlimited))  # no file grows any more, as on a full disk
    assert [call(up, talk)[0] for _ in range(5)] == [200] * 5
    time.sleep(2 * GATHER_SECONDS)  # it would have been written by now
    assert count_calls(up) == 11
    resource.prlimit(recorder, resource.RLIMIT_FSIZE, (unlimited, unlimited))
    wait_until(lambda: count_calls(up) == 16, seconds=60, what="calls made while the disk was full")
    assert up.children("recorder") == [recorder]
    assert ask_database(up, "SELECT count(*) FROM dashboard_drop") == 0


def test_a_stream_in_flight_is_answered_and_recorded_when_plimsoll_is_stopped(up: Running, api: Api) -> None:
    api.pause_seconds = 0.3
    answers: list[tuple[int, bytes]] = []
    talk = Client()
    caller = threading.Thread(target=lambda: answers.append(call(up, talk)))
    caller.start()
    wait_until(lambda: api.count == 1, seconds=10, what="the call to arrive")
    assert up.stop() < 10
    caller.join(10)
    assert answers[0][0] == 200
    assert b"message_stop" in answers[0][1]
    assert count_calls(up) == 1

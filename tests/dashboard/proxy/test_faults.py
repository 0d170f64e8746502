"""Upstreams that misbehave, callers who leave, limits: the same bytes, or a clean refusal (R13, R14)."""

import asyncio
import contextlib
import gzip
import json
import socket
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from dashboard.front_door import Message
from dashboard.proxy import forwarder
from dashboard.proxy.callers import Caller
from dashboard.proxy.forwarder import Doors, Forwarder
from dashboard.proxy.refusals import Refusal
from dashboard.proxy.upstreams import find_way_out
from dashboard.proxy.wire import Ending
from tests.dashboard.proxy.serving import CALLER, KEY, LIMITS, Answered, KnownCallers, Serving, say_page, serving
from tests.dashboard.running import wait_until
from tests.fakes.raw_upstream import Connection, RawUpstream, Script, Seen

REPEATS = 10
EVENT = b'event: message_start\ndata: {"type":"message_start"}\n\n'
STREAM = ("content-type", "text/event-stream"), ("transfer-encoding", "chunked")


def reset_before_answer(connection: Connection) -> None:
    connection.reset()


def close_before_answer(connection: Connection) -> None:
    connection.close()


def say_garbage(connection: Connection) -> None:
    connection.send(b"\x00\xffnot http at all\r\n\r\n")
    connection.close()


def stall_before_answer(connection: Connection) -> None:
    connection.wait_until_gone(10)


def stall_in_stream(connection: Connection) -> None:
    connection.send_head("200 OK", *STREAM)
    connection.send_chunk(EVENT)
    connection.wait_until_gone(10)


def reset_in_stream(connection: Connection) -> None:
    connection.send_head("200 OK", *STREAM)
    connection.send_chunk(EVENT)
    time.sleep(0.05)
    connection.reset()


def send_half_a_chunk(connection: Connection) -> None:
    connection.send_head("200 OK", *STREAM)
    connection.send_chunk(EVENT)
    connection.send(b"%x\r\n%s" % (len(EVENT), EVENT[: len(EVENT) // 2]))
    time.sleep(0.05)
    connection.close()


def promise_more_than_comes(connection: Connection) -> None:
    connection.send_head("200 OK", ("content-length", "1000"))
    connection.send(b'{"half":')
    time.sleep(0.05)
    connection.close()


def answer_429(connection: Connection) -> None:
    connection.answer(b'{"type":"error"}', ("retry-after", "3"), status="429 Too Many Requests")


def answer_529(connection: Connection) -> None:
    connection.answer(b'{"type":"error","error":{"type":"overloaded_error"}}', status="529 Overloaded")


MALFORMED = b"data: {broken\n\ndata\n:\nevent: \xff\xfe\n\n\r\r\ndata: []\n\nevent: message_stop"


def stream_malformed_events(connection: Connection) -> None:
    connection.stream([MALFORMED])


PACKED = gzip.compress(EVENT * 100)


def stream_gzip(connection: Connection) -> None:
    connection.send_head("200 OK", *STREAM, ("content-encoding", "gzip"))
    for start in range(0, len(PACKED), 7):
        connection.send_chunk(PACKED[start : start + 7])
    connection.end_chunks()


FAULTS: dict[str, tuple[Script, int, bytes, bool]] = {
    # name: script, status, bytes that must have come, whether the answer is cut
    "reset before the answer": (reset_before_answer, 502, b"Plimsoll", False),
    "closed before the answer": (close_before_answer, 502, b"Plimsoll", False),
    "garbage": (say_garbage, 502, b"Plimsoll", False),
    "stall before the answer": (stall_before_answer, 504, b"Plimsoll", False),
    "stall in the stream": (stall_in_stream, 200, EVENT, True),
    "reset in the stream": (reset_in_stream, 200, EVENT, True),
    "half a chunk": (send_half_a_chunk, 200, EVENT, True),
    "less than promised": (promise_more_than_comes, 200, b'{"half":', True),
    "429": (answer_429, 429, b'{"type":"error"}', False),
    "529": (answer_529, 529, b"overloaded_error", False),
    "malformed events": (stream_malformed_events, 200, MALFORMED, False),
    "gzip": (stream_gzip, 200, PACKED, False),
}


@pytest.mark.parametrize("name", FAULTS)
def test_fault_gives_the_same_bytes_or_a_clean_refusal(upstream: RawUpstream, tmp_path: Path, name: str) -> None:
    script, status, told, is_cut = FAULTS[name]
    upstream.script = script
    with serving(upstream.url, tmp_path, limits=replace(LIMITS, silence_seconds=0.3, answer_seconds=0.3)) as proxy:
        for number in range(REPEATS):
            answered = proxy.ask("/proxy/v1/messages", b"{}")
            assert answered.status == status
            assert answered.is_cut is is_cut
            assert told in answered.body
            if status in (502, 504):
                assert json.loads(answered.body)["type"] == "error"
            elif not is_cut:
                assert answered.body == told or status in (429, 529)
            exchange = proxy.wait_for_exchange(number + 1)
            assert (exchange.ending is Ending.WHOLE) is (not is_cut and status not in (502, 504))
        upstream.script = answer_529  # and it goes on as if nothing had happened
        assert proxy.ask("/proxy/v1/messages", b"{}").status == 529


def test_unreachable_upstream_is_a_502(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    with serving(f"http://127.0.0.1:{port}", tmp_path) as proxy:
        answered = proxy.ask("/proxy/v1/messages", b"{}")
    assert answered.status == 502
    assert "the upstream is unreachable" in json.loads(answered.body)["error"]["message"]


# --- callers who leave (R13) ---


def leave_before_first_byte(connection: Connection) -> None:
    connection.wait_until_gone(5)


def leave_mid_stream(connection: Connection) -> None:
    connection.send_head("200 OK", *STREAM)
    connection.send_chunk(EVENT)
    connection.wait_until_gone(5)


def leave_mid_body(connection: Connection) -> None:
    connection.send_head("200 OK", ("content-length", "1000"))
    connection.send(b'{"half":')
    connection.wait_until_gone(5)


def wait_for_end(seen: Seen) -> float:
    wait_until(lambda: seen.closed_at is not None, seconds=2, what="the upstream to be closed")
    return seen.closed_at or 0.0


@pytest.mark.parametrize("script", [leave_before_first_byte, leave_mid_stream, leave_mid_body])
def test_upstream_is_closed_within_a_second_of_the_callers_leaving(
    proxy: Serving, upstream: RawUpstream, script: Script
) -> None:
    upstream.script = script
    for number in range(3):
        with socket.create_connection(("127.0.0.1", proxy.port)) as connection:
            head = f"POST /proxy/k/{KEY}/v1/messages HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n"
            connection.sendall(head.encode() + b"{}")
            seen = upstream.wait_for_request(number + 1)
            if script is not leave_before_first_byte:
                connection.recv(1000)
            time.sleep(0.05)
        left_at = time.monotonic()
        assert wait_for_end(seen) - left_at < 1.0
        assert proxy.wait_for_exchange(number + 1).ending is Ending.CLIENT_LEFT


def test_leaving_in_the_middle_of_an_upload_closes_the_upstream(proxy: Serving, upstream: RawUpstream) -> None:
    with socket.create_connection(("127.0.0.1", proxy.port)) as connection:
        head = f"POST /proxy/k/{KEY}/v1/messages HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n"
        connection.sendall(head.encode() + b"{}")
        seen = upstream.wait_for_request()
    wait_until(lambda: proxy.wait_for_exchange().ending is Ending.CLIENT_LEFT, seconds=2, what="the end")
    assert seen.body in (b"", b"{}")


@pytest.mark.parametrize("parts", [[b""], [b"half"], [b"", b"half", b""], [b"half", b"more"]])
def test_a_body_shorter_than_its_head_told_is_not_passed_as_whole(
    upstream: RawUpstream, tmp_path: Path, parts: list[bytes]
) -> None:
    """The web server sends none; whoever did would make the next call over that connection the rest of this one."""
    upstream.script = stall_before_answer
    doors = Doors({"default": upstream.url}, is_local=False, hosts=frozenset())
    forwarder = Forwarder(say_page, doors=doors, limits=LIMITS, recorder_path=tmp_path / "no-recorder")
    forwarder._callers = KnownCallers()
    headers = [(b"x-plimsoll-key", KEY.encode()), (b"content-length", b"12")]
    told = [{"type": "http.request", "body": part, "more_body": True} for part in parts]
    told[-1]["more_body"] = False

    async def receive() -> Message:
        return told.pop(0)

    async def send(message: Message) -> None:
        raise AssertionError(message)

    async def walk() -> None:
        scope = {"type": "http", "method": "POST", "query_string": b"", "headers": headers}
        path = {"raw_path": b"/proxy/v1/models", "path": "/proxy/v1/models"}
        await asyncio.wait_for(forwarder({**scope, **path}, receive, send), 10)
        assert forwarder._session is not None
        connector = forwarder._session.connector
        assert connector is not None
        assert not connector._conns  # nothing is kept for the next call
        await forwarder.close()

    asyncio.run(walk())
    assert all(len(seen.body) < 12 for seen in upstream.requests)


# --- limits ---


def ask_raw(proxy: Serving, data: bytes) -> bytes:
    with socket.create_connection(("127.0.0.1", proxy.port), timeout=10) as connection:
        connection.sendall(data)
        received = b""
        while not received.endswith(b"}}") and (part := connection.recv(65536)):
            received += part
        return received


def test_too_large_a_body_is_refused_before_it_is_read(proxy: Serving, upstream: RawUpstream) -> None:
    head = f"POST /proxy/k/{KEY}/v1/messages HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999\r\n\r\n"
    answered = ask_raw(proxy, head.encode())
    assert answered.startswith(b"HTTP/1.1 413")
    assert b"request_too_large" in answered
    assert upstream.requests == []


def test_too_large_a_body_of_unknown_length_is_stopped_at_the_limit(upstream: RawUpstream, tmp_path: Path) -> None:
    with serving(upstream.url, tmp_path, limits=replace(LIMITS, body_bytes=100_000)) as proxy:
        head = f"POST /proxy/k/{KEY}/v1/messages HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
        chunk = b"10000\r\n" + b"x" * 65536 + b"\r\n"
        answered = ask_raw(proxy, head.encode() + chunk * 3)
    assert answered.startswith(b"HTTP/1.1 413")


def start_trickling(proxy: Serving, count: int) -> list[socket.socket]:
    head = f"POST /proxy/v1/messages HTTP/1.1\r\nHost: a\r\nX-Plimsoll-Key: {KEY}\r\nContent-Length: 100000\r\n\r\n"
    sockets = [socket.create_connection(("127.0.0.1", proxy.port), timeout=20) for _ in range(count)]
    for each in sockets:
        each.sendall(head.encode() + b"{")
    return sockets


def test_a_body_that_trickles_is_ended_although_it_is_never_silent(
    upstream: RawUpstream, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forwarder, "SLOW_BODY_SECONDS", 0.1)
    with serving(upstream.url, tmp_path, limits=replace(LIMITS, silence_seconds=0.5)) as proxy:
        (trickling,) = start_trickling(proxy, 1)
        with trickling:
            trickling.settimeout(0.1)
            give_up_at, answer = time.monotonic() + 20, b""
            while not answer and time.monotonic() < give_up_at:
                trickling.sendall(b" ")
                with contextlib.suppress(TimeoutError):
                    answer = trickling.recv(65536)
    assert answer.startswith(b"HTTP/1.1 408")


def test_slow_requests_leave_places_for_others(
    upstream: RawUpstream, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forwarder, "SLOW_BODY_SECONDS", 0.3)
    with serving(upstream.url, tmp_path, limits=replace(LIMITS, calls_at_once=8)) as proxy:
        sockets = start_trickling(proxy, 8)
        refused = 0
        for each in reversed(sockets[2:]):  # a quarter of the places for one key; those that began last have to go
            answer = each.recv(65536)
            refused += answer.startswith(b"HTTP/1.1 503") and b"slowly" in answer
        assert refused == 6
        assert proxy.ask("/proxy/v1/messages", b"{}").status == 200
        for each in sockets[:2]:
            each.sendall(b"a" * 99_999)
            assert each.recv(65536).startswith(b"HTTP/1.1 200")
        for each in sockets:
            each.close()


def test_a_body_that_stops_arriving_is_a_408(upstream: RawUpstream, tmp_path: Path) -> None:
    with serving(upstream.url, tmp_path, limits=replace(LIMITS, silence_seconds=0.3)) as proxy:
        head = f"POST /proxy/k/{KEY}/v1/messages HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n"
        assert ask_raw(proxy, head.encode() + b"half").startswith(b"HTTP/1.1 408")


@pytest.mark.parametrize("is_early", [False, True])
def test_an_answer_in_one_piece_may_be_silent_for_longer_until_it_is_there(
    upstream: RawUpstream, tmp_path: Path, *, is_early: bool
) -> None:
    def think_long(connection: Connection) -> None:
        if is_early:
            connection.send_head("200 OK", ("content-type", "application/json"), ("content-length", "2"))
        time.sleep(2.0)  # five times the silence that ends a call
        connection.send(b"{}") if is_early else connection.answer(b"{}")

    upstream.script = think_long
    limits = replace(LIMITS, silence_seconds=0.4, answer_seconds=60)
    with serving(upstream.url, tmp_path, limits=limits) as proxy:
        answered = proxy.ask("/proxy/v1/messages", b"{}")
    assert (answered.status, answered.body, answered.is_cut) == (200, b"{}", False)


def test_once_an_answer_has_begun_silence_ends_it_as_soon_as_ever(upstream: RawUpstream, tmp_path: Path) -> None:
    upstream.script = promise_and_stall
    with serving(upstream.url, tmp_path, limits=replace(LIMITS, silence_seconds=0.3, answer_seconds=60)) as proxy:
        assert proxy.ask("/proxy/v1/messages", b"{}").is_cut
        assert proxy.wait_for_exchange().ending is Ending.SILENT


def promise_and_stall(connection: Connection) -> None:
    connection.send_head("200 OK", ("content-type", "application/json"), ("content-length", "1000"))
    connection.send(b'{"half":')
    connection.wait_until_gone(10)


def test_a_connection_closed_while_it_stood_idle_is_replaced(proxy: Serving, upstream: RawUpstream) -> None:
    upstream.script = answer_once_a_connection()
    for number in range(5):
        answered = proxy.ask("/proxy/v1/messages", b'{"number":%d}' % number)
        assert (answered.status, answered.body) == (200, b'{"number":%d}' % number)
    assert len(upstream.requests) == 9  # all but the first were sent twice


def test_a_connection_closed_after_a_while_may_have_been_at_work(
    proxy: Serving, upstream: RawUpstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dashboard.proxy.passage.CLOSED_IDLE_SECONDS", -1.0)
    upstream.script = answer_once_a_connection()
    assert [proxy.ask("/proxy/v1/messages", b"{}").status for _ in range(2)] == [200, 502]
    assert len(upstream.requests) == 2


def answer_once_a_connection() -> Script:
    """Says nothing to a second request, as a server does that has just given the connection up."""
    known: list[socket.socket] = []

    def answer(connection: Connection) -> None:
        if connection.socket in known:
            connection.close()
        else:
            known.append(connection.socket)
            connection.answer(connection.seen.body)

    return answer


def test_the_way_out_of_the_network_is_taken(
    upstream: RawUpstream, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", upstream.url)
    monkeypatch.setenv("NO_PROXY", "near.example")
    upstream.script = lambda connection: connection.answer(b"", status="403 Forbidden")
    with serving("https://far.example", tmp_path, here=upstream.url) as proxy:
        assert proxy.ask("/proxy/v1/messages", b"{}").status == 502
        assert proxy.ask("/proxy/u/here/v1/messages", b"{}").status == 403
    assert [(seen.method, seen.target) for seen in upstream.requests] == [
        ("CONNECT", "far.example:443"),
        ("POST", "/v1/messages"),
    ]
    assert find_way_out("https://near.example") is None


def test_pings_keep_a_long_thought_alive(upstream: RawUpstream, tmp_path: Path) -> None:
    def think_long(connection: Connection) -> None:
        connection.send_head("200 OK", *STREAM)
        for _ in range(10):
            time.sleep(0.1)
            connection.send_chunk(b"event: ping\n\n")
        connection.end_chunks()

    upstream.script = think_long
    with serving(upstream.url, tmp_path, limits=replace(LIMITS, silence_seconds=0.4)) as proxy:
        answered = proxy.ask("/proxy/v1/messages", b"{}")
    assert (answered.is_cut, answered.body.count(b"ping")) == (False, 10)


def test_quota_is_a_429_with_the_time_to_wait(upstream: RawUpstream, tmp_path: Path) -> None:
    with serving(upstream.url, tmp_path, limits=replace(LIMITS, calls_per_minute=3)) as proxy:
        answers: list[Answered] = [proxy.ask("/proxy/v1/messages", b"{}") for _ in range(4)]
    assert [answered.status for answered in answers] == [200, 200, 200, 429]
    assert 1 <= int(answers[-1].header("retry-after") or 0) <= 20
    assert json.loads(answers[-1].body)["error"]["type"] == "rate_limit_error"
    assert len(upstream.requests) == 3


def test_a_limit_of_the_key_itself_goes_before_that_of_the_installation(upstream: RawUpstream, tmp_path: Path) -> None:
    for own, expected in ((2, [200, 200, 429]), (0, [200, 200, 200])):
        with serving(upstream.url, tmp_path, limits=replace(LIMITS, calls_per_minute=1)) as proxy:
            proxy.forwarder._callers = LimitedCallers(own)
            assert [proxy.ask("/proxy/v1/messages", b"{}").status for _ in range(3)] == expected


class LimitedCallers(KnownCallers):
    def __init__(self, per_minute: int) -> None:
        super().__init__()
        self._per_minute = per_minute

    async def find_by_key(self, text: str) -> Caller | Refusal:
        assert text
        return replace(CALLER, calls_per_minute=self._per_minute)


def test_too_many_calls_at_once_are_put_off(upstream: RawUpstream, tmp_path: Path) -> None:
    upstream.script = stall_before_answer
    with serving(upstream.url, tmp_path, limits=replace(LIMITS, calls_at_once=1)) as proxy:
        with socket.create_connection(("127.0.0.1", proxy.port)) as connection:
            head = f"POST /proxy/k/{KEY}/v1/x HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n"
            connection.sendall(head.encode())
            upstream.wait_for_request()
            answered = proxy.ask("/proxy/v1/messages", b"{}")
        assert (answered.status, answered.header("retry-after")) == (503, "1")


def test_an_answer_too_large_to_record_still_passes(
    proxy: Serving, upstream: RawUpstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dashboard.proxy.tap.LARGEST_ANSWER_BYTES", 1000)
    upstream.script = lambda connection: connection.answer(b"x" * 5000)
    assert proxy.ask("/proxy/v1/messages", b"{}").body == b"x" * 5000
    lost: Callable[[], list[tuple[int, str]]] = lambda: proxy.forwarder._feed.lost  # type: ignore[union-attr] # noqa: E731
    wait_until(lambda: lost() == [(1, "answer too large to record")], seconds=2, what="the loss to be counted")
    assert proxy.exchanges == []

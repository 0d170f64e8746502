"""Calls whose callers left, or that failed, from the proxy's port down to the stored row: also of clients that name no
session (R13)."""

import json
import socket
from typing import Any

import msgspec
import pytest

from dashboard.ingest.observed import Rules
from dashboard.models import AgentSession, ApiCall, Drop, Team, UnansweredCall
from dashboard.proxy.reports import FAILED_AT_FIRST, Reporter
from dashboard.proxy.wire import Ending, Exchange
from tests.builders import make_team
from tests.dashboard.proxy.serving import KEY, Serving
from tests.dashboard.proxy.talking import SESSION, Client, make_usage, stream_answer, write_events
from tests.dashboard.proxy.test_recorder import Table, talk_for
from tests.fakes.raw_upstream import Connection, RawUpstream, Script

RULES = Rules(keeps_content=False, digest_key=b"k" * 32)
CLIENTS = {"a client that names its session": {"x-claude-code-session-id": SESSION}, "a plain SDK client": {}}
EVENTS = stream_answer("msg_2", make_usage(read=5_000), words="x" * 400)


def stay_silent(connection: Connection) -> None:
    connection.wait_until_gone(20)


def begin_stream(connection: Connection) -> None:
    connection.send_head("200 OK", ("content-type", "text/event-stream"), ("transfer-encoding", "chunked"))
    connection.send_chunk(write_events(EVENTS[:5]))
    connection.wait_until_gone(20)


def send_half(connection: Connection) -> None:
    connection.send_head("200 OK", ("content-type", "application/json"), ("content-length", "1000"))
    connection.send(b'{"id":"msg_2","content":[')
    connection.wait_until_gone(20)


def answer_whole(connection: Connection) -> None:
    events = stream_answer("msg_1", make_usage(written=5_000))
    connection.stream([write_events(events)], ("request-id", "req_1"))


def leave(proxy: Serving, upstream: RawUpstream, body: bytes, headers: dict[str, str], *, after: bytes) -> None:
    """Asks, and goes when the upstream was asked and so much of an answer came."""
    told = {"Host": "x", "X-Plimsoll-Key": KEY, "Content-Length": str(len(body)), **headers}
    head = "".join(f"{name}: {value}\r\n" for name, value in told.items())
    with socket.create_connection(("127.0.0.1", proxy.port), timeout=20) as connection:
        connection.sendall(f"POST /proxy/v1/messages HTTP/1.1\r\n{head}\r\n".encode() + body)
        upstream.wait_for_request(len(proxy.exchanges) + 1)
        received = b""
        while after not in received:
            received += connection.recv(65536)


@pytest.mark.django_db
@pytest.mark.parametrize("who", CLIENTS)
@pytest.mark.parametrize("script", [stay_silent, begin_stream, send_half])
def test_a_call_whose_caller_left_is_a_row_of_its_session(
    proxy: Serving, upstream: RawUpstream, script: Script, who: str
) -> None:
    team = make_team("Harbour", owner="ann")
    client = Client(headers=CLIENTS[who], messages=[{"role": "user", "content": "One"}])
    upstream.script = answer_whole
    proxy.ask("/proxy/v1/messages", json.dumps(client.body()).encode(), headers=client.headers)
    proxy.wait_for_exchange()
    upstream.script = script
    client.messages += [{"role": "assistant", "content": "Well then."}, {"role": "user", "content": "Two"}]
    after = b"" if script is stay_silent else b"msg_2"
    leave(proxy, upstream, json.dumps(client.body()).encode(), client.headers, after=after)
    proxy.wait_for_exchange(2, seconds=20)
    record(team, proxy.exchanges)
    session = AgentSession.objects.get()
    if script is begin_stream:
        cut = ApiCall.objects.get(session=session, call_id="msg_2")
        assert (cut.stop_reason, cut.is_output_estimated, cut.read_tokens) == ("client left", True, 5_000)
        assert not UnansweredCall.objects.exists()
    else:
        left = UnansweredCall.objects.get(session=session)
        assert (left.reason, left.status) == ("client left", 200 if script is send_half else None)
        assert session.call_count == 1
    assert not Drop.objects.exists()


def record(team: Team, exchanges: list[Exchange]) -> None:
    changes: dict[str, Any] = {"team_pk": team.pk, "owner_pk": None, "key_pk": None}
    Table().write(*(msgspec.structs.replace(each, **changes) for each in exchanges))


# --- failures of clients that name no session ---


def fail(client: Client, name: str, **changes: Any) -> Exchange:
    told = {"status": 0, "ending": Ending.UPSTREAM_FAILED, "response_headers": {}, **changes}
    return client.send(b"", name, **told)


@pytest.mark.django_db
def test_a_failure_goes_to_the_conversation_it_would_have_gone_on_with() -> None:
    team = make_team("Harbour", owner="ann", member="ben")
    client = talk_for(team, headers={})
    first = client.call("One", "msg_1")
    client.messages.append({"role": "user", "content": "Two"})
    failed = [fail(client, name, request_headers={"x-stainless-retry-count": name}) for name in ("0", "2")]
    Table().write(first, *failed)
    rows = UnansweredCall.objects.order_by("at")
    assert [(row.reason, row.attempt) for row in rows] == [("upstream failed", None), ("upstream failed", 2)]
    assert {row.session_id for row in rows} == {AgentSession.objects.get().pk}


@pytest.mark.django_db
def test_a_first_request_that_fails_is_counted() -> None:
    team = make_team("Harbour", owner="ann", member="ben")
    client = talk_for(team, headers={})
    client.messages.append({"role": "user", "content": "One"})
    Table().write(fail(client, "a"))
    assert not AgentSession.objects.exists()
    assert [(drop.reason, drop.count) for drop in Drop.objects.all()] == [(FAILED_AT_FIRST, 1)]


@pytest.mark.django_db
def test_a_failure_after_a_restart_of_the_recorder_finds_its_conversation_too() -> None:
    client = talk_for(make_team("Harbour", owner="ann", member="ben"), headers={})
    Table().write(client.call("One", "msg_1"))
    client.messages.append({"role": "user", "content": "Two"})
    Table().write(fail(client, "a"))
    assert UnansweredCall.objects.get().session_id == AgentSession.objects.get().pk


def test_a_failure_does_not_use_up_a_conversation_that_another_began_alike() -> None:
    reporter, clients = Reporter(), [Client(headers={}) for _ in range(3)]
    first = [_name(reporter, client.call("Yes or no?", f"a{n}", reply="Yes")) for n, client in enumerate(clients)]
    clients[0].messages.append({"role": "user", "content": "Why?"})
    assert _name(reporter, fail(clients[0], "x")) in first
    clients[0].messages.pop()
    second = [_name(reporter, client.call(f"Why {n}?", f"b{n}")) for n, client in enumerate(clients)]
    assert sorted(second) == sorted(first)


def _name(reporter: Reporter, exchange: Exchange) -> str:
    report = reporter.read(exchange, RULES)
    assert report is not None
    return report.session_id


def test_counting_before_there_is_a_conversation_says_nothing() -> None:
    client = Client(headers={}, messages=[{"role": "user", "content": "One"}])
    counted = client.send(b'{"input_tokens":12}', "c", response_headers={"content-type": "application/json"})
    assert Reporter().read(counted, RULES) is None

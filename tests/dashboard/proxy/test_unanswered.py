"""Calls that no model answered, or not to the end, and what a team had added: recorded once, shown on the pages."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from dashboard.ingest.intake import Origin, take_in
from dashboard.ingest.observed import Piece
from dashboard.models import AgentSession, ApiCall, CacheBreak, Team, UnansweredCall
from dashboard.proxy.wire import Ending, Exchange
from tests.builders import make_team, make_user
from tests.dashboard.ingest.conversation import Conversation
from tests.dashboard.proxy.talking import SESSION, Client, make_usage, stream_answer, write_events
from tests.dashboard.proxy.test_recorder import Table, talk_for
from tests.visitors import read, sign_in

pytestmark = pytest.mark.django_db
JSON = {"content-type": "application/json"}


@pytest.fixture
def team() -> Team:
    return make_team("Harbour", owner="ann", member="ben")


def refuse(client: Client, message_id: str, status: int, error: str, **changes: Any) -> Exchange:
    body = json.dumps({"type": "error", "error": {"type": error, "message": "No."}}).encode()
    headers = {**JSON, "request-id": f"req_{message_id}"}
    return client.send(body, message_id, status=status, response_headers=headers, **changes)


def read_timeline() -> str:
    return read(sign_in("ann"), f"/sessions/{AgentSession.objects.get().pk}/")


def test_failed_and_partial_calls_are_listed_with_status_reason_and_time(team: Team) -> None:
    client = talk_for(team)
    good = client.call("One", "msg_1", usage=make_usage(written=5_000))
    client.messages.append({"role": "user", "content": "Two"})
    failed = [
        refuse(client, "a", 529, "overloaded_error"),
        client.send(b"", "b", status=0, ending=Ending.UPSTREAM_FAILED, response_headers={}),
    ]
    events = stream_answer("msg_2", make_usage(read=5_000), words="x" * 400)[:5]
    cut = client.call("Three", "msg_2", events=events, ending=Ending.CLIENT_LEFT)
    Table().write(good, *failed, cut)
    rows = UnansweredCall.objects.order_by("at").values_list("name", "status", "reason", "source", "duration_seconds")
    assert list(rows) == [
        ("req_a", 529, "overloaded_error", "proxy", 2.0),
        ("proxied-failure:exchange-b", None, "upstream failed", "proxy", 2.0),
    ]
    page = read_timeline()
    listed = page.partition('id="unanswered-title"')[2]
    assert [listed.count(words) for words in ("529", "overloaded_error", "upstream closed the connection")] == [1, 1, 1]
    assert "client disconnected" in listed
    assert f"?call={ApiCall.objects.get(call_id='msg_2').pk}" in listed


def test_a_failure_that_the_transcript_tells_too_is_one_row(team: Team) -> None:
    talk = Conversation("joined")
    talk.session_id = SESSION
    talk.now = datetime.fromtimestamp(Client().now, UTC)
    talk.ask("One")
    error = {"status": 529, "requestId": "req_a", "formatted": "529 Overloaded"}
    talk.write("system", subtype="api_error", level="error", error=error, retryInMs=500, retryAttempt=2, maxRetries=10)
    client = talk_for(team)
    client.messages.append({"role": "user", "content": "One"})
    Table().write(refuse(client, "a", 529, "overloaded_error"))
    take_in(Origin(team, make_user("ben"), "api"), Piece(talk.data, "lines", session_id=SESSION))
    row = UnansweredCall.objects.get()
    assert (row.name, row.status, row.reason, row.attempt) == ("req_a", 529, "overloaded_error", 2)
    assert row.source == "proxy"


def test_a_failed_call_says_what_was_added_to_it(team: Team) -> None:
    client = talk_for(team)
    good = client.call("One", "msg_1", usage=make_usage(written=5_000))
    client.messages.append({"role": "user", "content": "Two"})
    added = ("cache-diagnosis", "clear-tool-uses")
    refused = refuse(client, "a", 400, "invalid_request_error", added=added)
    cut = client.call(
        "Three", "msg_2", events=stream_answer("msg_2", make_usage())[:5], ending=Ending.SILENT, added=added[:1]
    )
    Table().write(good, refused, refuse(client, "b", 529, "overloaded_error"), cut)
    rows = UnansweredCall.objects.order_by("at").values_list("name", "added")
    assert list(rows) == [("req_a", "cache-diagnosis, clear-tool-uses"), ("req_b", "")]
    listed = read_timeline().partition('id="unanswered-title"')[2]
    assert listed.count("added by the proxy: cache-diagnosis, clear-tool-uses") == 1
    assert listed.count("added by the proxy: cache-diagnosis<") == 1


def test_what_was_added_stays_where_the_transcript_tells_of_the_failure_too(team: Team) -> None:
    talk = Conversation("joined")
    talk.session_id = SESSION
    talk.write("system", subtype="api_error", error={"status": 400, "requestId": "req_a"}, retryAttempt=1)
    client = talk_for(team)
    client.messages.append({"role": "user", "content": "One"})
    Table().write(refuse(client, "a", 400, "invalid_request_error", added=("cache-diagnosis",)))
    take_in(Origin(team, make_user("ben"), "api"), Piece(talk.data, "lines", session_id=SESSION))
    assert UnansweredCall.objects.values_list("added", "attempt").get() == ("cache-diagnosis", 1)


def test_an_answer_without_figures_is_told_as_what_it_is(team: Team) -> None:
    client = talk_for(team)
    good = client.call("One", "msg_1", usage=make_usage(written=5_000))
    client.messages.append({"role": "user", "content": "Two"})
    message = {"id": "m", "type": "message", "content": [{"type": "text", "text": "Aye."}], "stop_reason": "end_turn"}
    whole = client.send(json.dumps(message).encode(), "a", response_headers={**JSON, "request-id": "req_a"})
    stream = [event for event in stream_answer("m2", {}) if event["type"] != "message_delta"]
    del stream[0]["message"]["usage"]
    streamed = client.send(write_events(stream), "b")
    empty = client.send(b"", "c", response_headers={"request-id": "req_c"})
    Table().write(good, whole, streamed, empty)
    rows = UnansweredCall.objects.order_by("at").values_list("name", "kind", "status", "reason")
    assert list(rows) == [
        ("req_a", "unmeasured", 200, "answer without usage"),
        ("req_b", "unmeasured", 200, "answer without usage"),
        ("req_c", "failed", 200, "empty answer"),
    ]
    listed = read_timeline().partition('id="unanswered-title"')[2]
    assert [listed.count(words) for words in ("not measured", "response without token usage", "empty response")] == [
        2,
        2,
        1,
    ]
    assert ">whole<" not in listed


def test_counting_is_recorded_as_its_own_kind_and_counts_as_no_call(team: Team) -> None:
    client = talk_for(team)
    first = client.call("One", "msg_1", usage=make_usage(written=5_000))
    counts = [
        client.send(b'{"input_tokens":1234}', f"c{number}", response_headers={**JSON, "request-id": f"req_{number}"})
        for number in range(3)
    ]
    Table().write(first, *counts)
    rows = UnansweredCall.objects.all()
    assert {(row.kind, row.counted_tokens, row.status) for row in rows} == {("count", 1234, 200)}
    assert (rows.count(), AgentSession.objects.get().call_count) == (3, 1)
    assert "also made 3 <code>count_tokens</code> requests" in read_timeline()


def test_a_page_without_such_calls_does_not_speak_of_them(team: Team) -> None:
    Table().write(talk_for(team).call("One", "msg_1"))
    assert "Failed and partial calls" not in read_timeline()


def test_what_the_api_says_and_what_was_added_is_kept_and_shown(team: Team) -> None:
    client = talk_for(team)
    first = client.call("One", "msg_1", usage=make_usage(written=50_000))
    events = stream_answer(
        "msg_2",
        make_usage(written=52_000),
        context_management={"applied_edits": [{"type": "clear_tool_uses_20250919", "cleared_input_tokens": 7_000}]},
    )
    reason = {"type": "tools_changed", "cache_missed_input_tokens": 50_000}
    events[0]["message"]["diagnostics"] = {"cache_miss_reason": reason}
    second = client.call("Two", "msg_2", events=events, added=("cache-diagnosis", "clear-tool-uses"))
    Table().write(first, second)
    call = ApiCall.objects.get(call_id="msg_2")
    assert (call.miss_reason, call.cleared_tokens) == ("tools_changed", 7_000)
    assert call.added == "cache-diagnosis, clear-tool-uses"
    session, ann = AgentSession.objects.get(), sign_in("ann")
    details = read(ann, f"/sessions/{session.pk}/?call={call.pk}")
    for words in (
        "<code>tools_changed</code>",
        "7.0k tokens of old",
        "cache-diagnosis, clear-tool-uses (team setting)",
    ):
        assert words in details
    loss = CacheBreak.objects.get()
    page = read(ann, f"/breaks/{loss.pk}/")
    assert "<code>tools_changed</code>" in page
    assert "cache-diagnosis, clear-tool-uses" in page

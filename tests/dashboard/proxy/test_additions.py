"""What the proxy adds for teams that want it: only then, only there, and never twice."""

import gzip
import http.client
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dashboard.policies.proxy_additions import ProxyAdditions
from dashboard.proxy.additions import Enlarger
from dashboard.proxy.callers import Caller
from dashboard.proxy.refusals import Refusal
from tests.dashboard.proxy.serving import CALLER, KnownCallers, Serving, serving
from tests.dashboard.proxy.talking import make_usage, stream_answer, write_events
from tests.fakes.raw_upstream import Connection, RawUpstream

BOTH = ProxyAdditions(asks_diagnosis=True, clears_results=True, clear_above_tokens=50_000, kept_results=5)
MESSAGES = "/proxy/v1/messages?beta=true"
# Spacing and escapes of a client's own, to see that they survive.
BODY = b'{"model": "m",  "tools":[{"name":"Read"}], "messages":[ {"role":"user","content":"\\u00e9 1.0"} ]}'
SESSION = {"X-Claude-Code-Session-Id": "s1"}
EDIT = {
    "type": "clear_tool_uses_20250919",
    "trigger": {"type": "input_tokens", "value": 50_000},
    "keep": {"type": "tool_uses", "value": 5},
}


class AddingCallers(KnownCallers):
    async def find_by_key(self, text: str) -> Caller | Refusal:
        assert text
        return replace(CALLER, additions=BOTH)


@pytest.fixture
def adding(upstream: RawUpstream, tmp_path: Path) -> Iterator[Serving]:
    with serving(upstream.url, tmp_path) as started:
        started.forwarder._callers = AddingCallers()
        yield started


def answer_in_turn(connection: Connection) -> None:
    answer_in_turn.count += 1  # type: ignore[attr-defined]
    events = stream_answer(f"msg_{answer_in_turn.count}", make_usage(read=5))  # type: ignore[attr-defined]
    connection.stream([write_events([event]) for event in events])


@pytest.fixture
def api(upstream: RawUpstream) -> RawUpstream:
    answer_in_turn.count = 0  # type: ignore[attr-defined]
    upstream.script = answer_in_turn
    return upstream


def body_of(upstream: RawUpstream, place: int = -1) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(upstream.requests[place].body)
    return told


def test_both_are_added_and_named(adding: Serving, api: RawUpstream) -> None:
    answered = adding.ask(MESSAGES, BODY, headers={**SESSION, "anthropic-beta": "effort-2025-11-24"})
    assert answered.status == 200
    assert answered.header("x-plimsoll-added") == "cache-diagnosis, clear-tool-uses"
    seen = api.requests[0]
    told = body_of(api)
    assert told.pop("diagnostics") == {"previous_message_id": None}
    assert told.pop("context_management") == {"edits": [EDIT]}
    assert told == json.loads(BODY)
    assert b'"messages":[ {"role":"user","content":"\\u00e9 1.0"} ]' in seen.body
    assert seen.header("content-length") == str(len(seen.body))
    betas = "effort-2025-11-24,cache-diagnosis-2026-04-07,context-management-2025-06-27"
    assert seen.header("anthropic-beta") == betas
    exchange = adding.wait_for_exchange()
    assert (exchange.request_body, exchange.added) == (BODY, ("cache-diagnosis", "clear-tool-uses"))


def test_diagnosis_is_asked_against_the_message_before_in_the_same_thread(adding: Serving, api: RawUpstream) -> None:
    for number, headers in enumerate((SESSION, SESSION, {**SESSION, "X-Claude-Code-Agent-Id": "a1"}, SESSION), 1):
        adding.ask(MESSAGES, BODY, headers=headers)
        adding.wait_for_exchange(number)
    asked = [body_of(api, place)["diagnostics"]["previous_message_id"] for place in range(4)]
    assert asked == [None, "msg_1", None, "msg_2"]


def test_a_client_that_names_no_session_is_not_asked_for(adding: Serving, api: RawUpstream) -> None:
    adding.ask(MESSAGES, BODY)
    assert "diagnostics" not in body_of(api)
    adding.ask(MESSAGES, json.dumps({**json.loads(BODY), "metadata": {"user_id": '{"session_id":"s9"}'}}).encode())
    assert "diagnostics" in body_of(api)


OWN = [{"type": "clear_tool_uses_20250919"}]
THINKING = {"type": "clear_thinking_20251015", "keep": "all"}


@pytest.mark.parametrize(
    ("own", "edits"),
    [
        ({"context_management": {"edits": OWN}}, OWN),
        ({"context_management": {"edits": [THINKING]}}, [THINKING, EDIT]),
        ({"context_management": None}, [EDIT]),
    ],
)
def test_edits_of_the_client_stay_and_its_own_clearing_is_enough(
    adding: Serving, api: RawUpstream, own: dict[str, Any], edits: list[Any]
) -> None:
    adding.ask(MESSAGES, json.dumps({**json.loads(BODY), **own}).encode())
    assert body_of(api)["context_management"]["edits"] == edits


UNTOUCHED = {
    "what the client asks itself": {
        **json.loads(BODY),
        "diagnostics": {"previous_message_id": "x"},
        "context_management": {"edits": OWN},
    },
    "a request for a summary": {
        **json.loads(BODY),
        "messages": [{"role": "user", "content": "Write <analysis> and <summary>."}],
    },
    "a probe without tools": {"model": "m", "max_tokens": 1, "messages": [{"role": "user", "content": "Hi"}]},
    "not an object": [1],
}


@pytest.mark.parametrize("name", UNTOUCHED)
def test_these_bodies_pass_byte_for_byte(adding: Serving, api: RawUpstream, name: str) -> None:
    body = json.dumps(UNTOUCHED[name], indent=1).encode()
    answered = adding.ask(MESSAGES, body, headers=SESSION)
    assert api.requests[0].body == body
    assert answered.header("x-plimsoll-added") is None
    assert adding.wait_for_exchange().added == ()


@pytest.mark.parametrize(
    ("path", "body", "headers"),
    [
        ("/proxy/v1/messages/count_tokens", BODY, {}),
        ("/proxy/v1/messages/batches", BODY, {}),
        (MESSAGES, gzip.compress(BODY), {"content-encoding": "gzip"}),
        (MESSAGES, b"{broken", {}),
    ],
)
def test_other_paths_and_what_cannot_be_read_pass_byte_for_byte(
    adding: Serving, upstream: RawUpstream, path: str, body: bytes, headers: dict[str, str]
) -> None:
    adding.ask(path, body, headers={**SESSION, **headers})
    assert upstream.requests[0].body == body


def test_without_the_wish_everything_passes_byte_for_byte(proxy: Serving, api: RawUpstream) -> None:
    answered = proxy.ask(MESSAGES, BODY, headers=SESSION)
    assert api.requests[0].body == BODY
    assert answered.header("x-plimsoll-added") is None


def test_too_large_a_body_is_refused_there_too(adding: Serving, upstream: RawUpstream) -> None:
    limit = adding.forwarder._limits.body_bytes
    chunks = iter([b'{"tools":[],"x":"', b"x" * limit, b'"}'])
    connection = http.client.HTTPConnection("127.0.0.1", adding.port, timeout=20)
    connection.request("POST", "/proxy/v1/messages", chunks, {"X-Plimsoll-Key": "k"}, encode_chunked=True)
    assert connection.getresponse().status == 413
    connection.close()
    assert upstream.requests == []


def test_memory_of_threads_is_bounded_and_reads_encoded_answers() -> None:
    enlarger = Enlarger(most_remembered=10)
    answer = gzip.compress(write_events(stream_answer("msg_z", make_usage())))
    for number in range(30):
        enlarger.remember((1, f"s{number}", ""), answer, "gzip")
    assert len(enlarger._last) == 10
    assert set(enlarger._last.values()) == {"msg_z"}
    enlarger.remember((1, "s", ""), b"\x00", "gzip")
    assert (1, "s", "") not in enlarger._last

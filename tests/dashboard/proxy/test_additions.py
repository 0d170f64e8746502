"""What the proxy adds for teams that want it: only then, only there, and never twice."""

import gzip
import http.client
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from dashboard.policies.proxy_additions import ProxyAdditions
from dashboard.proxy.additions import Enlarger
from dashboard.proxy.callers import Caller
from dashboard.proxy.refusals import Refusal
from tests.dashboard.proxy.serving import CALLER, KnownCallers, Serving, serving
from tests.dashboard.proxy.talking import SUM_UP, Client, make_usage, pack, stream_answer, write_events, zip_answer
from tests.fakes.raw_upstream import Connection, RawUpstream

BOTH = ProxyAdditions(
    asks_diagnosis=True,
    clears_results=True,
    clear_above_tokens=50_000,
    kept_results=5,
    least_cleared_tokens=20_000,
)
MESSAGES = "/proxy/v1/messages?beta=true"
# Spacing and escapes of a client's own, to see that they survive.
BODY = b'{"model": "m",  "tools":[{"name":"Read"}], "messages":[ {"role":"user","content":"\\u00e9 1.0"} ]}'
SESSION = {"X-Claude-Code-Session-Id": "s1"}
EDIT = {
    "type": "clear_tool_uses_20250919",
    "trigger": {"type": "input_tokens", "value": 50_000},
    "keep": {"type": "tool_uses", "value": 5},
    "clear_at_least": {"type": "input_tokens", "value": 20_000},
    "exclude_tools": [],
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


DEEP = b'{"a":' * 1500 + b"1" + b"}" * 1500


@pytest.mark.parametrize(
    "body",
    [
        BODY.replace(b'{"name":"Read"}', b'{"name":"Read","input_schema":' + DEEP + b"}"),
        BODY.replace(b'"\\u00e9 1.0"', DEEP),
        b"[" * 100_000,
        b'{"messages":',
        b"\xff",
        b"null",
    ],
)
def test_what_cannot_be_read_passes_as_it_is(
    adding: Serving, api: RawUpstream, caplog: pytest.LogCaptureFixture, body: bytes
) -> None:
    answered = adding.ask(MESSAGES, body, headers=SESSION)
    assert (answered.status, answered.header("x-plimsoll-added")) in ((200, None), (200, "clear-tool-uses"))
    assert api.requests[0].body == body
    assert list_own_lines(caplog) == []


def test_a_fault_in_adding_harms_no_call(
    adding: Serving, api: RawUpstream, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object) -> None:
        raise KeyError("odd")

    monkeypatch.setattr("dashboard.proxy.additions.is_probe", fail)
    assert adding.ask(MESSAGES, BODY, headers=SESSION).status == 200
    assert api.requests[0].body == BODY
    assert list_own_lines(caplog) == ["a request was left as it is"]


def list_own_lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.message for record in caplog.records if record.name == "dashboard.proxy.additions"]


def test_diagnosis_is_asked_against_the_message_before_in_the_same_thread(adding: Serving, api: RawUpstream) -> None:
    agent = {**SESSION, "X-Claude-Code-Agent-Id": "a1"}
    for number, (headers, answers) in enumerate(((SESSION, 0), (SESSION, 1), (agent, 0), (SESSION, 2)), 1):
        adding.ask(MESSAGES, go_on(answers), headers=headers)
        adding.wait_for_exchange(number)
    assert list_asked(api) == [None, "msg_1", None, "msg_2"]


def go_on(answers: int, *, said: Any = "Well then.", **changes: Any) -> bytes:
    """A request behind so many answers, the last of them saying this."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Hello"}]
    for number in range(answers):
        words = said if number == answers - 1 else "Well then."
        messages += [{"role": "assistant", "content": words}, {"role": "user", "content": "Go on"}]
    return json.dumps({**json.loads(BODY), "messages": messages, **changes}).encode()


def list_asked(upstream: RawUpstream) -> list[str | None]:
    bodies = [json.loads(seen.body) for seen in upstream.requests]
    return [body["diagnostics"]["previous_message_id"] for body in bodies if "diagnostics" in body]


def test_no_message_is_named_that_the_request_does_not_go_on_from(adding: Serving, api: RawUpstream) -> None:
    """It was answered by another web process, or the conversation was taken back."""
    thinking = [{"type": "thinking", "thinking": "Hm"}, {"type": "text", "text": "Well then. "}]
    bodies = [go_on(0), go_on(1, said="What another process passed on."), go_on(0), go_on(1, said=thinking)]
    for number, body in enumerate(bodies, 1):
        adding.ask(MESSAGES, body, headers=SESSION)
        adding.wait_for_exchange(number)
    assert list_asked(api) == [None, None, None, "msg_3"]


def test_an_answer_that_was_cut_is_not_the_one_before(adding: Serving, upstream: RawUpstream, api: RawUpstream) -> None:
    adding.ask(MESSAGES, go_on(0), headers=SESSION)
    adding.wait_for_exchange()
    events = write_events(stream_answer("msg_cut", make_usage())[:5])
    upstream.script = lambda connection: connection.stream([events])
    adding.ask(MESSAGES, go_on(1), headers=SESSION)
    adding.wait_for_exchange(2)
    adding.ask(MESSAGES, go_on(1), headers=SESSION)
    assert list_asked(api) == [None, "msg_1", "msg_1"]


def test_calls_beside_the_conversation_are_not_asked_for_and_an_agent_without_tools_is(
    adding: Serving, api: RawUpstream
) -> None:
    search = [{"type": "web_search_20250305", "name": "web_search"}]
    for number, tools in enumerate(([], [{"name": "Read"}], [], search, [{"name": "Read"}]), 1):
        adding.ask(MESSAGES, go_on(0, tools=tools), headers=SESSION)
        adding.wait_for_exchange(number)
    assert ["diagnostics" in body_of(api, place) for place in range(5)] == [True, True, False, False, True]
    assert ["context_management" in body_of(api, place) for place in range(5)] == [False, True, False, False, True]


def test_results_that_are_small_by_nature_are_left(adding: Serving, api: RawUpstream) -> None:
    names = ("Write", "Read", "mcp__maps__find", "Bash")
    adding.ask(MESSAGES, go_on(0, tools=[{"name": name} for name in names]), headers=SESSION)
    own = [{"name": "find_ship"}, {"type": "web_search_20250305", "name": "web_search"}]
    adding.ask(MESSAGES, go_on(0, tools=own), headers=SESSION)
    excluded = [body_of(api, place)["context_management"]["edits"][0]["exclude_tools"] for place in range(2)]
    assert excluded == [["Write", "mcp__maps__find"], []]


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
        "messages": [{"role": "user", "content": SUM_UP}, {"role": "system", "content": []}],
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


def test_a_tool_result_that_holds_the_tags_of_a_summary_switches_nothing_off(adding: Serving, api: RawUpstream) -> None:
    result = {
        "type": "tool_result",
        "tool_use_id": "t",
        "content": f"{SUM_UP} <analysis></analysis><summary></summary>",
    }
    adding.ask(MESSAGES, json.dumps({**json.loads(BODY), "messages": [{"role": "user", "content": [result]}]}).encode())
    assert body_of(api)["context_management"]["edits"] == [EDIT]


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
    plain = Client().call("Hello", "msg_z")
    packed = msgspec.structs.replace(plain, **pack(plain, "gzip", zip_answer(plain.response_body)))
    for number in range(30):
        enlarger.remember((1, 7, f"s{number}", ""), packed)
    assert len(enlarger._last) == 10
    assert {last.message_id for last in enlarger._last.values()} == {"msg_z"}
    enlarger.remember((1, 7, "s", ""), msgspec.structs.replace(packed, response_body=b"\x00"))
    assert (1, 7, "s", "") not in enlarger._last

"""Calls that passed, read: figures, purpose, session; answers that were cut, encoded or nonsense."""

import contextlib
import gzip
import json
import random
from dataclasses import replace as replace_value
from typing import Any

import brotli
import msgspec
import pytest
import zstandard

from compaction.compactors.summary.prompt import build_prompt
from compaction.ports import Variant
from compaction.timeline.observations import LineKind, Observation
from dashboard.ingest.observed import Rules
from dashboard.proxy.reports import Report, Reporter
from dashboard.proxy.responses import NotReadable
from dashboard.proxy.wire import Ending, Exchange
from tests.dashboard.proxy.talking import MCP, READ, SESSION, SUM_UP, Client, make_usage, stream_answer, write_events

RULES = Rules(keeps_content=False, digest_key=b"k" * 32)
KEEPING = Rules(keeps_content=True, digest_key=b"k" * 32)


def read(exchange: Exchange, rules: Rules = RULES, reporter: Reporter | None = None) -> Report:
    report = (reporter or Reporter()).read(exchange, rules)
    assert report is not None
    return report


def pick(report: Report, kind: LineKind) -> Observation:
    return next(line.fact for line in report.lines if line.fact.kind is kind)


def find_answer(report: Report) -> Any:
    return next(line.fact.answer for line in report.lines if line.fact.answer and line.fact.answer.source == "proxy")


def change(exchange: Exchange, **values: Any) -> Exchange:
    return msgspec.structs.replace(exchange, **values)


def test_figures_of_a_stream_come_from_its_start_and_its_end() -> None:
    usage = make_usage(read=50_000, written=1_000, long=2_000, plain=7)
    events = stream_answer("msg_1", usage, output=321)
    events[0]["message"]["diagnostics"] = {"cache_miss_reason": {"type": "tools_changed"}}
    events[-2]["usage"]["iterations"] = [{"type": "message", "input_tokens": 7, "output_tokens": 321}]
    report = read(Client().call("Hello", "msg_1", events=events))
    answer = find_answer(report)
    assert report.session_id == SESSION
    assert (answer.call_id, answer.request_id, answer.stop_reason) == ("msg_1", "req_msg_1", "end_turn")
    assert (answer.usage.cache_creation_5m_tokens, answer.usage.cache_creation_1h_tokens) == (1_000, 2_000)
    assert (answer.usage.input_tokens, answer.usage.cache_read_tokens, answer.usage.output_tokens) == (7, 50_000, 321)
    assert len(answer.usage.iterations) == 1
    assert (answer.miss_reason, answer.duration_seconds, answer.ttft_seconds) == ("tools_changed", 2.0, 0.4)
    assert (answer.source, answer.is_output_estimated, answer.requested_ttl) == ("proxy", False, "5m")


def test_figures_of_a_plain_json_answer() -> None:
    message = {
        "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-opus-5-5", "stop_reason": "tool_use",
        "content": [{"type": "tool_use", "id": "toolu_1", "name": "Read", "input": {"path": "x"}}],
        "usage": make_usage(written=900, output=12),
        "context_management": {
            "applied_edits": [
                {"type": "clear_tool_uses_20250919", "cleared_input_tokens": 800, "cleared_tool_uses": 3}
            ]
        },
    }  # fmt: skip
    exchange = Client().call("Hello", "msg_1")
    report = read(
        change(
            exchange,
            response_body=json.dumps(message).encode(),
            response_headers={"content-type": "application/json; charset=utf-8", "request-id": "req_1"},
        )
    )
    answer = find_answer(report)
    assert (answer.usage.output_tokens, answer.stop_reason) == (12, "tool_use")
    cleared = pick(report, LineKind.MICRO).compacted
    assert cleared is not None
    assert (cleared.saved_tokens, cleared.cleared_count, cleared.trigger) == (800, 3, "api")


def test_edits_are_told_when_they_grow_not_with_every_call() -> None:
    reporter, client = Reporter(), Client()
    told = []
    for number, tokens in enumerate((0, 800, 800, 1_500), 1):
        edit = {"type": "clear_tool_uses_20250919", "cleared_input_tokens": tokens, "cleared_tool_uses": 2}
        events = stream_answer(
            f"msg_{number}", make_usage(written=9), context_management={"applied_edits": [edit] if tokens else []}
        )
        report = read(client.call("More", f"msg_{number}", events=events), RULES, reporter)
        told.append([line.fact.compacted.saved_tokens for line in report.lines if line.fact.compacted])
    assert told == [[], [800], [], [700]]


@pytest.mark.parametrize(
    ("encoding", "encode"),
    [
        ("gzip", gzip.compress),
        ("br", brotli.compress),
        ("zstd", zstandard.compress),
        ("identity", bytes),
    ],
)
def test_encoded_answers_are_read(encoding: str, encode: Any) -> None:
    exchange = Client().call("Hello", "msg_1", usage=make_usage(read=123))
    headers = {**exchange.response_headers, "content-encoding": encoding}
    told = change(exchange, response_body=encode(exchange.response_body), response_headers=headers)
    assert find_answer(read(told)).usage.cache_read_tokens == 123


def test_cut_answer_is_a_partial_call_with_estimated_output() -> None:
    events = stream_answer("msg_1", make_usage(read=9_000), words="x" * 4_000)
    whole = write_events(events)
    exchange = Client().call("Hello", "msg_1")
    for cut_at in (whole.index(b"content_block_stop"), len(whole) - 200):
        cut = change(exchange, response_body=whole[:cut_at], ending=Ending.CLIENT_LEFT)
        answer = find_answer(read(cut))
        assert (answer.usage.cache_read_tokens, answer.usage.output_tokens) == (9_000, 1_177)
        assert answer.is_output_estimated
        assert answer.stop_reason == "client left"


def test_gzip_answer_that_was_cut_is_read_as_far_as_it_goes() -> None:
    words = "".join(chr(97 + random.Random(place).randrange(26)) for place in range(4_000))
    whole = gzip.compress(write_events(stream_answer("msg_1", make_usage(read=9_000), words=words)))
    exchange = Client().call("Hello", "msg_1")
    headers = {**exchange.response_headers, "content-encoding": "gzip"}
    cut = change(exchange, response_body=whole[:-1_000], response_headers=headers, ending=Ending.UPSTREAM_FAILED)
    answer = find_answer(read(cut))
    assert (answer.usage.cache_read_tokens, answer.stop_reason) == (9_000, "upstream failed")


def test_error_in_the_middle_of_a_stream_is_told() -> None:
    events = stream_answer("msg_1", make_usage(read=9_000))[:4]
    events.append({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}})
    answer = find_answer(read(Client().call("Hello", "msg_1", events=events)))
    assert (answer.stop_reason, answer.is_output_estimated) == ("error: overloaded_error", True)


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"status": 529, "response_body": b'{"type":"error","error":{"type":"overloaded_error"}}'}, "overloaded_error"),
        ({"status": 502, "response_body": b"<html>Bad gateway</html>"}, "status 502"),
        ({"status": 0, "response_body": b"", "ending": Ending.UPSTREAM_FAILED}, "upstream failed"),
        ({"status": 0, "response_body": b"", "ending": Ending.CLIENT_LEFT}, "client left"),
    ],
)
def test_failed_call_is_a_failure_of_its_session(changes: dict[str, Any], name: str) -> None:
    exchange = Client().call("Hello", "msg_1", response_headers={"content-type": "application/json"}, **changes)
    report = read(exchange)
    assert [line.fact.kind for line in report.lines] == [LineKind.FAILURE]
    assert report.lines[0].fact.name == name


@pytest.mark.parametrize(
    "changes",
    [
        {"request_body": b"{"},
        {"request_body": b"[]"},
        {"request_body": b'{"messages": 5}'},
        {"request_body": b"[" * 100_000},
        {"response_body": b"\xff\xfe", "response_headers": {"content-type": "application/json"}},
        {"response_body": b"x", "response_headers": {"content-encoding": "gzip"}},
        {"response_body": b"x", "response_headers": {"content-encoding": "rot13"}},
    ],
)
def test_nonsense_is_refused_with_a_reason(changes: dict[str, Any]) -> None:
    with pytest.raises(NotReadable):
        Reporter().read(Client().call("Hello", "msg_1", **changes), RULES)


def test_random_bytes_raise_nothing_but_not_readable() -> None:
    dice = random.Random(7)
    whole = Client().call("Hello", "msg_1")
    for _ in range(300):
        data = bytearray(whole.response_body)
        for _ in range(dice.randint(1, 30)):
            data[dice.randrange(len(data))] = dice.randrange(256)
        with contextlib.suppress(NotReadable):
            Reporter().read(change(whole, response_body=bytes(data)), RULES)


# --- purpose and session ---


def purpose(exchange: Exchange) -> str | None:
    request = pick(read(exchange), LineKind.REQUEST).request
    assert request is not None
    return request.query_source


def test_purposes_are_told_apart() -> None:
    assert purpose(Client().call("Hello", "msg_1")) is None
    agent = Client(headers={"x-claude-code-session-id": SESSION, "x-claude-code-agent-id": "a0123456789abcdef"})
    report = read(agent.call("Look", "msg_2"))
    assert pick(report, LineKind.ANSWER).agent_id == "a0123456789abcdef"
    assert report.session_id == SESSION
    assert purpose(Client(tools=[], extra={"max_tokens": 1}).call("Hi", "msg_3")) == "probe"
    assert purpose(Client(extra={"compaction": {"type": "summarize"}}).call("x", "msg_4")) == "compact"


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (SUM_UP, "compact"),
        (build_prompt(Variant.FULL), "compact"),
        (
            "Your task is to create a detailed summary of the conversation so far: <analysis>, <summary>.",
            "compact",
        ),
        (
            "Your task is to create a detailed summary of the report below: <analysis>, <summary>.",
            None,
        ),
        ("Read the report. Think in <analysis> tags, then answer in <summary> tags.", None),
        (f"What does this prompt do? {SUM_UP}", None),
    ],
)
def test_a_summary_of_the_conversation_is_known_by_how_it_is_asked_for(words: str, expected: str | None) -> None:
    talk = Client()
    talk.call("Hello", "msg_1")
    asked = talk.call(words, "msg_2")
    assert purpose(asked) == expected
    unmarked = json.loads(asked.request_body)
    del unmarked["messages"][-1]["content"][0]["cache_control"]
    assert purpose(change(asked, request_body=json.dumps(unmarked).encode())) == expected


def test_older_sub_agents_are_threads_by_what_they_begin_with() -> None:
    billing = "x-anthropic-billing-header: cc_version=2.1.0; cc_is_subagent=true;"
    threads = []
    for words in ("Find the charts", "Find the charts", "Count the ships"):
        client = Client()
        client.messages.append({"role": "user", "content": words})
        body = client.body()
        body["system"].insert(0, {"type": "text", "text": billing})
        exchange = client.send(write_events(stream_answer("msg_1", make_usage())), "msg_1")
        threads.append(pick(read(change(exchange, request_body=json.dumps(body).encode())), LineKind.ANSWER).agent_id)
    assert threads[0] == threads[1] != threads[2]
    assert None not in threads


@pytest.mark.parametrize(
    "user_id",
    [
        json.dumps({"device_id": "d", "account_uuid": "", "session_id": SESSION}),
        f"user_abc_account__session_{SESSION}",
    ],
)
def test_session_is_read_from_metadata_where_no_header_says_it(user_id: str) -> None:
    client = Client(headers={}, extra={"metadata": {"user_id": user_id}})
    assert read(client.call("Hello", "msg_1")).session_id == SESSION


def test_client_version_is_read_from_its_name() -> None:
    client = Client(headers={"x-claude-code-session-id": SESSION, "user-agent": "claude-cli/2.1.325 (external, cli)"})
    assert pick(read(client.call("Hello", "msg_1")), LineKind.ANSWER).version == "2.1.325"


# --- what is kept ---


def test_second_request_spells_out_only_what_is_new() -> None:
    reporter, client = Reporter(), Client()
    first = pick(read(client.call("One", "msg_1"), RULES, reporter), LineKind.REQUEST).request
    second = pick(read(client.call("Two", "msg_2"), RULES, reporter), LineKind.REQUEST).request
    assert first is not None
    assert second is not None
    assert (first.base, first.keep, len(first.tail)) == (None, 0, 1)
    assert (second.base, second.keep, len(second.tail)) == (first.id, 1, 2)


def test_shape_is_sent_once_and_again_when_it_changes() -> None:
    reporter, client = Reporter(), Client()
    counts: list[int] = []
    for tools in ([READ], [READ], [READ, MCP], [READ]):
        client.tools = tools
        counts.append(len(read(client.call("Go on", f"msg_{len(counts)}"), RULES, reporter).shapes))
    assert counts == [1, 0, 1, 0]


def test_no_word_of_a_prompt_is_kept_where_no_content_is_stored() -> None:
    client = Client(headers={}, system="harbour-system")
    report = read(client.call("harbour-prompt", "msg_1", reply="harbour-answer " * 20))
    assert "harbour" not in repr(report)


def test_secrets_are_taken_out_where_content_is_stored() -> None:
    secret = "sk-ant-api03-" + "A1b2C3d4" * 12
    client = Client(headers={}, system=f"You sail. {secret}")
    report = read(client.call(f"Use {secret}", "msg_1", reply=f"I use {secret}"), KEEPING)
    assert secret not in repr(report)
    assert "You sail." in repr(report.shapes[0].content)
    assert report.shapes[0].is_redacted
    assert any(b"I use" in (line.content or b"") for line in report.lines)


def test_digest_keys_keep_teams_apart() -> None:
    exchange = Client().call("Hello", "msg_1")
    one = pick(read(exchange), LineKind.REQUEST).request
    other = pick(read(exchange, replace_value(RULES, digest_key=b"o" * 32)), LineKind.REQUEST).request
    assert one is not None
    assert other is not None
    assert one.tail != other.tail
    assert one.shape != other.shape

"""What each kind of event, span and metric becomes."""

import json
from datetime import timedelta

import pytest

from compaction.timeline.observations import LineKind, Observation
from dashboard.ingest.observed import Prepared, Rules
from dashboard.ingest.otlp.preparing import Form, Signal, prepare_export
from tests.dashboard.ingest.conversation import MODEL, START
from tests.dashboard.ingest.otlp.exports import (
    SESSION,
    Json,
    call,
    event,
    logs,
    metrics,
    point,
    span,
    traces,
)

RULES = Rules(keeps_content=True, digest_key=b"k" * 32)
SIGNALS = {"resourceLogs": Signal.LOGS, "resourceMetrics": Signal.METRICS, "resourceSpans": Signal.TRACES}


def read(export: Json, rules: Rules = RULES) -> Prepared:
    signal = next(signal for name, signal in SIGNALS.items() if name in export)
    return prepare_export(json.dumps(export).encode(), signal, Form.JSON, rules).prepared


def read_facts(export: Json, rules: Rules = RULES) -> list[Observation]:
    (session,) = read(export, rules).sessions
    return [line.fact for line in session.lines]


def test_api_request_is_a_report_that_stands_where_its_call_ended() -> None:
    told: Json = {"cache_creation_1h_tokens": 600, "cache_creation_5m_tokens": 300}
    (fact,) = read_facts(logs(call("req_1", 10, read=50_000, written=900, duration_ms=2500, **told)))
    answer = fact.response
    assert answer is not None
    assert (fact.at, answer.duration_seconds, answer.ttft_seconds) == (START + timedelta(seconds=12.5), 2.5, 0.4)
    assert (answer.request_id, answer.source, answer.model) == ("req_1", "otlp", MODEL)
    usage = answer.usage
    assert (usage.input_tokens, usage.cache_read_tokens, usage.cache_creation_tokens) == (3, 50_000, 900)
    assert (usage.cache_creation_5m_tokens, usage.cache_creation_1h_tokens) == (300, 600)
    assert (fact.cost_usd, fact.version, fact.agent_id) == ("0.012300", "2.1.325", None)


def test_call_of_a_sub_agent_stands_in_its_thread() -> None:
    (fact,) = read_facts(logs(call("req_1", 0, agent_id="a1b2c3", query_source="agent:builtin:general-purpose")))
    assert (fact.agent_id, fact.is_sidechain) == ("a1b2c3", True)


def test_compaction_writes_its_numbers_as_text() -> None:
    told: Json = {
        "trigger": "auto",
        "success": "true",
        "duration_ms": "9000",
        "pre_tokens": "167000",
        "post_tokens": "5100",
    }
    (fact,) = read_facts(logs(event("compaction", 5, **told)))
    assert (fact.kind, fact.name) == (LineKind.COMPACTION_REPORT, None)
    assert fact.compaction is not None
    assert (fact.compaction.before_tokens, fact.compaction.after_tokens) == (167_000, 5100)
    assert (fact.compaction.trigger, fact.compaction.duration_seconds) == ("auto", 9.0)


def test_failed_compaction_says_why_without_secrets() -> None:
    key = "sk-ant-api03-" + "a1B2" * 24
    (fact,) = read_facts(logs(event("compaction", 5, trigger="manual", success="false", error=f"API Error: {key}")))
    assert fact.name is not None
    assert fact.name.startswith("API Error: ")
    assert key not in fact.name


def test_prompt_begins_a_turn_and_its_words_go_where_content_is_kept() -> None:
    export = logs(event("user_prompt", 1, prompt="Draw the  harbour.", prompt_length="18"))
    (fact,) = read_facts(export)
    assert (fact.kind, fact.text) == (LineKind.PROMPT_REPORT, "Draw the harbour.")
    (bare,) = read_facts(export, Rules(keeps_content=False, digest_key=b"k" * 32))
    assert bare.text is None
    (hidden,) = read_facts(logs(event("user_prompt", 1, prompt="<REDACTED>")))
    assert hidden.text is None


def test_tool_results_and_errors_are_counted_without_their_words() -> None:
    facts = read_facts(
        logs(
            event("tool_result", 1, tool_name="Bash", tool_use_id="toolu_1", tool_result_size_bytes="812"),
            event("api_error", 2, error="529 overloaded", status_code="529", attempt=3),
            event("api_retries_exhausted", 3, error="529 overloaded", total_attempts=10),
        )
    )
    assert [(fact.kind, fact.name) for fact in facts] == [
        (LineKind.RESULT, "Bash"),
        (LineKind.FAILURE, "529 overloaded"),
        (LineKind.FAILURE, "529 overloaded"),
    ]


def test_raw_request_becomes_a_shape_and_a_request_that_its_answer_refers_to() -> None:
    body = {
        "model": MODEL,
        "system": [
            {"type": "text", "text": "x-anthropic-billing-header: cc_version=2"},
            {"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}},
        ],
        "tools": [{"name": "Bash", "description": "runs", "input_schema": {}}],
        "messages": [{"role": "user", "content": "hello"}],
        "thinking": {"type": "adaptive"},
    }
    reply = {"id": "msg_1", "model": MODEL, "stop_reason": "end_turn", "usage": {"input_tokens": 3, "output_tokens": 9}}
    prepared = read(
        logs(
            event("api_request_body", 1, body=json.dumps(body), request_body_id="rb-1", query_source="sdk"),
            event("api_response_body", 2, body=json.dumps(reply), request_body_id="rb-1", request_id="req_1"),
        )
    )
    (session,) = prepared.sessions
    by_kind = {line.fact.kind: line.fact for line in session.lines}
    request, answer = by_kind[LineKind.REQUEST].request, by_kind[LineKind.RESPONSE].response
    assert request is not None
    assert answer is not None
    assert (answer.request_ref, answer.request_id, answer.stop_reason) == (request.id, "req_1", "end_turn")
    assert (len(request.tail), request.markers) == (1, ((("system", 0), "5m"),))
    (shape,) = session.shapes
    assert request.shape == shape.digest
    assert b"Be brief." in (shape.content or b"")
    assert b"hello" not in (shape.content or b"")


def test_shape_of_a_team_without_content_has_prints_only() -> None:
    body = {"system": "Be brief.", "messages": [{"role": "user", "content": "hello"}]}
    (session,) = read(
        logs(event("api_request_body", 1, body=json.dumps(body))), Rules(keeps_content=False, digest_key=b"k" * 32)
    ).sessions
    assert session.shapes[0].content is None


def test_span_and_log_event_of_one_request_name_the_same_call() -> None:
    told: Json = {
        "input_tokens": 3,
        "output_tokens": 50,
        "cache_read_tokens": 7,
        "request_id": "req_1",
        "stop_reason": "end_turn",
    }
    (fact,) = read_facts(
        traces(span("claude_code.llm_request", 1, 2.5, **told, session__id=SESSION, gen_ai__response__id="req_1"))
    )
    assert fact.response is not None
    assert (fact.response.request_id, fact.response.stop_reason) == ("req_1", "end_turn")
    assert fact.at == START + timedelta(seconds=3.5)


@pytest.mark.parametrize(
    ("told", "plain", "read_tokens", "written"),
    [
        ({"gen_ai.usage.input_tokens": 1000, "gen_ai.usage.cache_read.input_tokens": 700}, 300, 700, 0),
        ({"gen_ai.usage.input_tokens": 1000, "gen_ai.usage.cache_creation.input_tokens": 990}, 10, 0, 990),
        ({"gen_ai.usage.input_tokens": 1000, "gen_ai.usage.cache_write.input_tokens": 990}, 10, 0, 990),
        ({"gen_ai.usage.prompt_tokens": 40}, 40, 0, 0),
        ({"gen_ai.usage.input_tokens": 5, "gen_ai.usage.cache_read.input_tokens": 700}, 5, 700, 0),
    ],
)
def test_input_of_the_conventions_includes_the_cache(told: Json, plain: int, read_tokens: int, written: int) -> None:
    attributes = told | {
        "gen_ai.usage.output_tokens": 9,
        "gen_ai.operation.name": "chat",
        "gen_ai.response.id": "msg_1",
        "gen_ai.conversation.id": SESSION,
        "anthropic.request.id": "req_1",
    }
    (fact,) = read_facts(traces(span("chat claude", 0, 1, **attributes)))
    assert fact.response is not None
    usage = fact.response.usage
    assert (usage.input_tokens, usage.cache_read_tokens, usage.cache_creation_tokens) == (plain, read_tokens, written)
    assert (fact.response.call_id, fact.response.request_id) == ("msg_1", "req_1")


def test_spans_that_add_up_others_are_not_calls() -> None:
    told: Json = {
        "gen_ai.usage.input_tokens": 10,
        "gen_ai.usage.output_tokens": 9,
        "gen_ai.operation.name": "invoke_agent",
    }
    prepared = read(traces(span("invoke_agent x", 0, 1, **told)))
    assert prepared.sessions == ()
    assert prepared.drops == {"known, but nothing is made of it": 1}


def test_span_without_a_conversation_belongs_to_its_trace() -> None:
    told: Json = {"gen_ai.usage.input_tokens": 10, "gen_ai.usage.output_tokens": 9}
    (session,) = read(traces(span("chat", 0, 1, 5, **told))).sessions
    assert session.external_id == "trace-" + "0" * 31 + "5"


def test_metrics_are_counters_beside_the_calls() -> None:
    (cost,) = read_facts(metrics("claude_code.cost.usage", point(10, 0.125)))
    (tokens,) = read_facts(metrics("claude_code.token.usage", point(10, 900, type="cacheRead")))
    assert (cost.kind, cost.cost_usd, cost.response) == (LineKind.COUNTER, "0.12500000", None)
    assert (tokens.tokens, tokens.cost_usd) == (900, None)


def test_what_nothing_is_made_of_is_counted_by_reason() -> None:
    assert read(logs(event("tool_decision"), event("plugin_loaded", 1))).drops == {
        "known, but nothing is made of it": 2
    }
    assert read(logs(event("brand_new_event"))).drops == {"event not known": 1}
    assert read(logs(call("req_1", 0, session=None))).drops == {"names no session": 1}
    assert read(metrics("claude_code.cost.usage", point(1, 1), temporality=2)).drops == {
        "sum without delta temporality": 1
    }
    assert read(metrics("claude_code.active_time.total", point(1, 1))).drops == {"known, but nothing is made of it": 1}

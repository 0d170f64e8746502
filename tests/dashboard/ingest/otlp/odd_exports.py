"""Exports that decode and yet may be hard to keep: numbers, texts, ids and times that no sane client sends."""

import base64
from typing import Any

from hypothesis import strategies as st

from dashboard.ingest.otlp.preparing import Form, Signal
from tests.dashboard.ingest.otlp.exports import (
    SESSION,
    Json,
    call,
    event,
    list_attributes,
    logs,
    metrics,
    point,
    spell_real,
    traces,
)
from tests.dashboard.ingest.otlp.exports import span as make_span

# Of names and ids, those that only differ behind what a column holds included.
_TEXTS = [
    "",
    "\x00",
    "a\x00b",
    "x" * 300,
    "x" * 299 + "y",
    "é" * 250,
    "9" * 25,
    "-1",
    "1e999",
    "NaN",
    "true",
    "💥",
    "{}",
]
_LONE = ["\ud800", "a\udfffb"]  # half characters: JSON can spell them, protobuf cannot
_NUMBERS = [0, 1, -1, 2**31, 2**53 - 1, 2**53, 2**63 - 1, -(2**63)]
_BEYOND = [2**63, 2**64, -(2**64), 10**40]
_REALS = [0.0, -0.0, 1e-300, 1e308, float("nan"), float("inf"), float("-inf")]
_BODIES = ['{"messages":[]}', '{"model":"x","messages":[{"role":"user","content":"\\ud800\\u0000"}]}', "[", "null"]
_TIMES = [0, 1, 999, 10**18, 1_772_000_000 * 10**9, 4_102_444_800 * 10**9 - 1, 4_102_444_800 * 10**9, 2**63, 2**64 - 1]
_EVENTS = (
    *("api_request", "compaction", "api_error", "api_retries_exhausted", "user_prompt", "tool_result"),
    *("api_request_body", "api_response_body", "from the future", ""),
)
_SPANS = ("claude_code.llm_request", "claude_code.tool", "chat", "")
_METRICS = ("claude_code.cost.usage", "claude_code.token.usage", "claude_code.session.count", "")
_NAMES = (
    *("session.id", "gen_ai.conversation.id", "agent_id", "query_source", "event.name", "event.sequence", "model"),
    *("input_tokens", "output_tokens", "cache_read_tokens", "cache_creation_tokens", "cache_creation_1h_tokens"),
    *("cost_usd", "cost_usd_micros", "duration_ms", "ttft_ms", "request_id", "request_body_id", "message.id", "speed"),
    *("success", "trigger", "pre_tokens", "post_tokens", "error", "status_code", "attempt", "prompt", "command_name"),
    *("tool_name", "tool_use_id", "tool_result_size_bytes", "body", "stop_reason", "type"),
    *("gen_ai.operation.name", "gen_ai.response.id", "gen_ai.response.model", "gen_ai.response.finish_reasons"),
    *("gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens", "gen_ai.usage.cache_read.input_tokens"),
    *("gen_ai.response.time_to_first_chunk", "anthropic.request.id", "anthropic.message.stop_reason"),
)
_SENSIBLE: Json = {"input_tokens": 3, "output_tokens": 50, "gen_ai.usage.input_tokens": 9, "session.id": SESSION}
_SENSIBLE |= {"gen_ai.usage.output_tokens": 5, "request_id": "req_1", "success": "true", "pre_tokens": "9000"}


def draw_export(signal: Signal, form: Form) -> st.SearchStrategy[Json]:
    """With two to six items, as the encoding can spell them."""
    attributes = _draw_attributes(form)
    times = st.sampled_from(_TIMES)
    if form is Form.JSON:
        times |= st.sampled_from([-1, 2**64, 10**400, 0.5])
    match signal:
        case Signal.LOGS:
            items = st.builds(_make_record, st.sampled_from(_EVENTS), attributes, times)
            return st.builds(lambda drawn: logs(*drawn), st.lists(items, min_size=2, max_size=6))
        case Signal.METRICS:
            points = st.builds(_make_point, attributes, times, times, _draw_numbers(form) | st.sampled_from(_REALS))
            several = st.lists(points, min_size=2, max_size=6)
            kinds = st.sampled_from([0, 1, 2])
            return st.builds(
                lambda name, drawn, kind: metrics(name, *drawn, temporality=kind),
                st.sampled_from(_METRICS), several, kinds,
            )  # fmt: skip
        case Signal.TRACES:
            ids = st.sampled_from(["", "00", "ab" * 8, "cd" * 16, "ef" * 400])
            spans = st.builds(_make_span, st.sampled_from(_SPANS), attributes, st.tuples(times, times), ids, ids)
            return st.builds(lambda drawn: traces(*drawn), st.lists(spans, min_size=2, max_size=6))


def _draw_numbers(form: Form) -> st.SearchStrategy[int]:
    return st.sampled_from(_NUMBERS + (_BEYOND if form is Form.JSON else []))


def _draw_values(form: Form) -> st.SearchStrategy[object]:
    texts = st.sampled_from(_TEXTS + _BODIES + (_LONE if form is Form.JSON else [])) | st.text(max_size=8)
    plain = texts | _draw_numbers(form) | st.sampled_from(_REALS) | st.booleans() | st.binary(max_size=4)
    return plain | st.lists(plain, max_size=2) | st.dictionaries(st.sampled_from(_NAMES), plain, max_size=2)


def _draw_attributes(form: Form) -> st.SearchStrategy[Json]:
    """Mostly sensible, so that most items are kept, with some that are not."""
    odd = st.dictionaries(st.sampled_from(_NAMES), _draw_values(form), max_size=5)
    return st.builds(lambda drawn: _SENSIBLE | drawn, odd)


def _make_record(name: str, attributes: Json, at: object) -> Json:
    record = call(None, 0) if name == "api_request" else event(name)
    known = {pair["key"]: pair for pair in record["attributes"]}
    told = known | {pair["key"]: pair for pair in list_attributes(attributes)}
    return record | {"attributes": list(told.values()), "timeUnixNano": _spell(at)}


def _make_point(attributes: Json, started: object, at: object, value: float) -> Json:
    made = point(0, 0.0) | {"attributes": list_attributes(attributes)}
    made |= {"startTimeUnixNano": _spell(started), "timeUnixNano": _spell(at)}
    if isinstance(value, int):
        del made["asDouble"]
        return made | {"asInt": str(value)}
    return made | {"asDouble": spell_real(value)}


def _make_span(name: str, attributes: Json, times: tuple[object, object], trace_id: str, span_id: str) -> Json:
    told: Json = {"startTimeUnixNano": _spell(times[0]), "endTimeUnixNano": _spell(times[1])}
    told |= {"traceId": trace_id, "spanId": span_id, "attributes": list_attributes(attributes)}
    return make_span(name, 0, 1) | told


def _spell(at: object) -> Any:
    return str(at) if isinstance(at, int) else at


def tell_apart(data: bytes) -> str:
    """For the message of a failed test: a body that can be sent again."""
    return base64.b64encode(data).decode()

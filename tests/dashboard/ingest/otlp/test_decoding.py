"""Both encodings give the same values; whatever else comes is refused with a typed error."""

import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dashboard.ingest.hostile_json import LONG_BYTES
from dashboard.ingest.observed import Rules
from dashboard.ingest.otlp import json_form, protobuf_form
from dashboard.ingest.otlp.answering import write_refusal, write_success
from dashboard.ingest.otlp.json_form import MOST_VALUES
from dashboard.ingest.otlp.preparing import Form, Signal, prepare_export
from dashboard.ingest.otlp.values import CUT_MARK, LONGEST_TEXT, MOST_ITEMS, Undecodable
from tests.dashboard.ingest.conversation import START
from tests.dashboard.ingest.otlp.exports import (
    RESOURCE,
    Json,
    call,
    event,
    list_attributes,
    logs,
    metrics,
    point,
    span,
    to_protobuf,
    traces,
)

RULES = Rules(keeps_content=True, digest_key=b"k" * 32)
ODD: Json = {
    "text": "Hafen ⚓",
    "whole": -7,
    "large": 2**62,
    "real": 0.25,
    "yes": True,
    "bytes": b"\x00\xff",
    "list": ["a", 1, [2.5]],
    "object": {"deep": {"deeper": "x"}},
}
EXPORTS = {
    Signal.LOGS: logs(call("req_1", 0, written=900), event("tool_decision", 2, **ODD)),
    Signal.METRICS: metrics("claude_code.cost.usage", point(10, 0.5, **ODD), point(20, 0.25)),
    Signal.TRACES: traces(span("chat x", 0, 2.5, 7, **ODD), span("claude_code.llm_request", 1, 2, 255)),
}


def encode(export: object) -> bytes:
    return json.dumps(export).encode()


def test_log_records_are_the_same_from_json_and_protobuf() -> None:
    export = EXPORTS[Signal.LOGS]
    from_json = json_form.read_logs(encode(export))
    assert from_json == protobuf_form.read_logs(to_protobuf(export))
    first, second = from_json.items
    assert first.name == "api_request"
    assert first.resource["service.version"] == "2.1.325"
    assert {name: second.attributes[name] for name in ODD} == ODD


def test_points_are_the_same_from_json_and_protobuf() -> None:
    export = EXPORTS[Signal.METRICS]
    from_json = json_form.read_metrics(encode(export))
    assert from_json == protobuf_form.read_metrics(to_protobuf(export))
    assert [each.value for each in from_json.items] == [0.5, 0.25]
    assert all(each.is_delta for each in from_json.items)


@pytest.mark.parametrize("kind", ["gauge", "histogram", "exponentialHistogram", "summary"])
def test_points_of_other_kinds_are_counted_and_not_refused(kind: str) -> None:
    export = metrics("claude_code.token.usage", point(10, 5))
    (metric,) = export["resourceMetrics"][0]["scopeMetrics"][0]["metrics"]
    times = {"startTimeUnixNano": "1", "timeUnixNano": "2"}
    other = {"name": "http.client.duration", kind: {"dataPoints": [times, times]}}
    export["resourceMetrics"][0]["scopeMetrics"][0]["metrics"] = [metric, other]
    for form, body in ((Form.JSON, encode(export)), (Form.PROTOBUF, to_protobuf(export))):
        found = prepare_export(body, Signal.METRICS, form, RULES)
        assert (found.rejected, dict(found.prepared.drops)) == (0, {"event not known": 2})
        assert (len(found.prepared.sessions), found.prepared.line_count) == (1, 3)


def test_export_of_endless_small_values_is_refused_before_it_is_read() -> None:
    many = b'{"resourceLogs":[' + b"1," * (MOST_VALUES + 1) + b"1]}"
    padded = many + b" " * (LONG_BYTES - len(many))
    with pytest.raises(Undecodable, match="several parts"):
        prepare_export(padded, Signal.LOGS, Form.JSON, RULES)
    told = encode(logs(call("req_1", 0, words="," * 2 * MOST_VALUES, more="[" * LONG_BYTES)))
    assert len(prepare_export(told, Signal.LOGS, Form.JSON, RULES).prepared.sessions) == 1


def test_span_that_claims_to_last_for_ages_is_taken() -> None:
    told: Json = {"session.id": "s", "input_tokens": 3, "output_tokens": 5, "duration_ms": 2**53 - 1}
    endless = span("claude_code.llm_request", 0, 0, **told) | {"endTimeUnixNano": "0"}
    (session,) = prepare_export(encode(traces(endless)), Signal.TRACES, Form.JSON, RULES).prepared.sessions
    assert session.lines[0].fact.at == START


def test_spans_are_the_same_from_json_and_protobuf() -> None:
    export = EXPORTS[Signal.TRACES]
    from_json = json_form.read_spans(encode(export))
    assert from_json == protobuf_form.read_spans(to_protobuf(export))
    assert (from_json.items[1].trace_id, from_json.items[1].span_id) == ("0" * 30 + "ff", "0" * 14 + "ff")


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ({"intValue": 12}, 12),
        ({"intValue": "12"}, 12),
        ({"intValue": "twelve"}, 0),
        ({"doubleValue": "0.5"}, 0.5),
        ({"doubleValue": "Infinity"}, float("inf")),
        ({"stringValue": "a\x00b"}, "ab"),
        ({"stringValue": 7}, None),
        ({"futureValue": 7}, None),
        ({"arrayValue": [1]}, None),
        ({}, None),
    ],
)
def test_values_of_json_are_read_leniently(written: object, read: object) -> None:
    export = logs()
    export["resourceLogs"][0]["scopeLogs"][0]["logRecords"] = [
        {"attributes": [{"key": "odd", "value": written}, {"value": {}}, 3], "unknownField": {"a": 1}}
    ]
    (record,) = json_form.read_logs(encode(export)).items
    assert record.attributes == {"odd": read}


def test_ids_in_base64_are_understood_too() -> None:
    export = traces(span("x", 0, 1) | {"traceId": "AAAAAAAAAAAAAAAAAAAA/w==", "spanId": "AAAAAAAAAP8="})
    (found,) = json_form.read_spans(encode(export)).items
    assert (found.trace_id[-2:], found.span_id[-2:]) == ("ff", "ff")


def test_long_texts_are_cut_with_a_mark_in_both_forms() -> None:
    export = logs(event("x", long="a" * (LONGEST_TEXT + 5)))
    for found in (json_form.read_logs(encode(export)), protobuf_form.read_logs(to_protobuf(export))):
        text = found.items[0].attributes["long"]
        assert isinstance(text, str)
        assert (len(text), text[-len(CUT_MARK) :]) == (LONGEST_TEXT + len(CUT_MARK), CUT_MARK)


def test_items_beyond_the_limit_are_rejected_and_counted() -> None:
    found = prepare_export(encode(logs(*[event("auth")] * (MOST_ITEMS + 2))), Signal.LOGS, Form.JSON, RULES)
    assert found.rejected == 2
    assert "more than 10,000 items" in found.sentence


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"null",
        b"{",
        b"[" * 100_000,
        b'{"resourceLogs":' + b'{"a":' * 100_000,
        b'{"resourceLogs":[' + b"9" * 1_000_000 + b"]}",
        b"\xff\xfe\x00",
        b'{"resourceSpans":[]}',
    ],
    ids=lambda body: repr(body[:20]),
)
def test_what_is_no_export_is_refused(body: bytes) -> None:
    with pytest.raises(Undecodable):
        prepare_export(body, Signal.LOGS, Form.JSON, RULES)


def test_values_nested_too_deeply_are_refused_in_both_forms() -> None:
    deep: object = "x"
    for _ in range(40):
        deep = {"a": [deep]}
    export = logs()
    export["resourceLogs"][0]["resource"]["attributes"] = list_attributes({**RESOURCE, "deep": deep})
    with pytest.raises(Undecodable):
        prepare_export(encode(export), Signal.LOGS, Form.JSON, RULES)
    with pytest.raises(Undecodable):
        prepare_export(to_protobuf(export), Signal.LOGS, Form.PROTOBUF, RULES)


@settings(max_examples=300, deadline=None)
@given(data=st.binary(max_size=400), signal=st.sampled_from(Signal), form=st.sampled_from(Form))
def test_any_bytes_are_decoded_or_refused(data: bytes, signal: Signal, form: Form) -> None:
    try:
        prepare_export(data, signal, form, RULES)
    except Undecodable:
        return


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_damaged_exports_are_decoded_or_refused(data: st.DataObject) -> None:
    signal = data.draw(st.sampled_from(Signal))
    form = data.draw(st.sampled_from(Form))
    body = bytearray(encode(EXPORTS[signal]) if form is Form.JSON else to_protobuf(EXPORTS[signal]))
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(body) - 1))
        body[place : place + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=3))
    try:
        prepare_export(bytes(body), signal, form, RULES)
    except Undecodable:
        return


# Every word that a reader of that signal looks for, in any place and with anything in it.
_ANYWHERE = [
    "attributes",
    "key",
    "value",
    "stringValue",
    "intValue",
    "doubleValue",
    "arrayValue",
    "kvlistValue",
    "values",
]
_WORDS = {
    Signal.LOGS: ["resourceLogs", "resource", "scopeLogs", "logRecords", "timeUnixNano", "eventName", "body"],
    Signal.METRICS: ["resourceMetrics", "scopeMetrics", "metrics", "name", "sum", "dataPoints", "asInt", "asDouble"],
    Signal.TRACES: ["resourceSpans", "scopeSpans", "spans", "name", "traceId", "spanId", "startTimeUnixNano"],
}
_NUMBERS = st.integers() | st.floats() | st.sampled_from([2**63, 2**64, -(2**64), 10**400, 1e308, "9" * 20, "1e999"])


def _draw_json(words: list[str]) -> st.SearchStrategy[object]:
    return st.recursive(
        st.none() | st.booleans() | _NUMBERS | st.text(max_size=5),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(words), inner, max_size=5),
        max_leaves=30,
    )


@pytest.mark.parametrize("signal", Signal)
@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_any_json_of_the_right_words_is_decoded_or_refused(signal: Signal, data: st.DataObject) -> None:
    words = _WORDS[signal]
    told = data.draw(_draw_json([*words, *_ANYWHERE]))
    try:
        prepare_export(encode({words[0]: told}), signal, Form.JSON, RULES)
    except Undecodable:
        return


@pytest.mark.parametrize("number", [2**63, 2**64, -(2**64), 10**400, 1e308, "9" * 20, "1e999", "NaN"])
@pytest.mark.parametrize("signal", Signal)
def test_numbers_beyond_64_bits_break_nothing(signal: Signal, number: float | str) -> None:
    """In every place of an export where a number stands."""
    text = encode(EXPORTS[signal]).decode()
    for name in (
        "intValue",
        "doubleValue",
        "timeUnixNano",
        "startTimeUnixNano",
        "endTimeUnixNano",
        "asInt",
        "asDouble",
    ):
        changed = re.sub(rf'"{name}": [^,}}\]]+', f'"{name}": {json.dumps(number)}', text)
        prepare_export(changed.encode(), signal, Form.JSON, RULES)
        prepare_export(changed.replace("asDouble", "asInt").encode(), signal, Form.JSON, RULES)


def test_answers_are_what_the_protocol_wants() -> None:
    assert write_success(Signal.LOGS, Form.JSON) == b"{}"
    assert write_success(Signal.LOGS, Form.PROTOBUF) == b""
    told = json.loads(write_success(Signal.TRACES, Form.JSON, rejected=3, sentence="Why."))
    assert told == {"partialSuccess": {"rejectedSpans": "3", "errorMessage": "Why."}}
    assert write_refusal(Form.PROTOBUF, "a" * 200)[:3] == b"\x12\xc8\x01"

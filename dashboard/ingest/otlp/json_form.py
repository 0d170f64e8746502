"""OTLP in JSON: the same values as from protobuf. Unknown fields and values of a wrong kind are passed over.

Traps of this form: whole numbers may be strings, ids are hexadecimal (not base64), enumerations are numbers.
"""

import base64
import binascii
import math
import re
from collections.abc import Callable, Iterator, Mapping

from compaction.transcripts.json_fields import get_fields, get_items, get_text
from compaction.transcripts.reader import load_json
from dashboard.ingest.hostile_json import LONG_BYTES, MOST_DIGITS, holds_endless_number, holds_many_values
from dashboard.ingest.otlp.values import (
    DEEPEST_VALUE,
    Attributes,
    Export,
    LogRecord,
    Point,
    Span,
    Undecodable,
    Value,
    fit_text,
)

MOST_VALUES = 400_000  # some thousand events of twenty attributes, each of which is four of them
NOT_JSON = "The body is not an OTLP export in JSON."
_Fields = Mapping[str, object]
_HEXADECIMAL = re.compile(r"(?:[0-9a-fA-F]{2})*")
_WHOLE_NUMBER = re.compile(r"-?\d{1,20}")
_LEAST, _MOST = -(2**63), 2**64 - 1
_OTHER_KINDS = ("gauge", "histogram", "exponentialHistogram", "summary")
_DELTA = (1, "AGGREGATION_TEMPORALITY_DELTA")


def read_logs(data: bytes) -> Export[LogRecord]:
    export: Export[LogRecord] = Export()
    for resource, _, record in _walk(data, "resourceLogs", "scopeLogs", "logRecords"):
        attributes = _read_attributes(record)
        body = get_text(get_fields(record, "body"), "stringValue") or ""
        name = get_text(record, "eventName") or str(attributes.get("event.name") or "") or body
        at = _read_whole(record.get("timeUnixNano")) or _read_whole(record.get("observedTimeUnixNano"))
        export.add(LogRecord(fit_text(name), at, attributes, resource))
    return export


def read_metrics(data: bytes) -> Export[Point]:
    export: Export[Point] = Export()
    for resource, _, metric in _walk(data, "resourceMetrics", "scopeMetrics", "metrics"):
        export.other_count += sum(len(get_items(get_fields(metric, kind), "dataPoints")) for kind in _OTHER_KINDS)
        total = get_fields(metric, "sum")
        is_delta = total.get("aggregationTemporality") in _DELTA
        for point in _list_objects(total, "dataPoints"):
            value = _read_whole(point["asInt"]) if "asInt" in point else _read_real(point.get("asDouble"))
            times = _read_whole(point.get("startTimeUnixNano")), _read_whole(point.get("timeUnixNano"))
            name = fit_text(get_text(metric, "name") or "")
            export.add(Point(name, *times, float(value), is_delta, _read_attributes(point), resource))
    return export


def read_spans(data: bytes) -> Export[Span]:
    export: Export[Span] = Export()
    for resource, _, span in _walk(data, "resourceSpans", "scopeSpans", "spans"):
        export.add(
            Span(
                name=fit_text(get_text(span, "name") or ""),
                trace_id=_read_id(get_text(span, "traceId"), 16),
                span_id=_read_id(get_text(span, "spanId"), 8),
                started_nanoseconds=_read_whole(span.get("startTimeUnixNano")),
                ended_nanoseconds=_read_whole(span.get("endTimeUnixNano")),
                attributes=_read_attributes(span),
                resource=resource,
            )
        )
    return export


def _walk(data: bytes, resources: str, scopes: str, items: str) -> Iterator[tuple[Attributes, _Fields, _Fields]]:
    """Every item with the attributes of its resource, and its scope."""
    root = _load(data)
    if resources not in root and any(key.startswith("resource") for key in root):
        raise Undecodable(f"{NOT_JSON} It holds no {resources}.")
    for of_resource in _list_objects(root, resources):
        resource = _read_attributes(get_fields(of_resource, "resource"))
        for of_scope in _list_objects(of_resource, scopes):
            scope = get_fields(of_scope, "scope")
            for item in _list_objects(of_scope, items):
                yield resource, scope, item


def _load(data: bytes) -> _Fields:
    if holds_endless_number(data):
        raise Undecodable(f"{NOT_JSON} A number in it has more than {MOST_DIGITS:,} digits.")
    if len(data) >= LONG_BYTES and holds_many_values(data, MOST_VALUES):
        raise Undecodable(f"The export has more than {MOST_VALUES:,} values. Send it in several parts.")
    try:
        root = load_json(data)
    except (ValueError, RecursionError) as error:
        raise Undecodable(NOT_JSON) from error
    if not isinstance(root, Mapping):
        raise Undecodable(NOT_JSON)
    return root


def _list_objects(fields: _Fields, key: str) -> Iterator[_Fields]:
    for item in get_items(fields, key):
        if isinstance(item, Mapping):
            yield item


def _read_attributes(fields: _Fields, key: str = "attributes", depth: int = 0) -> dict[str, Value]:
    found: dict[str, Value] = {}
    for pair in get_items(fields, key):
        if isinstance(pair, Mapping):
            name, value = pair.get("key"), pair.get("value")
            if isinstance(name, str) and isinstance(value, Mapping):
                found[fit_text(name)] = _read_value(value, depth)
    return found


def _read_value(value: _Fields, depth: int) -> Value:
    kind = next((kind for kind in value if kind in _KINDS), None)
    if kind is None:
        return None
    told = value[kind]
    return _read_nested(kind, told, depth) if isinstance(told, Mapping) else _KINDS[kind](told)


def _read_nested(kind: str, told: _Fields, depth: int) -> Value:
    if depth >= DEEPEST_VALUE:
        raise Undecodable(f"A value is nested deeper than {DEEPEST_VALUE} levels.")
    if kind == "kvlistValue":
        return _read_attributes(told, "values", depth + 1)
    if kind == "arrayValue":
        return [_read_value(item, depth + 1) for item in _list_objects(told, "values")]
    return None


def _read_whole(value: object) -> int:
    """0 where it is no whole number of 64 bits, as protobuf has it for what is not there."""
    if isinstance(value, str) and _WHOLE_NUMBER.fullmatch(value):
        found = int(value)
    elif isinstance(value, int) and not isinstance(value, bool):
        found = value
    elif isinstance(value, float) and value.is_integer():
        found = int(value)
    else:
        return 0
    return found if _LEAST <= found <= _MOST else 0


def _read_real(value: object) -> float:
    if isinstance(value, str):
        try:
            value = float(value[:40])
        except ValueError:
            return 0.0
    if isinstance(value, bool) or not isinstance(value, int | float):
        return 0.0
    try:
        return float(value)
    except OverflowError:
        return math.inf


def _read_id(text: str | None, size_bytes: int) -> str:
    """Hexadecimal by the protocol; exporters that leave it to a protobuf library write base64."""
    if text is None:
        return ""
    if len(text) == 2 * size_bytes and _HEXADECIMAL.fullmatch(text):
        return text.lower()
    data = _decode_base64(text)
    return data.hex() if len(data) == size_bytes else ""


def _decode_base64(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return b""


def _read_nothing(told: object) -> Value:  # noqa: ARG001 (it should have been an object)
    return None


_KINDS: Mapping[str, Callable[[object], Value]] = {
    "stringValue": lambda told: fit_text(told) if isinstance(told, str) else None,
    "boolValue": lambda told: told if isinstance(told, bool) else None,
    "intValue": _read_whole,
    "doubleValue": _read_real,
    "bytesValue": lambda told: _decode_base64(told) if isinstance(told, str) else None,
    "arrayValue": _read_nothing,
    "kvlistValue": _read_nothing,
}

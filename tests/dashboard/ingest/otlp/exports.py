"""Exports as Claude Code sends them, in JSON and, through the protobuf library's own converter, in protobuf."""

import base64
import copy
import math
from datetime import datetime, timedelta
from typing import Any

from google.protobuf.json_format import ParseDict
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.dashboard.ingest.conversation import MODEL, START

SESSION = "4f6c1f0e-0000-4000-8000-000000000001"
Json = dict[str, Any]
_KINDS: dict[str, Any] = {
    "resourceLogs": ExportLogsServiceRequest,
    "resourceMetrics": ExportMetricsServiceRequest,
    "resourceSpans": ExportTraceServiceRequest,
}
RESOURCE = {"service.name": "claude-code", "service.version": "2.1.325", "host.arch": "amd64"}


def spell(value: object) -> Json:
    """A value as OTLP/JSON writes it."""
    match value:
        case bool():
            told: Json = {"boolValue": value}
        case int():
            told = {"intValue": str(value)}
        case float():
            told = {"doubleValue": spell_real(value)}
        case bytes():
            told = {"bytesValue": base64.b64encode(value).decode()}
        case list():
            told = {"arrayValue": {"values": [spell(item) for item in value]}}
        case dict():
            told = {"kvlistValue": {"values": list_attributes(value)}}
        case _:
            told = {"stringValue": str(value)}
    return told


def spell_real(value: float) -> float | str:
    """What JSON has no number for has a name."""
    if math.isnan(value):
        return "NaN"
    return value if math.isfinite(value) else "Infinity" if value > 0 else "-Infinity"


def list_attributes(told: Json) -> list[Json]:
    return [{"key": name, "value": spell(value)} for name, value in told.items()]


def nanoseconds(at: datetime) -> str:
    return str(int(at.timestamp() * 1000) * 1_000_000)


def event(
    name: str, second: float = 0.0, *, session: str | None = SESSION, start: datetime = START, **told: object
) -> Json:
    """A log record; `told` are its attributes with `__` for a dot."""
    at = start + timedelta(seconds=second)
    given = {key.replace("__", "."): value for key, value in told.items()}
    own: Json = {"event.name": name, "event.timestamp": at.isoformat(), "event.sequence": int(second * 10) + 1}
    if session is not None:
        own["session.id"] = session
    return {
        "timeUnixNano": nanoseconds(at),
        "observedTimeUnixNano": nanoseconds(at),
        "body": {"stringValue": f"claude_code.{name}"},
        "attributes": list_attributes(own | given),
    }


def call(
    request_id: str | None, second: float, *, read: int = 0, written: int = 0, output: int = 50, **told: object
) -> Json:
    """An api_request: it is logged when the call is over, `duration_ms` after its start at `second`."""
    duration_ms = int(str(told.pop("duration_ms", 1500)))
    given: Json = {
        "model": MODEL,
        "input_tokens": 3,
        "output_tokens": output,
        "cache_read_tokens": read,
        "cache_creation_tokens": written,
        "cache_creation_5m_tokens": written,
        "cache_creation_1h_tokens": 0,
        "cost_usd": 0.0123,
        "cost_usd_micros": 12300,
        "duration_ms": duration_ms,
        "ttft_ms": 400,
        "query_source": "repl_main_thread",
    }
    if request_id is not None:
        given["request_id"] = request_id
    return event("api_request", second + duration_ms / 1000, **given | told)


def logs(*records: Json, resource: Json = RESOURCE) -> Json:
    scope = {"name": "com.anthropic.claude_code.events", "version": "2.1.325"}
    scoped = {"scope": scope, "logRecords": list(records)}
    return {"resourceLogs": [{"resource": {"attributes": list_attributes(resource)}, "scopeLogs": [scoped]}]}


def point(second: float, value: float, *, session: str | None = SESSION, **told: object) -> Json:
    own: Json = {"model": MODEL, **told}
    if session is not None:
        own["session.id"] = session
    return {
        "attributes": list_attributes(own),
        "startTimeUnixNano": nanoseconds(START + timedelta(seconds=second - 10)),
        "timeUnixNano": nanoseconds(START + timedelta(seconds=second)),
        "asDouble": value,
    }


def metrics(name: str, *points: Json, temporality: int = 1) -> Json:
    total = {"aggregationTemporality": temporality, "isMonotonic": True, "dataPoints": list(points)}
    scoped = {"scope": {"name": "com.anthropic.claude_code"}, "metrics": [{"name": name, "unit": "USD", "sum": total}]}
    return {"resourceMetrics": [{"resource": {"attributes": list_attributes(RESOURCE)}, "scopeMetrics": [scoped]}]}


def span(name: str, second: float, seconds: float, number: int = 1, **told: object) -> Json:
    started = START + timedelta(seconds=second)
    return {
        "traceId": f"{number:032x}",
        "spanId": f"{number:016x}",
        "name": name,
        "kind": 3,
        "startTimeUnixNano": nanoseconds(started),
        "endTimeUnixNano": nanoseconds(started + timedelta(seconds=seconds)),
        "attributes": list_attributes({key.replace("__", "."): value for key, value in told.items()}),
    }


def traces(*spans: Json, resource: Json = RESOURCE) -> Json:
    scoped = {"scope": {"name": "any"}, "spans": list(spans)}
    return {"resourceSpans": [{"resource": {"attributes": list_attributes(resource)}, "scopeSpans": [scoped]}]}


def to_protobuf(export: Json) -> bytes:
    """The library's converter takes ids as base64, which OTLP/JSON is not."""
    changed = copy.deepcopy(export)
    for of_resource in changed.get("resourceSpans", ()):
        for of_scope in of_resource["scopeSpans"]:
            for each in of_scope["spans"]:
                for name in ("traceId", "spanId"):
                    each[name] = base64.b64encode(bytes.fromhex(each[name])).decode()
    kind = next(kind for name, kind in _KINDS.items() if name in export)
    data: bytes = ParseDict(changed, kind(), max_recursion_depth=1000).SerializeToString()
    return data

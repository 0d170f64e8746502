"""OTLP in protobuf: bytes in, values out. Fields that this version does not know are skipped by the library."""

from collections.abc import Iterable
from typing import Any

from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.metrics.v1.metrics_pb2 import AggregationTemporality

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

_OTHER_KINDS = ("gauge", "histogram", "exponential_histogram", "summary")
_SHORT = 1000
NOT_PROTOBUF = "The body is not an OTLP export in protobuf."


def read_logs(data: bytes) -> Export[LogRecord]:
    export: Export[LogRecord] = Export()
    for of_resource in _parse(ExportLogsServiceRequest, data).resource_logs:
        resource = _read_attributes(of_resource.resource.attributes)
        for of_scope in of_resource.scope_logs:
            for record in of_scope.log_records:
                attributes = _read_attributes(record.attributes)
                name = record.event_name or str(attributes.get("event.name") or "") or record.body.string_value
                at = record.time_unix_nano or record.observed_time_unix_nano
                export.add(LogRecord(fit_text(name), at, attributes, resource))
    return export


def read_metrics(data: bytes) -> Export[Point]:
    export: Export[Point] = Export()
    for of_resource in _parse(ExportMetricsServiceRequest, data).resource_metrics:
        resource = _read_attributes(of_resource.resource.attributes)
        for of_scope in of_resource.scope_metrics:
            for metric in of_scope.metrics:
                export.other_count += sum(len(getattr(metric, kind).data_points) for kind in _OTHER_KINDS)
                is_delta = metric.sum.aggregation_temporality == AggregationTemporality.AGGREGATION_TEMPORALITY_DELTA
                for point in metric.sum.data_points:
                    value = point.as_int if point.WhichOneof("value") == "as_int" else point.as_double
                    attributes = _read_attributes(point.attributes)
                    times = point.start_time_unix_nano, point.time_unix_nano
                    export.add(Point(fit_text(metric.name), *times, float(value), is_delta, attributes, resource))
    return export


def read_spans(data: bytes) -> Export[Span]:
    export: Export[Span] = Export()
    for of_resource in _parse(ExportTraceServiceRequest, data).resource_spans:
        resource = _read_attributes(of_resource.resource.attributes)
        for of_scope in of_resource.scope_spans:
            for span in of_scope.spans:
                export.add(
                    Span(
                        name=fit_text(span.name),
                        trace_id=span.trace_id.hex(),
                        span_id=span.span_id.hex(),
                        started_nanoseconds=span.start_time_unix_nano,
                        ended_nanoseconds=span.end_time_unix_nano,
                        attributes=_read_attributes(span.attributes),
                        resource=resource,
                    )
                )
    return export


def _parse(kind: Any, data: bytes) -> Any:
    try:
        return kind.FromString(data)
    except DecodeError as error:
        raise Undecodable(NOT_PROTOBUF) from error


def _read_attributes(pairs: Iterable[KeyValue], depth: int = 0) -> Attributes:
    found: dict[str, Value] = {}
    for pair in pairs:
        value = pair.value
        # Most attributes are short texts: read here, without a call for each.
        if text := value.string_value:
            found[pair.key] = text if len(text) < _SHORT and text.isascii() and "\x00" not in text else fit_text(text)
        else:
            found[pair.key] = _read_value(value, depth)
    return found


def _read_value(value: AnyValue, depth: int) -> Value:
    kind = value.WhichOneof("value")
    if kind == "string_value":
        return fit_text(value.string_value)
    if kind is None:
        return None
    if kind not in ("array_value", "kvlist_value"):
        plain: Value = getattr(value, kind)
        return plain
    if depth >= DEEPEST_VALUE:
        raise Undecodable(f"A value is nested deeper than {DEEPEST_VALUE} levels.")
    if kind == "array_value":
        return [_read_value(item, depth + 1) for item in value.array_value.values]
    return dict(_read_attributes(value.kvlist_value.values, depth + 1))

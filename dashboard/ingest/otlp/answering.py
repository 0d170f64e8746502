"""What an OTLP client is answered: success, partial success or a status, in the encoding it spoke."""

import json
from collections.abc import Mapping
from typing import Any

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceResponse
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceResponse
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from dashboard.ingest.otlp.preparing import Form, Signal
from dashboard.ingest.otlp.statuses import write_status

_ANSWERS: Mapping[Signal, tuple[Any, str, str]] = {
    Signal.LOGS: (ExportLogsServiceResponse, "rejected_log_records", "rejectedLogRecords"),
    Signal.METRICS: (ExportMetricsServiceResponse, "rejected_data_points", "rejectedDataPoints"),
    Signal.TRACES: (ExportTraceServiceResponse, "rejected_spans", "rejectedSpans"),
}


def write_success(signal: Signal, form: Form, *, rejected: int = 0, sentence: str = "") -> bytes:
    """Without `partial_success` where everything was taken, as the protocol wants it."""
    kind, field_name, json_name = _ANSWERS[signal]
    if form is Form.JSON:
        told = {"partialSuccess": {json_name: str(rejected), "errorMessage": sentence}} if rejected else {}
        return json.dumps(told).encode()
    answer = kind()
    if rejected:
        setattr(answer.partial_success, field_name, rejected)
        answer.partial_success.error_message = sentence
    data: bytes = answer.SerializeToString()
    return data


def write_refusal(form: Form, sentence: str) -> bytes:
    return write_status(sentence, in_protobuf=form is Form.PROTOBUF)

"""The official Python exporters as clients, against the running application."""

import http.client
import json
from urllib.parse import urlsplit

import pytest
from opentelemetry._logs import LogRecord
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
from opentelemetry.sdk.metrics import Counter, MeterProvider
from opentelemetry.sdk.metrics.export import AggregationTemporality, PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from dashboard.ingest.bodies import MIB
from dashboard.ingest.endpoints.otlp import INFLATED_BYTES
from dashboard.models import AgentSession, ApiCall, Scope, User
from tests.builders import make_key, make_team
from tests.dashboard.ingest.conversation import MODEL
from tests.dashboard.ingest.otlp.exports import SESSION, Json, call, logs, to_protobuf

RESOURCE = Resource({"service.name": "claude-code", "service.version": "2.1.325"})
CALL: Json = {
    "session.id": SESSION,
    "event.name": "api_request",
    "event.sequence": 4,
    "model": MODEL,
    "input_tokens": 3,
    "output_tokens": 50,
    "cache_read_tokens": 20_000,
    "cache_creation_tokens": 900,
    "duration_ms": 1500,
    "request_id": "req_1",
    "query_source": "sdk",
}


@pytest.fixture
def headers(server_url: str) -> dict[str, str]:
    team = make_team("Harbour", owner="alice")
    _, text = make_key(team, User.objects.get(username="alice"), Scope.INGEST)
    return {"X-Plimsoll-Key": text}


@pytest.mark.parametrize("compression", [Compression.NoCompression, Compression.Gzip])
def test_log_exporter_delivers(server_url: str, headers: dict[str, str], compression: Compression) -> None:
    exporter = OTLPLogExporter(f"{server_url}/v1/logs", headers=headers, compression=compression)
    provider = LoggerProvider(RESOURCE)
    provider.add_log_record_processor(BatchLogRecordProcessor(exporter))
    logger = provider.get_logger("com.anthropic.claude_code.events")
    logger.emit(LogRecord(timestamp=1_772_000_000_000_000_000, body="claude_code.api_request", attributes=CALL))
    provider.shutdown()
    found = ApiCall.objects.get()
    assert (found.request_id, found.read_tokens, found.duration_seconds) == ("req_1", 20_000, 1.5)
    assert found.session.client_version == "2.1.325"


def test_metric_exporter_delivers_deltas(server_url: str, headers: dict[str, str]) -> None:
    exporter = OTLPMetricExporter(
        f"{server_url}/ingest/otlp/v1/metrics",
        headers=headers,
        preferred_temporality={Counter: AggregationTemporality.DELTA},
    )
    reader = PeriodicExportingMetricReader(exporter, export_interval_millis=3_600_000)
    provider = MeterProvider([reader], RESOURCE)
    counter = provider.get_meter("com.anthropic.claude_code").create_counter("claude_code.cost.usage", "USD")
    for amount in (0.25, 0.5):
        counter.add(amount, {"session.id": SESSION, "model": MODEL})
        provider.force_flush()
    provider.shutdown()
    assert str(AgentSession.objects.get().client_cost_usd) == "0.75000000"


def test_span_exporter_delivers(server_url: str, headers: dict[str, str]) -> None:
    provider = TracerProvider(resource=RESOURCE)
    exporter = OTLPSpanExporter(f"{server_url}/v1/traces", headers=headers)
    provider.add_span_processor(BatchSpanProcessor(exporter))
    told: Json = {
        "gen_ai.operation.name": "chat",
        "gen_ai.conversation.id": SESSION,
        "gen_ai.response.id": "msg_1",
        "gen_ai.response.model": MODEL,
        "gen_ai.usage.input_tokens": 21_000,
        "gen_ai.usage.cache_read.input_tokens": 20_000,
        "gen_ai.usage.output_tokens": 50,
        "gen_ai.response.finish_reasons": ["end_turn"],
    }
    provider.get_tracer("agent").start_span("chat", attributes=told).end()
    provider.shutdown()
    found = ApiCall.objects.get()
    assert (found.call_id, found.input_tokens, found.read_tokens) == ("msg_1", 1_000, 20_000)
    assert found.stop_reason == "end_turn"


def test_body_in_chunks_is_taken(server_url: str, headers: dict[str, str]) -> None:
    connection = http.client.HTTPConnection(urlsplit(server_url).netloc, timeout=20)
    body = json.dumps(logs(call("req_1", 0))).encode()
    pieces = [body[place : place + 100] for place in range(0, len(body), 100)]
    sent = headers | {"Content-Type": "application/json"}
    connection.request("POST", "/v1/logs", iter(pieces), sent, encode_chunked=True)
    response = connection.getresponse()
    assert (response.status, response.read()) == (200, b"{}")
    connection.close()
    assert ApiCall.objects.count() == 1


def test_export_of_many_megabytes_is_taken_uncompressed(server_url: str, headers: dict[str, str]) -> None:
    """As Claude Code sends it; what is refused as too large no exporter sends again."""
    calls = [call(f"req_{number}", number, padding="x" * 1_000_000) for number in range(18)]
    body = to_protobuf(logs(*calls))
    assert 5 * MIB < len(body) < INFLATED_BYTES
    connection = http.client.HTTPConnection(urlsplit(server_url).netloc, timeout=120)
    connection.request("POST", "/v1/logs", body, headers | {"Content-Type": "application/x-protobuf"})
    response = connection.getresponse()
    assert (response.status, response.read()) == (200, b"")
    connection.close()
    assert ApiCall.objects.count() == 18

// What a program with the official exporters sends, in JSON and protobuf, plain and gzip, each as a session of its own.
// Tells as one line of JSON what the exporters warned of. Arguments: address of the server, key of Plimsoll.
import { diag, DiagLogLevel } from "@opentelemetry/api";
import { OTLPLogExporter as JsonLogs } from "@opentelemetry/exporter-logs-otlp-http";
import { OTLPLogExporter as ProtobufLogs } from "@opentelemetry/exporter-logs-otlp-proto";
import {
  AggregationTemporalityPreference,
  OTLPMetricExporter as JsonMetrics,
} from "@opentelemetry/exporter-metrics-otlp-http";
import { OTLPMetricExporter as ProtobufMetrics } from "@opentelemetry/exporter-metrics-otlp-proto";
import { OTLPTraceExporter as JsonTraces } from "@opentelemetry/exporter-trace-otlp-http";
import { OTLPTraceExporter as ProtobufTraces } from "@opentelemetry/exporter-trace-otlp-proto";
import { resourceFromAttributes } from "@opentelemetry/resources";
import { BatchLogRecordProcessor, LoggerProvider } from "@opentelemetry/sdk-logs";
import { MeterProvider, PeriodicExportingMetricReader } from "@opentelemetry/sdk-metrics";
import { BatchSpanProcessor, TracerProvider } from "@opentelemetry/sdk-trace";

const [server, key] = process.argv.slice(2);
const warned = {};
let session = "";
const note = (...words) => (warned[session] ??= []).push(words.join(" "));
const silent = () => {};
diag.setLogger({ error: note, warn: note, info: silent, debug: silent, verbose: silent }, DiagLogLevel.WARN);

const resource = resourceFromAttributes({ "service.name": "claude-code", "service.version": "2.1.325" });
const model = "claude-opus-4-5";

async function sendLogs(exporter) {
  const provider = new LoggerProvider({ resource, processors: [new BatchLogRecordProcessor({ exporter })] });
  const logger = provider.getLogger("com.anthropic.claude_code.events");
  const attributes = {
    "event.name": "api_request", "event.sequence": 4, model, request_id: `req_${session}`, query_source: "sdk",
    input_tokens: 3, output_tokens: 50, cache_read_tokens: 20000, cache_creation_tokens: 900, duration_ms: 1500,
  };
  logger.emit({ body: "claude_code.api_request", attributes: { ...attributes, "session.id": session } });
  logger.emit({ body: "claude_code.api_request", attributes }); // of no session: refused by itself
  await provider.shutdown();
}

async function sendMetrics(exporter) {
  const reader = new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: 3_600_000 });
  const provider = new MeterProvider({ resource, readers: [reader] });
  const counter = provider.getMeter("com.anthropic.claude_code").createCounter("claude_code.cost.usage", { unit: "USD" });
  for (const amount of [0.25, 0.5]) {
    counter.add(amount, { "session.id": session, model });
    await provider.forceFlush();
  }
  await provider.shutdown();
}

async function sendSpans(exporter) {
  const provider = new TracerProvider({ resource, spanProcessors: [new BatchSpanProcessor({ exporter })] });
  const attributes = {
    "gen_ai.operation.name": "chat", "gen_ai.conversation.id": session, "gen_ai.response.id": `msg_${session}`,
    "gen_ai.response.model": model, "gen_ai.usage.input_tokens": 21000, "gen_ai.usage.cache_read.input_tokens": 20000,
    "gen_ai.usage.output_tokens": 50, "gen_ai.response.finish_reasons": ["end_turn"],
  };
  provider.getTracer("agent").startSpan("chat", { attributes }).end();
  await provider.shutdown();
}

const forms = { json: [JsonLogs, JsonMetrics, JsonTraces], protobuf: [ProtobufLogs, ProtobufMetrics, ProtobufTraces] };
for (const [form, [Logs, Metrics, Traces]] of Object.entries(forms)) {
  for (const compression of ["none", "gzip"]) {
    session = `${form}-${compression}`;
    const options = { headers: { "X-Plimsoll-Key": key }, compression, timeoutMillis: 60_000 }; // a busy machine
    const temporalityPreference = AggregationTemporalityPreference.DELTA;
    await sendLogs(new Logs({ ...options, url: `${server}/v1/logs` }));
    await sendMetrics(new Metrics({ ...options, url: `${server}/v1/metrics`, temporalityPreference }));
    await sendSpans(new Traces({ ...options, url: `${server}/v1/traces` }));
  }
}
console.log(JSON.stringify(warned));

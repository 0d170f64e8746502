"""S3: bodies made to hurt, against every way in of a running web process: refused soon and in little memory.

Time is the process's own on the processor, so that what else runs on the machine does not count.
"""

import gzip
import http.client
import json
import os
import sys
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.dashboard.running import Running, run_plimsoll, running_plimsoll

MIB = 1024 * 1024
MOST_SECONDS, MOST_BYTES = 1.0, 50 * MIB
TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
JSON, PROTOBUF, LINES = "application/json", "application/x-protobuf", "application/x-ndjson"
WAYS_IN = {
    "transcripts": ("/api/v1/ingest/transcripts?session=s", LINES),
    "hooks": ("/api/v1/ingest/hooks", JSON),
    "status": ("/api/v1/ingest/status", JSON),
    "OTLP logs": ("/v1/logs", JSON),
    "OTLP metrics": ("/v1/metrics", JSON),
    "OTLP traces": ("/v1/traces", JSON),
    "OTLP logs, protobuf": ("/v1/logs", PROTOBUF),
    "lines": ("/api/v1/ingest/lines", JSON),
    "items": ("/api/v1/ingest/items", JSON),
    "check": ("/api/v1/check", JSON),
    "compact": ("/api/v1/compact", JSON),
    "prompt": ("/api/v1/prompt/lint", JSON),
}
# Objects with a place for the bomb, where nobody looks and where somebody does.
_OTHER = (
    b'{"sessionId":"s","session_id":"s","type":"user","resourceLogs":[],"resourceMetrics":[],"resourceSpans":[],"x":%b}'
)
_EVENT = b'{"key":"session.id","value":{"stringValue":"s"}},{"key":"event.name","value":{"stringValue":"api_request"}}'
_SPAN = (
    b'{"key":"session.id","value":{"stringValue":"s"}},{"key":"gen_ai.operation.name","value":{"stringValue":"chat"}}'
)
PLACES = {
    "transcripts": (
        _OTHER,
        b'{"type":"assistant","uuid":"u","sessionId":"s","timestamp":"2026-05-01T10:00:00Z","message":{"id":"m",'
        b'"role":"assistant","model":"claude-opus-4-5","content":[],"usage":{"input_tokens":5,"output_tokens":%b}}}',
        b'{"type":"user","uuid":"v","sessionId":"s","message":{"role":"user","content":%b}}',
    ),
    "hooks": (_OTHER, b'{"session_id":"s","hook_event_name":"SessionStart","context_tokens":%b,"source":"resume"}'),
    "status": (
        b'{"session_id":"s","model":{"id":"claude-opus-4-5"},"x":%b}',
        b'{"session_id":"s","model":{"id":"claude-opus-4-5"},"context_window":{"context_window_size":%b}}',
    ),
    "OTLP logs": (
        _OTHER,
        b'{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"timeUnixNano":"1772000000000000000","attributes":['
        + _EVENT
        + b',{"key":"output_tokens","value":{"intValue":%b}}]}]}]}]}',
    ),
    "OTLP metrics": (
        _OTHER,
        b'{"resourceMetrics":[{"scopeMetrics":[{"metrics":[{"name":"claude_code.cost.usage","sum":{'
        b'"aggregationTemporality":1,"dataPoints":[{"asInt":%b,"attributes":[' + _EVENT + b"]}]}}]}]}]}",
    ),
    "OTLP traces": (
        _OTHER,
        b'{"resourceSpans":[{"scopeSpans":[{"spans":[{"name":"chat","startTimeUnixNano":%b,"attributes":['
        + _SPAN
        + b"]}]}]}]}",
    ),
    "OTLP logs, protobuf": (_OTHER,),
    "lines": (
        b'{"format":1,"sessions":[],"drops":{"a":%b}}',
        b'{"format":1,"sessions":[{"session":"s","lines":[[["u","prompt","user",null,"2026-05-01T10:00:00Z"],%b]]}]}',
        b'{"format":1,"sessions":[{"session":%b,"lines":[[["u","prompt","user",null,"2026-05-01T10:00:00Z"]]]}]}',
    ),
    "items": (
        b'{"items":[{"type":"message","session":"s","id":"m","at":"2026-05-01T10:00:00Z","role":"user",'
        b'"content":[{"type":"text","text":"a","x":%b}]}]}',
    ),
    "check": (
        b'{"model":"claude-opus-4-5","used_tokens":1,"usage":{"input_tokens":5,"x":%b}}',
        b'{"model":"claude-opus-4-5","messages":[{"role":"user","content":[{"type":"text","text":"a","x":%b}]}]}',
    ),
    "compact": (
        b'{"model":"claude-opus-4-5","messages":[{"role":"user","content":[{"type":"text","text":"a","x":%b}]}]}',
    ),
    "prompt": (b'{"request":{"model":"claude-opus-4-5","messages":[{"role":"user","content":"a"}],"x":%b}}',),
}
VALUES = {
    "depth 100,000": b"[" * 100_000 + b"]" * 100_000,
    "depth 60": b"[" * 60 + b"]" * 60,
    "number of a million digits": b"9" * 1_000_000,
    "number of 3,000 digits": b"9" * 3_000,
    "real number beyond all": b"1e400",
    "negative number": b"-9007199254740993",
    "NaN": b"NaN",
    "lone surrogate": b'"\\ud800"',
    "NUL": b'"a\\u0000b"',
    "a million keys": b"{" + b",".join(b'"k%d":1' % number for number in range(1_000_000)) + b"}",
}
MALFORMED_LINES = [b"{%d\n" % number for number in range(99_999)]
ACCEPTED = "as many malformed lines as are taken"
MOST_TIMES_PLAIN_DECODING = 5  # what ACCEPTED may take, as it is read to its end
MANY_LINES = {  # of transcripts, the one way in that takes lines
    "millions of short lines": (gzip.compress(b"x\n" * (31 * MIB), 1), "gzip"),
    "millions of malformed lines": (b"".join(b"{%d\n" % number for number in range(2_000_000)), ""),
    ACCEPTED: (b'{"type":"user","uuid":"l","sessionId":"s"}\n' + b"".join(MALFORMED_LINES), ""),
}
REFUSED = {
    *("gzip of 1 GiB", "gzip in gzip", "depth 100,000", "number of a million digits", "NaN", "a million keys"),
    *("millions of short lines", "millions of malformed lines"),
}
# The others break nothing: a real conversation may quote them (NUL is taken out, half a character replaced).


def inflate_to_gib() -> bytes:
    """A gzip of 1 GiB: a block of 1 MiB that can be repeated, a thousand times. Nobody gets as far as its checksum."""
    packer = zlib.compressobj(9, zlib.DEFLATED, zlib.MAX_WBITS | 16)
    head = packer.compress(b"") + packer.flush(zlib.Z_FULL_FLUSH)
    block = packer.compress(bytes(MIB)) + packer.flush(zlib.Z_FULL_FLUSH)
    return head + block * 1024


def make_bombs(way: str) -> Iterator[tuple[str, bytes, str]]:
    yield "gzip of 1 GiB", inflate_to_gib(), "gzip"
    yield "gzip in gzip", gzip.compress(gzip.compress(PLACES[way][0] % b"1")), "gzip"
    if way == "transcripts":
        for name, (body, encoding) in MANY_LINES.items():
            yield name, body, encoding
    for name, value in VALUES.items():
        for place in PLACES[way]:
            yield name, place % value, ""


def read_processor_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_PER_SECOND


def read_bytes(pid: int, name: str) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith(name)).split()[1]) * 1024


@contextmanager
def measured(pid: int) -> Iterator[list[float]]:
    """Seconds on the processor and bytes above where it stood, at the end."""
    Path(f"/proc/{pid}/clear_refs").write_text("5")  # its highest mark begins anew
    before_bytes, before_seconds = read_bytes(pid, "VmRSS"), read_processor_seconds(pid)
    found: list[float] = []
    yield found
    found += [read_processor_seconds(pid) - before_seconds, read_bytes(pid, "VmHWM") - before_bytes]


def measure_plain_decoding() -> float:
    """Seconds on the processor that the standard library takes to refuse the malformed lines."""
    began = time.thread_time()
    for line in MALFORMED_LINES:
        with suppress(ValueError):
            json.loads(line)
    return time.thread_time() - began


def send(running: Running, way: str, key: str, body: bytes, encoding: str) -> int:
    path, kind = WAYS_IN[way]
    headers = {"Authorization": f"Bearer {key}", "Content-Type": kind, "Content-Encoding": encoding or "identity"}
    connection = http.client.HTTPConnection("127.0.0.1", running.port, timeout=120)
    try:
        connection.request("POST", path, body, headers)
        return connection.getresponse().status
    finally:
        connection.close()


def test_bombs_are_refused_or_harmless_soon_and_in_little_memory(prepared: Path) -> None:
    made = run_plimsoll(prepared, "createowner", "ann", typed="harbour-chart-12\nharbour-chart-12\n")
    assert made.returncode == 0, made.stderr
    scopes = [part for scope in ("ingest", "read", "content", "compact") for part in ("--scope", scope)]
    key = run_plimsoll(prepared, "createkey", "--name", "bomber", *scopes).stdout.strip().splitlines()[-1]
    with running_plimsoll(prepared, "web") as running:
        for way in WAYS_IN:
            for place in PLACES[way]:
                send(running, way, key, place % b"1", "")  # what the first request loads is no bomb's doing
        too_much = [line for way in WAYS_IN for line in _attack(running, way, key)]
        read = {path: _read(running, key, path) for path in ("", "/1", "/1/calls", "/1/context", "/1/entries?text=a")}
    assert not too_much
    assert set(read.values()) == {200}, read


def _attack(running: Running, way: str, key: str) -> Iterator[str]:
    """What is more than allowed."""
    for name, body, encoding in make_bombs(way):
        with measured(running.process.pid) as found:
            status = send(running, way, key, body, encoding)
        seconds, grown_bytes = found
        line = f"{way}, {name}: {status}, {seconds:.2f} s, {grown_bytes / MIB:+.0f} MiB"
        sys.stdout.write(f"{line}\n")  # shown where the test fails, and with -s
        is_answered = 400 <= status < 500 or (name not in REFUSED and status < 300)
        allowed_seconds = MOST_TIMES_PLAIN_DECODING * measure_plain_decoding() if name == ACCEPTED else MOST_SECONDS
        if not is_answered or seconds > allowed_seconds or grown_bytes > MOST_BYTES:
            yield line


def _read(running: Running, key: str, path: str) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", running.port, timeout=120)
    try:
        connection.request("GET", f"/api/v1/sessions{path}", headers={"Authorization": f"Bearer {key}"})
        return connection.getresponse().status
    finally:
        connection.close()

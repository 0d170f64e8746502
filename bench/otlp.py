"""OTLP spans until they can be queried: Plimsoll (answered means committed) beside Phoenix, the same bytes in one run.

Run: python -m bench.otlp --phoenix PROGRAM [--spans 20000] [--phoenix-spans 1000]. PROGRAM is `phoenix` of an
environment of its own (uv pip install arize-phoenix==20.26.1); without it only Plimsoll is measured.
Each round twice: sessions that nobody knows, whole in one export, as a collector may send them; and sessions that
grow by a few spans with every export, as agents at work send them.
Not equal work: Phoenix keeps whole spans and adds up traces; Plimsoll keeps calls, judges the cache and draws gauges.
"""

import argparse
import http.client
import os
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.services import free_port

CHECKOUT = Path(__file__).resolve().parents[1]
GOAL_TIMES, FLOOR_TIMES = 100, 50
SPANS_PER_SESSION, SESSIONS_PER_EXPORT, CONNECTIONS = 50, 10, 2
SPANS_PER_GROWTH = 5  # of one session in one export
NEW, GROWING = "new", "growing"
START_SECONDS, PATIENCE_SECONDS = 240, 600
FIRST_AT = 1_790_000_000
DROPPED = ("PYTHONDONTWRITEBYTECODE", "DATABASE_URL", "PYTHONPATH")
PREPARE = """
import django
django.setup()
from dashboard.accounts.keys import create_key
from dashboard.accounts.local import ensure_local_owner
from dashboard.models import Scope, Team
owner = ensure_local_owner()
team = Team.objects.get(is_local=True)
print(create_key(team, owner, name="bench", scopes=[Scope.INGEST], expires_at=None, by=owner)[1])
"""


@dataclass(frozen=True)
class Result:
    name: str
    sessions: str
    spans: int
    accepted_seconds: float
    queryable_seconds: float

    @property
    def rate(self) -> float:
        return self.spans / self.queryable_seconds

    def describe(self) -> str:
        return (
            f"{self.name:<10}{self.sessions:<9}{self.spans:>8,} spans"
            f"  accepted {self.spans / self.accepted_seconds:>9,.0f}/s  queryable {self.rate:>9,.1f}/s"
        )


@dataclass(frozen=True)
class Peer:
    name: str
    port: int
    headers: dict[str, str]
    database: Path
    table: str

    def count(self) -> int:
        with closing(sqlite3.connect(f"file:{self.database}?mode=ro", uri=True, timeout=30)) as connection:
            (found,) = connection.execute(f"select count(*) from {self.table}").fetchone()
            return int(found)


def write_exports(spans: int, run: int) -> list[bytes]:
    """Each export has the calls of a few sessions, as a collector batches them."""
    sessions = max(1, spans // SPANS_PER_SESSION)
    return [_write_export(some, range(SPANS_PER_SESSION), run) for some in _list_groups(sessions)]


def write_growth(spans: int, run: int) -> tuple[list[bytes], list[bytes]]:
    """Exports that begin sessions, and those by which they grow; the same spans as `write_exports`."""
    groups = list(_list_groups(max(1, spans // SPANS_PER_SESSION)))
    steps = [range(first, first + SPANS_PER_GROWTH) for first in range(0, SPANS_PER_SESSION, SPANS_PER_GROWTH)]
    first, *others = [[_write_export(group, numbers, run) for group in groups] for numbers in steps]
    return first, [export for exports in others for export in exports]


def _list_groups(sessions: int) -> Iterator[range]:
    for first in range(0, sessions, SESSIONS_PER_EXPORT):
        yield range(first, min(first + SESSIONS_PER_EXPORT, sessions))


def _write_export(sessions: range, numbers: range, run: int) -> bytes:
    export = ExportTraceServiceRequest()
    scope = export.resource_spans.add().scope_spans.add()
    for session in sessions:
        for number in numbers:
            span = scope.spans.add(name="chat", kind=3)
            span.trace_id = (run << 64 | session + 1).to_bytes(16, "big")
            root = (run << 40) + session * SPANS_PER_SESSION + 1
            span.span_id = (root + number).to_bytes(8, "big")
            if number:
                span.parent_span_id = root.to_bytes(8, "big")
            started = (FIRST_AT + session * 7 + number * 30) * 10**9
            span.start_time_unix_nano, span.end_time_unix_nano = started, started + 4 * 10**9
            for name, value in _list_attributes(session, number, run):
                pair = span.attributes.add(key=name)
                if isinstance(value, int):
                    pair.value.int_value = value
                else:
                    pair.value.string_value = value
    data: bytes = export.SerializeToString()
    return data


def _list_attributes(session: int, number: int, run: int) -> Iterator[tuple[str, str | int]]:
    read, written, output = 20_000 + 900 * number, 900, 300
    yield "gen_ai.operation.name", "chat"
    yield "gen_ai.conversation.id", f"bench-{run}-{session}"
    yield "gen_ai.response.id", f"msg_{run}_{session}_{number}"
    yield "gen_ai.response.model", "claude-sonnet-4-5"
    yield "gen_ai.usage.input_tokens", read + written + 3
    yield "gen_ai.usage.cache_read.input_tokens", read
    yield "gen_ai.usage.cache_creation.input_tokens", written
    yield "gen_ai.usage.output_tokens", output
    # The same in the words that Phoenix reads.
    yield "openinference.span.kind", "LLM"
    yield "llm.model_name", "claude-sonnet-4-5"
    yield "llm.token_count.prompt", read + written + 3
    yield "llm.token_count.completion", output
    yield "session.id", f"bench-{run}-{session}"


def measure_new(peer: Peer, spans: int, run: int) -> Result:
    return measure(peer, write_exports(spans, run), spans, NEW)


def measure_growing(peer: Peer, spans: int, run: int) -> Result:
    """The sessions are there before: what is measured is what comes to them."""
    begun, growth = write_growth(spans, run)
    begun_spans = spans * SPANS_PER_GROWTH // SPANS_PER_SESSION
    measure(peer, begun, begun_spans, GROWING)
    return measure(peer, growth, spans - begun_spans, GROWING)


def measure(peer: Peer, exports: Sequence[bytes], spans: int, sessions: str) -> Result:
    before, began = peer.count(), time.perf_counter()
    with ThreadPoolExecutor(CONNECTIONS) as pool:
        list(pool.map(lambda part: _send(peer, exports[part::CONNECTIONS]), range(CONNECTIONS)))
    accepted = time.perf_counter() - began
    while peer.count() - before < spans:
        if time.perf_counter() - began > PATIENCE_SECONDS:
            sys.exit(f"{peer.name}: {peer.count() - before:,} of {spans:,} spans after {PATIENCE_SECONDS} s")
        time.sleep(0.02)
    if peer.count() - before != spans:
        sys.exit(f"{peer.name}: {peer.count() - before:,} rows of {spans:,} spans")
    return Result(peer.name, sessions, spans, accepted, time.perf_counter() - began)


def _send(peer: Peer, exports: Sequence[bytes]) -> None:
    with closing(http.client.HTTPConnection("127.0.0.1", peer.port, timeout=PATIENCE_SECONDS)) as connection:
        for body in exports:
            while True:
                connection.request("POST", "/v1/traces", body, peer.headers)
                answer = connection.getresponse()
                answer.read()
                if answer.status == 200:
                    break
                if answer.status not in (429, 503):
                    sys.exit(f"{peer.name} answers {answer.status}")
                time.sleep(float(answer.headers.get("Retry-After") or 1))


@contextmanager
def started(command: Sequence[str], environment: dict[str, str], url: str, folder: Path) -> Iterator[None]:
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, env=environment, cwd=folder, stdout=log, stderr=log)
    try:
        give_up_at = time.monotonic() + START_SECONDS
        while time.monotonic() < give_up_at and process.poll() is None:
            try:
                with urllib.request.urlopen(url, timeout=5):
                    break
            except (urllib.error.URLError, OSError):
                time.sleep(0.3)
        else:
            sys.exit(f"{command[0]} does not start: {(folder / 'log').read_text(errors='replace')[-400:]}")
        yield
    finally:
        process.terminate()
        process.wait(30)


@contextmanager
def started_plimsoll(folder: Path) -> Iterator[Peer]:
    folder.mkdir()
    port = free_port()
    kept = {name: value for name, value in os.environ.items() if name not in DROPPED}
    own = {"PLIMSOLL_DATA": str(folder / "data"), "PLIMSOLL_PORT": str(port), "PLIMSOLL_FOLLOW": "off"}
    environment = kept | own | {"PYTHONPATH": str(CHECKOUT), "DJANGO_SETTINGS_MODULE": "dashboard.settings"}
    command = [sys.executable, "-m", "dashboard.cli"]
    subprocess.run([*command, "migrate"], env=environment, cwd=folder, check=True, stdout=subprocess.DEVNULL)
    made = subprocess.run(
        [sys.executable, "-c", PREPARE], env=environment, cwd=folder, check=True, capture_output=True, text=True
    )
    headers = {"Content-Type": "application/x-protobuf", "Authorization": f"Bearer {made.stdout.split()[-1]}"}
    with started([*command, "web"], environment, f"http://127.0.0.1:{port}/health/live", folder):
        yield Peer("Plimsoll", port, headers, next((folder / "data").glob("*.sqlite3")), "dashboard_apicall")


@contextmanager
def started_phoenix(program: str, folder: Path) -> Iterator[Peer]:
    data = folder / "data"
    data.mkdir(parents=True)
    port = free_port()
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "DJANGO", "PHOENIX"))}
    told = {"WORKING_DIR": data, "PORT": port, "GRPC_PORT": free_port(), "TELEMETRY_ENABLED": "false"}
    environment = kept | {f"PHOENIX_{name}": str(value) for name, value in told.items()}
    headers = {"Content-Type": "application/x-protobuf"}
    with started([program, "serve"], environment, f"http://127.0.0.1:{port}/healthz", folder):
        yield Peer("Phoenix", port, headers, data / "phoenix.db", "spans")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--spans", type=int, default=20_000)
    parser.add_argument("--phoenix", help="the program `phoenix`")
    parser.add_argument("--phoenix-spans", type=int, default=1_000)
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args()
    results: list[Result] = []
    with tempfile.TemporaryDirectory() as scratch, ExitStack() as stack:
        peers = [(stack.enter_context(started_plimsoll(Path(scratch) / "plimsoll")), asked.spans)]
        if asked.phoenix:
            phoenix = started_phoenix(asked.phoenix, Path(scratch) / "phoenix")
            peers.append((stack.enter_context(phoenix), asked.phoenix_spans))
        # Interleaved: what else the machine does hits both alike.
        for run in range(1, asked.rounds + 1):
            for peer, spans in peers:
                for result in (measure_new(peer, spans, 2 * run), measure_growing(peer, spans, 2 * run + 1)):
                    results.append(result)
                    print(result.describe(), flush=True)
    for sessions in (NEW, GROWING):
        compare(sessions, [result for result in results if result.sessions == sessions])


def compare(sessions: str, results: Sequence[Result]) -> None:
    rates = {
        name: statistics.median(result.rate for result in results if result.name == name)
        for name in {result.name for result in results}
    }
    print(f"Plimsoll, {sessions} sessions: {rates['Plimsoll']:,.0f} spans/s queryable")
    if "Phoenix" in rates:
        times = rates["Plimsoll"] / rates["Phoenix"]
        verdict = "ok" if times >= GOAL_TIMES else "floor held" if times >= FLOOR_TIMES else "MISSED"
        print(f"  over Phoenix: {times:.0f}x  goal {GOAL_TIMES} [{FLOOR_TIMES}]  {verdict}")


if __name__ == "__main__":
    main()

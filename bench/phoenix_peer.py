"""Phoenix (arize-phoenix) with 100,000 spans in its SQLite, served from an environment of its own in a scratch folder.

The spans are written into its tables directly: through its receiver they would take twenty minutes. Each has a model,
tokens, a session and 200 letters of input and output.
"""

import json
import os
import random
import shutil
import sqlite3
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from tests.services import free_port

REQUIREMENT = "arize-phoenix==20.26.1"
SPANS, SPANS_PER_TRACE = 100_000, 10
START_SECONDS = 240
LETTERS = 200
FIRST_AT = 1_760_000_000
REST_PATH = "/v1/projects/default/spans?limit=50"
# What its own list of spans shows.
QUERY = """
query { node(id: "UHJvamVjdDox") { ... on Project { spans(first: 50, sort: {col: startTime, dir: desc}) {
  edges { span: node {
    id spanId name spanKind startTime latencyMs statusCode tokenCountTotal cumulativeTokenCountTotal trace { traceId }
    input { value: truncatedValue } output { value: truncatedValue } spanAnnotations { name label score }
  } } pageInfo { endCursor hasNextPage } } } } }
"""


class PhoenixMissing(Exception):
    """It does not install or does not start; the message says why."""


@dataclass(frozen=True)
class Peer:
    port: int
    pid: int
    graphql_body: bytes = json.dumps({"query": QUERY}).encode()


@contextmanager
def started_phoenix(folder: Path) -> Iterator[Peer]:
    """Installed, started, filled."""
    programs = _install(folder / "environment")
    port = free_port()
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "DJANGO", "PHOENIX"))}
    data = folder / "data"
    data.mkdir(parents=True)
    told = {"WORKING_DIR": data, "PORT": port, "GRPC_PORT": free_port(), "TELEMETRY_ENABLED": "false"}
    environment = kept | {f"PHOENIX_{name}": str(value) for name, value in told.items()}
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [str(programs / "phoenix"), "serve"], env=environment, stdout=log, stderr=log, start_new_session=True
        )
    try:
        _await(process, f"http://127.0.0.1:{port}/healthz", folder / "log")
        _fill(data / "phoenix.db")
        yield Peer(port, process.pid)
    finally:
        process.terminate()
        process.wait(30)


def _install(environment: Path) -> Path:
    """The folder of its programs, all compiled: some machines keep Python from writing bytecode."""
    uv = shutil.which("uv", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}")
    python = environment / "bin" / "python"
    install = [uv, "pip", "install", "--python", python] if uv else [python, "-m", "pip", "install"]
    for command in (
        [sys.executable, "-m", "venv", *(["--without-pip"] if uv else []), environment],
        [*install, "--quiet", REQUIREMENT],
        [python, "-m", "compileall", "-q", environment / "lib"],
    ):
        done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)
        # A package may ship a template that is no Python: compileall says so and goes on.
        if done.returncode and "compileall" not in command:
            raise PhoenixMissing(f"{REQUIREMENT} does not install here: {done.stderr.strip()[-300:]}")
    return environment / "bin"


def _await(process: "subprocess.Popen[bytes]", url: str, log: Path) -> None:
    give_up_at = time.monotonic() + START_SECONDS
    while time.monotonic() < give_up_at and process.poll() is None:
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.5)
    raise PhoenixMissing(f"Phoenix does not start here: {log.read_text(errors='replace')[-300:]}")


def _fill(database: Path) -> None:
    connection = sqlite3.connect(database, timeout=30)
    traces = (
        (number, f"{number:032x}", _say_at(FIRST_AT + 60 * number), _say_at(FIRST_AT + 60 * number + 50))
        for number in range(1, SPANS // SPANS_PER_TRACE + 1)
    )
    with connection:
        connection.executemany(
            "INSERT INTO traces (id, project_rowid, trace_id, start_time, end_time) VALUES (?, 1, ?, ?, ?)", traces
        )
        connection.executemany(
            "INSERT INTO spans (id, trace_rowid, span_id, parent_id, name, span_kind, start_time, end_time, attributes,"
            " events, status_code, status_message, cumulative_error_count, cumulative_llm_token_count_prompt,"
            " cumulative_llm_token_count_completion, llm_token_count_prompt, llm_token_count_completion)"
            " VALUES (?, ?, ?, ?, 'messages', 'LLM', ?, ?, ?, '[]', 'OK', '', 0, ?, ?, ?, ?)",
            _make_spans(),
        )
    connection.close()


def _make_spans() -> Iterator[tuple[object, ...]]:
    chance = random.Random(8)
    for number in range(1, SPANS + 1):
        trace = (number - 1) // SPANS_PER_TRACE + 1
        root = (trace - 1) * SPANS_PER_TRACE + 1
        started_at = FIRST_AT + 60 * trace + 5 * (number - root)
        prompt, completion = chance.randrange(1000, 100_000), chance.randrange(10, 2000)
        attributes = {
            "openinference": {"span": {"kind": "LLM"}},
            "llm": {"model_name": "claude-sonnet-4-5", "token_count": {"prompt": prompt, "completion": completion}},
            "input": {"value": "x" * LETTERS},
            "output": {"value": "y" * LETTERS},
            "session": {"id": f"session-{trace}"},
        }
        parent = None if number == root else f"{root:016x}"
        times = (_say_at(started_at), _say_at(started_at + 4))
        tokens = (prompt, completion, prompt, completion)
        yield (number, trace, f"{number:016x}", parent, *times, json.dumps(attributes), *tokens)


def _say_at(seconds: int) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S.%f}"

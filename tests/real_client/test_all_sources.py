"""One session of the real client with telemetry, hooks, status line and transcript, all of them sent to one Plimsoll:
joined into one session whose totals are the API's own. Figures: -s."""

import json
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from compaction.timeline.observations import LineKind
from dashboard.ingest.segments import read_segment_lines
from tests.dashboard.running import Running, run_plimsoll, running_plimsoll, wait_until
from tests.real_client.client import Client, make_client
from tests.real_client.conftest import CLIENT
from tests.real_client.scripted_api import ScriptedApi
from tests.real_client.terminal import opened_terminal

KEY_OF_API = "sk-ant-test-0123456789abcdefghij"
COUNTED = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "output_tokens")
SOURCES = ["hooks", "otlp", "push", "statusline"]


class CountingApi(ScriptedApi):
    """Keeps what it says it took."""

    def __init__(self) -> None:
        super().__init__()
        self.usages: list[dict[str, Any]] = []

    def answer(self, body: dict[str, Any]) -> dict[str, Any]:
        message = super().answer(body)
        self.usages.append(message["usage"])
        return message


def connect_client(folder: Path, running: Running, client: Client, headers: str) -> str:
    """As a developer does; returns the key. `headers` replaces what is written for telemetry, with KEY for the key."""
    run_plimsoll(folder, "signinlink")  # makes the local team
    made = run_plimsoll(folder, "createkey", "--name", "laptop", "--scope", "ingest")
    assert made.returncode == 0, made.stderr
    key = made.stdout.strip().splitlines()[-1]
    own = {"HOME": str(client.home), "PLIMSOLL_CLIENT_FOLDER": str(client.home / "plimsoll")}
    url = f"http://127.0.0.1:{running.port}"
    done = run_plimsoll(folder, "connect", "claude-code", "--write", "--url", url, "--key", key, **own)
    assert done.returncode == 0, done.stderr
    path = client.home / ".claude" / "settings.json"
    settings = json.loads(path.read_text())
    if headers:
        settings["env"]["OTEL_EXPORTER_OTLP_HEADERS"] = headers.replace("KEY", key)
    path.write_text(json.dumps(settings))
    known = {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}
    state = {
        "hasCompletedOnboarding": True,
        "theme": "dark",
        "customApiKeyResponses": {"approved": [KEY_OF_API[-20:]], "rejected": []},
        "projects": {str(client.work): known},
    }
    (client.home / ".claude.json").write_text(json.dumps(state))
    return key


def hold_session(client: Client, api: CountingApi) -> str:
    """Two prompts in a terminal, the first with a tool, a compaction and one more; returns the session's id."""
    session_id = str(uuid4())
    (client.work / "depth.txt").write_text("Twelve metres.\n" * 200)
    use = {"type": "tool_use", "id": "toolu_1", "name": "Read", "input": {"file_path": str(client.work / "depth.txt")}}
    words = ("Twelve.", "Aye.", "<analysis>-</analysis><summary>It is twelve metres deep.</summary>", "Going on.")
    api.script.extend([[use], *([{"type": "text", "text": each}] for each in words)])
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(client.home),
        "TERM": "xterm-256color",
        "ANTHROPIC_API_KEY": KEY_OF_API,
        "ANTHROPIC_BASE_URL": api.url,
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
        "OTEL_METRIC_EXPORT_INTERVAL": "1000",
        "OTEL_LOGS_EXPORT_INTERVAL": "1000",
        "OTEL_TRACES_EXPORTER": "otlp",
        "OTEL_TRACES_EXPORT_INTERVAL": "1000",
        "CLAUDE_CODE_ENHANCED_TELEMETRY_BETA": "1",
        "PLIMSOLL_CLIENT_FOLDER": str(client.home / "plimsoll"),
    }
    command = [CLIENT, "--session-id", session_id, "--model", "claude-opus-5-5"]
    with opened_terminal(command, client.work, environment) as terminal:
        terminal.watch(seconds=8.0)
        terminal.type("How deep is it?")
        terminal.wait_until(lambda: len(api.script) == 3, what="the first answer")
        terminal.watch(seconds=5.0)
        terminal.type("Go on")
        terminal.wait_until(lambda: len(api.script) == 2, what="the second answer")
        terminal.watch(seconds=5.0)
        terminal.type("/compact")
        terminal.wait_until(lambda: len(api.script) == 1, what="the compaction")
        terminal.watch(seconds=6.0)
        terminal.type("And on")
        terminal.wait_until(lambda: not api.script, what="the answer after it")
        terminal.watch(seconds=6.0)  # status line and telemetry come behind
        terminal.type("/exit")
        terminal.wait_until(terminal.has_ended, what="the end", seconds=30)
    return session_id


def push_transcripts(client: Client, running: Running, key: str) -> None:
    environment = os.environ | {"PLIMSOLL_KEY": key, "PLIMSOLL_CLIENT_FOLDER": str(client.home / "plimsoll")}
    url = f"http://127.0.0.1:{running.port}"
    command = ["watch", "--server", url, "--root", str(client.projects), "--once"]
    done = subprocess.run(
        [sys.executable, "-P", "-m", "dashboard.console", *command],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("headers", ["", "Authorization=Bearer KEY", "Authorization=Bearer%20KEY"])
def test_all_sources_join_into_one_session_with_the_totals_of_the_api(prepared: Path, headers: str) -> None:
    client = make_client(prepared)
    with running_plimsoll(prepared, "web") as running, CountingApi() as api:
        key = connect_client(prepared, running, client, headers)
        session_id = hold_session(client, api)
        push_transcripts(client, running, key)
        database = prepared / "data" / "plimsoll.sqlite3"

        def read(statement: str) -> list[tuple[Any, ...]]:
            with closing(sqlite3.connect(database, timeout=20)) as connection:
                return connection.execute(statement).fetchall()

        def list_sources() -> list[str]:
            return sorted(json.loads(read("SELECT sources FROM dashboard_agentsession")[0][0]))

        wait_until(lambda: list_sources() == SOURCES, seconds=20, what=f"all sources, {list_sources()}")
        facts = [
            line.fact
            for packed, content in read("SELECT facts, content FROM dashboard_entrysegment")
            for line in read_segment_lines(packed, content)
        ]
        found = read("SELECT external_id, call_count FROM dashboard_agentsession")
        sums = "sum(input_tokens), sum(read_tokens), sum(write_5m_tokens + write_1h_tokens), sum(output_tokens)"
        totals = read(f"SELECT {sums} FROM dashboard_apicall")[0]
        said = tuple(sum(usage[name] for usage in api.usages) for name in COUNTED)
        sys.stdout.write(f"{headers or 'as connect writes it'}: {list_sources()}, {found}, {totals}, API {said}\n")
        assert found == [(session_id, len(api.usages))]
        assert totals == said
        # Boundary, event and hook of the compaction came, and are one.
        assert [fact.type for fact in facts if fact.kind is LineKind.BOUNDARY] == ["system"]
        for name in ("otlp:compaction:", "hook:compaction:", "otlp:span-of-claude-code:"):
            assert any(fact.id.startswith(name) for fact in facts), name
        columns = "kind, trigger, before_tokens > 0, duration_seconds > 0, summary_uuid != ''"
        compactions = read(f"SELECT {columns} FROM dashboard_observedcompaction")
        sys.stdout.write(f"compactions: {compactions}\n")
        assert compactions == [("full", "manual", 1, 1, 1)]

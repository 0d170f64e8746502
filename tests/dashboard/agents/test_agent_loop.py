"""The agent loop of docs/agent-loop.md, as it stands there, through a conversation of a million tokens."""

import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from pytest_django import Settings
from pytest_django.live_server_helper import LiveServer

from dashboard.client.compaction_client import CompactionClient, PlimsollAway, PlimsollRefused
from dashboard.jobs.perform import perform_due
from dashboard.models import CompactionRun, Scope, TeamPolicy
from tests.builders import make_key, make_team, make_user
from tests.dashboard.runs.world import give_key, make_harbour
from tests.fakes.messages_api import MessagesApi
from tests.fakes.prompt_cache import count_prompt_tokens
from tests.fakes.replies import Reply

pytestmark = pytest.mark.django_db(transaction=True)

DOCUMENT = Path(__file__).parents[3] / "docs" / "agent-loop.md"
WINDOW_TOKENS = 200_000
RESULT = "The basin is deep and the wall is old. " * 1_700  # about 16,600 tokens
THOUGHT = "I looked at the basin and will go on to the next one. " * 300  # about 4,000 tokens
TURNS = 60


def read_loop() -> str:
    found = re.search(r"```python\n(.*?)```", DOCUMENT.read_text(), re.DOTALL)
    assert found is not None
    return found[1]


def test_loop_of_the_documentation_never_overflows(
    live_server: LiveServer, messages_api: MessagesApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    team = make_team("Harbour", owner="alice")
    monkeypatch.setenv("PLIMSOLL_URL", live_server.url)
    monkeypatch.setenv("PLIMSOLL_KEY", make_key(team, make_user("alice"), Scope.COMPACT)[1])
    monkeypatch.setenv("ANTHROPIC_BASE_URL", messages_api.url)
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-test")
    messages_api.window_tokens = WINDOW_TOKENS
    look = Reply(text=THOUGHT, calls_tool=True, stop_reason="tool_use")
    messages_api.script(*[look] * TURNS, Reply(text="All basins are deep."))
    space: dict[str, Any] = {}
    exec(compile(read_loop(), str(DOCUMENT), "exec"), space)
    seen_tokens = 0

    def use_tool(name: str, _input: object) -> str:
        nonlocal seen_tokens
        seen_tokens += len(RESULT) // 4
        return f"{name} {seen_tokens}: {RESULT}"

    tools = [{"name": "Read", "description": "Reads.", "input_schema": {"type": "object"}}]
    messages = space["run_agent"]("Never touch the harbour wall. Look at every basin.", tools, use_tool)

    sizes = [count_prompt_tokens(request.body) for request in messages_api.messages]
    falls = [after < before for before, after in pairwise(sizes)]
    assert seen_tokens + TURNS * len(THOUGHT) // 4 > 1_000_000
    assert len(sizes) == TURNS + 1
    assert max(sizes) < WINDOW_TOKENS
    assert sum(falls) >= 3
    assert sum(len(request.body["messages"]) == 1 for request in messages_api.messages[1:]) == 2  # summaries
    assert "All basins are deep." in str(messages[-1])
    assert "Never touch the harbour wall." in str(messages)


def test_client_waits_for_the_run_of_a_model(
    live_server: LiveServer, messages_api: MessagesApi, settings: Settings
) -> None:
    settings.ANTHROPIC_BASE_URL = messages_api.url
    team = make_harbour()
    give_key(team)
    TeamPolicy.objects.create(team=team, version=1, stores_content=True)
    key = make_key(team, make_user("alice"), Scope.COMPACT, Scope.READ, Scope.CONTENT)[1]
    client = CompactionClient(live_server.url, key, sleep=lambda _: perform_due())
    messages = [
        {"role": "user", "content": "Look at the basins. Never touch the wall."},
        {"role": "assistant", "content": "The first basin is deep."},
    ]
    done = client.compact(messages, model="claude-opus-4-5", kind="full", summarizer="claude", session="my-agent-1")
    run = CompactionRun.objects.get()
    assert (run.session.external_id, run.summarizer, run.source) == ("my-agent-1", "claude", "api")
    assert "Primary Request and Intent" in str(done.messages)
    assert done.decision == "compacted in full"


def test_client_tells_refusals_from_silence(live_server: LiveServer) -> None:
    team = make_team("Quay", owner="carol")
    key = make_key(team, make_user("carol"), Scope.COMPACT)[1]
    client = CompactionClient(live_server.url, key)
    with pytest.raises(PlimsollRefused, match="stores no content") as refused:
        client.compact([{"role": "user", "content": "hi"}], model="m", kind="full", summarizer="claude")
    assert (refused.value.status, refused.value.code) == (409, "no_content")
    with pytest.raises(PlimsollRefused) as refused:
        CompactionClient(live_server.url, "plk_wrong").check(model="m", used_tokens=1)
    assert refused.value.status == 401
    with pytest.raises(PlimsollAway):
        CompactionClient("http://127.0.0.1:9", key, timeout_seconds=2).check(model="m", used_tokens=1)
    assert client.lint({"messages": [{"role": "user", "content": "hi"}]})[0]["rule"] == "no markers"

"""The agent of docs/any-agent.md, as it stands there, before a fake of the Messages API and a live Plimsoll."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from pytest_django.live_server_helper import LiveServer

from dashboard.models import AgentSession, Scope, TeamPolicy
from tests.builders import make_key, make_team, make_user
from tests.fakes.messages_api import MessagesApi
from tests.fakes.replies import Reply
from tests.visitors import sign_in

pytestmark = pytest.mark.django_db(transaction=True)

DOCUMENT = Path(__file__).parents[3] / "docs" / "any-agent.md"
RULES = "Never touch the harbour wall, and sound every basin twice before you go on to the next. " * 400
TURNS = 5


@pytest.fixture
def agent(messages_api: MessagesApi, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    """What the document's code defines."""
    monkeypatch.setenv("ANTHROPIC_BASE_URL", messages_api.url)
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-test")
    found = re.search(r"```python\n(.*?)```", DOCUMENT.read_text(), re.DOTALL)
    assert found is not None
    space: dict[str, Any] = {}
    exec(compile(found[1], str(DOCUMENT), "exec"), space)
    yield space
    space["api"].close()


def test_agent_of_the_documentation_stands_on_the_pages(
    live_server: LiveServer,
    messages_api: MessagesApi,
    agent: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    team = make_team("Harbour", owner="alice")
    TeamPolicy.objects.create(team=team, version=1, stores_content=True)
    monkeypatch.setenv("PLIMSOLL_URL", live_server.url)
    monkeypatch.setenv("PLIMSOLL_KEY", make_key(team, make_user("alice"), Scope.INGEST)[1])
    look = Reply(text="I look.", calls_tool=True, stop_reason="tool_use")
    messages_api.script(*[look] * TURNS, Reply(text="All basins are deep."))
    agent["SYSTEM"][0]["text"] = RULES

    def use_tool(_name: str, _input: object) -> str:
        if len(messages_api.messages) == 4:
            agent["SYSTEM"][0]["text"] = f"It is a new day. {RULES}"  # what breaks caches in real agents
        return "The basin is deep. " * 100

    tools = [{"name": "sound", "description": "Sounds a basin.", "input_schema": {"type": "object"}}]
    name = agent["run_agent"]("Sound every basin.", tools, use_tool)

    assert capsys.readouterr().out == ""  # nothing was refused
    session = AgentSession.objects.get(external_id=name)
    assert (session.developer, session.sources, session.title) == ("alice", ["api"], "Sound every basin.")
    assert (session.call_count, session.turn_count, session.entry_count) == (TURNS + 1, 1, 2 * (TURNS + 1))
    assert session.ended_at is not None
    assert session.model.startswith("claude-opus-4-5")
    assert session.context_tokens > len(RULES) // 5
    (found,) = session.breaks.filter(kind="break")
    assert (found.cause, found.grade) == ("system_changed", "request")
    assert found.lost_tokens > 5_000
    visitor = sign_in("alice")
    for page in ("", "timeline/", "breaks/", "context/"):
        _ask_page(visitor, f"/sessions/{session.pk}/{page}")
    assert "Sound every basin." in _ask_page(visitor, f"/sessions/{session.pk}/")


def _ask_page(client: Client, path: str) -> str:
    answer = client.get(path)
    assert answer.status_code == 200, path
    return answer.content.decode()


def test_agent_goes_on_while_plimsoll_is_away(
    agent: dict[str, Any], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PLIMSOLL_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("PLIMSOLL_KEY", "plk_none")
    agent["run_agent"]("Sound every basin.", [], lambda *_: "")
    assert capsys.readouterr().out.count("not reported") == 3

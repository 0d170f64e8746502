"""The agent loop of docs/agent-loop.md never overflows: not in a million tokens, whatever the team has switched off."""

from itertools import pairwise

import pytest
from pytest_django import Settings
from pytest_django.live_server_helper import LiveServer

from dashboard.client.compaction_client import CompactionClient, PlimsollAway, PlimsollRefused
from dashboard.jobs.perform import perform_due
from dashboard.models import CompactionRun, Scope, Team, TeamPolicy
from tests.builders import make_key, make_team, make_user
from tests.dashboard.agents.documented_loop import Walk
from tests.dashboard.runs.world import give_key, make_harbour
from tests.fakes.messages_api import MessagesApi

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.any_database]

WINDOW_TOKENS = 200_000


def make_agent_key(team: Team) -> str:
    return make_key(team, make_user("alice"), Scope.COMPACT)[1]


def test_loop_of_the_documentation_never_overflows(
    live_server: LiveServer, messages_api: MessagesApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    messages_api.window_tokens = WINDOW_TOKENS
    walk = Walk(messages_api, live_server.url, make_agent_key(make_team("Harbour", owner="alice")))
    messages = walk.walk(monkeypatch)
    falls = [after < before for before, after in pairwise(walk.sizes)]
    assert walk.seen_tokens > 1_000_000
    assert len(walk.sizes) == walk.turns + 1
    assert max(walk.sizes) < WINDOW_TOKENS
    assert sum(falls) >= 3
    assert sum(len(request.body["messages"]) == 1 for request in messages_api.messages[1:]) == 2  # summaries
    assert "All basins are deep." in str(messages[-1])
    assert "Never touch the harbour wall." in str(messages)


@pytest.mark.parametrize(
    "switches",
    [
        {"is_auto_enabled": False},
        {"is_auto_enabled": False, "is_micro_enabled": False},
        {"is_auto_enabled": False, "is_reactive_enabled": False},
        {"models": {"claude-opus-4-5": {"is_auto_enabled": False}}},
    ],
)
def test_loop_compacts_where_the_team_lets_nothing_compact_by_itself(
    live_server: LiveServer, messages_api: MessagesApi, monkeypatch: pytest.MonkeyPatch, switches: dict[str, object]
) -> None:
    team = make_team("Harbour", owner="alice")
    TeamPolicy.objects.create(team=team, version=1, thresholds=switches)
    messages_api.window_tokens = WINDOW_TOKENS
    walk = Walk(messages_api, live_server.url, make_agent_key(team), turns=24)
    messages = walk.walk(monkeypatch)
    assert len(walk.sizes) == walk.turns + 1
    assert max(walk.sizes) < WINDOW_TOKENS
    assert any(len(request.body["messages"]) == 1 for request in messages_api.messages[1:])  # a summary
    assert "Never touch the harbour wall." in str(messages)


def test_loop_goes_on_when_the_api_finds_a_prompt_too_long_after_all(
    live_server: LiveServer, messages_api: MessagesApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A model whose window nobody knows: no line is ever crossed."""
    messages_api.window_tokens = WINDOW_TOKENS
    key = make_agent_key(make_team("Harbour", owner="alice"))
    walk = Walk(messages_api, live_server.url, key, turns=14, model="harbour-own-1")
    messages = walk.walk(monkeypatch)
    refused = [size for size in walk.sizes if size > WINDOW_TOKENS]
    assert len(refused) == 1
    assert len(walk.sizes) == walk.turns + 1 + len(refused)
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
    assert (run.session.external_id, run.summarizer, run.source) == ("my-agent-1", "claude", "messages")
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
    assert client.lint({"messages": [{"role": "user", "content": "hi"}]})[0]["rule"] == "no cache breakpoint"

"""Calls that a client makes beside its conversation: recorded and paid for, and otherwise as if they had not been."""

from typing import Any

import pytest

from compaction.timeline.observations import LineKind
from dashboard.ingest.observed import Rules
from dashboard.models import AgentSession, ApiCall, CacheBreak, Team
from dashboard.proxy.reports import Reporter
from dashboard.proxy.side_calls import ToolUsers, list_own_tools
from dashboard.proxy.wire import Exchange
from tests.builders import make_team
from tests.dashboard.proxy.talking import MCP, READ, SESSION, Client, make_usage, stream_answer
from tests.dashboard.proxy.test_recorder import Table, talk_for

RULES = Rules(keeps_content=False, digest_key=b"k" * 32)
SEARCH: dict[str, Any] = {"type": "web_search_20250305", "name": "web_search", "max_uses": 8}
BASH: dict[str, Any] = {"type": "bash_20250124", "name": "bash"}


def find_source(reporter: Reporter, exchange: Exchange) -> str | None:
    report = reporter.read(exchange, RULES)
    assert report is not None
    return next(line.fact.request.query_source for line in report.lines if line.fact.request is not None)


def test_tools_that_the_api_runs_are_not_the_clients_own() -> None:
    assert list_own_tools([READ, SEARCH, MCP, BASH, "odd", {"type": "mcp_toolset"}]) == ["Read", MCP["name"], "bash"]


@pytest.mark.parametrize("tools", [[], [SEARCH]])
def test_what_a_thread_with_tools_asks_without_them_is_a_side_call(tools: list[dict[str, Any]]) -> None:
    reporter = Reporter()
    assert find_source(reporter, Client().call("Hello", "msg_1")) is None
    assert find_source(reporter, Client(tools=tools, system="Find a title.").call("Hello", "msg_2")) == "side"
    assert find_source(reporter, Client(tools=[MCP]).call("Go on", "msg_3")) is None


BILLING = {"type": "text", "text": "x-anthropic-billing-header: cc_version=2.1.325.855; cc_entrypoint=cli;"}


@pytest.mark.parametrize("field", ["thinking", "context_management", None])
def test_claude_code_asks_for_a_title_before_it_begins(field: str | None) -> None:
    """Without tools too, each step of its conversation has fields that its side calls lack."""
    extra: dict[str, Any] = {"system": [BILLING], **({field: {}} if field else {})}
    expected = None if field else "side"
    assert find_source(Reporter(), Client(tools=[], extra=extra).call("A title?", "msg_1")) == expected


def test_threads_and_sessions_and_teams_are_told_apart() -> None:
    reporter = Reporter()
    find_source(reporter, Client().call("Hello", "msg_1"))
    agent = {"x-claude-code-session-id": SESSION, "x-claude-code-agent-id": "a1"}
    other = {"x-claude-code-session-id": "another"}
    others: list[dict[str, Any]] = [{"headers": agent}, {"headers": other}, {"team_pk": 2}]
    assert [find_source(reporter, Client(tools=[], **each).call("Hello", "msg_2")) for each in others] == [None] * 3


@pytest.mark.parametrize("headers", [{"x-claude-code-session-id": SESSION}, {}])
def test_an_agent_that_never_has_tools_simply_talks(headers: dict[str, str]) -> None:
    reporter, client = Reporter(), Client(headers=headers, tools=[])
    assert [find_source(reporter, client.call("More", f"msg_{number}")) for number in range(3)] == [None] * 3


def test_a_client_that_names_no_session_has_no_side_calls() -> None:
    reporter = Reporter()
    find_source(reporter, Client(headers={}).call("Hello", "msg_1"))
    assert find_source(reporter, Client(headers={}, tools=[]).call("Hello", "msg_2")) is None


def test_a_side_call_does_not_make_the_next_clearing_news() -> None:
    reporter, client = Reporter(), Client()
    edit = {"type": "clear_tool_uses_20250919", "cleared_input_tokens": 800}

    def clear(message_id: str) -> list[LineKind]:
        events = stream_answer(message_id, make_usage(read=9), context_management={"applied_edits": [edit]})
        report = reporter.read(client.call("More", message_id, events=events), RULES)
        assert report is not None
        return [line.fact.kind for line in report.lines]

    assert LineKind.MICRO in clear("msg_1")
    find_source(reporter, Client(tools=[]).call("A title?", "msg_2"))
    assert LineKind.MICRO not in clear("msg_3")


def test_the_memory_of_threads_is_bounded() -> None:
    users = ToolUsers(most_threads=10)
    for number in range(30):
        users.is_beside((1, 7, f"s{number}", ""), {"tools": [READ]})
    assert [users.is_beside((1, 7, name, ""), {"tools": []}) for name in ("s0", "s29")] == [False, True]


@pytest.mark.django_db
def test_a_side_call_is_paid_for_and_neither_judged_nor_the_size_of_the_context() -> None:
    team: Team = make_team("Harbour", owner="ann", member="ben")
    client = talk_for(team)
    side = talk_for(team, tools=[], system="Find a title.", model="claude-opus-5-5")
    table = Table().write(client.call("One", "msg_1", usage=make_usage(written=50_000)))
    side.now = client.now
    table.write(side.call("A title?", "msg_t", usage=make_usage(plain=900)))
    assert AgentSession.objects.get().context_tokens == 50_043
    client.now += 20
    table.write(client.call("Two", "msg_2", usage=make_usage(read=50_000, written=900)))
    session, call = AgentSession.objects.get(), ApiCall.objects.get(call_id="msg_t")
    assert (call.query_source, call.input_tokens) == ("side", 900)
    assert call.cost_usd
    assert (session.call_count, session.turn_count) == (3, 2)
    assert not CacheBreak.objects.exists()


@pytest.mark.django_db
def test_a_side_call_with_a_cache_of_its_own_is_no_baseline() -> None:
    team: Team = make_team("Harbour", owner="ann", member="ben")
    client = talk_for(team)
    side = talk_for(team, tools=[SEARCH], system="You search.")
    first = client.call("One", "msg_1", usage=make_usage(written=50_000))
    side.now = client.now
    beside = side.call("Search", "msg_s", usage=make_usage(read=90_000))
    client.now += 40
    Table().write(first, beside, client.call("Two", "msg_2", usage=make_usage(read=50_000, written=900)))
    assert not CacheBreak.objects.exists()

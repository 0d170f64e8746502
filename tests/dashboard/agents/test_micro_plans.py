"""Plans for micro-compaction that an agent carries out: cache edits with their state, and the API's own clearing."""

from typing import Any

import pytest
from django.test import Client

from dashboard.models import AgentSession, ObservedCompaction, Team
from tests.builders import make_session
from tests.dashboard.runs.world import make_harbour, record_session, write_talk
from tests.visitors import read, sign_in

pytestmark = pytest.mark.django_db(transaction=True)
PLAN = "/api/v1/prompt/micro-plan"
MARK = {"cache_control": {"type": "ephemeral"}}


@pytest.fixture
def team() -> Team:
    return make_harbour()


def talk(results: int) -> list[dict[str, Any]]:
    """An agent that reads one file after the other; its last message carries the cache breakpoint."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Read them all."}]
    for number in range(results):
        use = {"type": "tool_use", "id": f"toolu_{number}", "name": "Read", "input": {"path": f"{number}.py"}}
        result = {"type": "tool_result", "tool_use_id": f"toolu_{number}", "content": "x = 1\n" * 400}
        messages += [{"role": "assistant", "content": [use]}, {"role": "user", "content": [result]}]
    messages[-1]["content"][-1] |= MARK
    return messages


def plan(client: Client, status: int = 200, **body: object) -> Any:
    answer = client.post(PLAN, body, content_type="application/json")
    assert answer.status_code == status, answer.content
    return answer.json()


def find_edits(messages: list[dict[str, Any]]) -> list[tuple[int, list[str]]]:
    return [
        (place, [edit["cache_reference"] for edit in block["edits"]])
        for place, message in enumerate(messages)
        for block in (message["content"] if isinstance(message["content"], list) else ())
        if block["type"] == "cache_edits"
    ]


def test_deletions_are_planned_sent_pinned_and_dropped_with_the_cache(team: Team) -> None:
    alice = sign_in("alice")
    few = plan(alice, messages=talk(11))["cache_edits"]
    assert (few["result_count"], few["deletions"], few["edits_block"]) == (11, [], None)
    told = plan(alice, messages=talk(12), state=few["state"])["cache_edits"]
    gone = [f"toolu_{number}" for number in range(9)]
    assert (told["deletions"], told["is_drop_expected"]) == (gone, True)
    assert told["expected_tokens"] > 9 * 300
    assert [edit["cache_reference"] for edit in told["edits_block"]["edits"]] == gone
    assert find_edits(told["messages"]) == [(24, gone)]
    assert told["messages"][2]["content"][0]["cache_reference"] == "toolu_0"
    assert told["messages"][2]["content"][0]["content"] == talk(1)[2]["content"][0]["content"], "nothing is taken out"

    again = plan(alice, messages=talk(13), state=told["state"], cache_read_tokens=20_000)["cache_edits"]
    assert (again["deletions"], again["is_drop_expected"]) == ([], False)
    assert find_edits(again["messages"]) == [(24, gone)], "pinned where it was"
    lost = plan(alice, messages=talk(13), state=again["state"], cache_read_tokens=0)["cache_edits"]
    assert len(lost["deletions"]) == 10, "a rebuilt cache holds everything again"


def test_context_management_names_the_tools_of_the_request(team: Team) -> None:
    messages = talk(3)
    messages[1]["content"].insert(0, {"type": "thinking", "thinking": "Well.", "signature": "s"})
    told = plan(sign_in("alice"), messages=messages, tools=["Read", "Edit", "Browse"], idle_seconds=7200)
    editing = told["context_editing"]
    assert editing["beta"] == "context-management-2025-06-27"
    thinking, reads, writes = editing["context_management"]["edits"]
    assert thinking == {"type": "clear_thinking_20251015", "keep": {"type": "thinking_turns", "value": 1}}
    assert (reads["type"], reads["exclude_tools"]) == ("clear_tool_uses_20250919", ["Browse", "Edit"])
    assert writes["clear_tool_inputs"] == ["Edit"]


def test_stored_session_is_planned_without_its_words(team: Team) -> None:
    session = record_session(team, write_talk(turns=8))
    told = plan(sign_in("alice"), session=str(session.pk), kept_results=2)
    assert told["cache_edits"]["messages"] is None
    assert len(told["cache_edits"]["deletions"]) == told["cache_edits"]["result_count"] - 2 > 8
    assert told["context_editing"]["context_management"]["edits"]
    assert "lighthouse" not in str(told)


def test_what_cannot_be_planned_is_refused(team: Team) -> None:
    alice = sign_in("alice")
    assert "Send `session` or `messages`." in plan(alice, 422)["detail"]
    bare = make_session(team, "bare")
    assert "No content" in plan(alice, 409, session=str(bare.pk))["detail"]
    stranger = sign_in("charlie")
    plan(stranger, 404, session=str(bare.pk))


def test_session_page_shows_what_clearing_measured_at_the_next_call(team: Team) -> None:
    session: AgentSession = record_session(team)
    call = session.calls.filter(agent_id="").order_by("number")[2]
    ObservedCompaction.objects.create(
        team=team,
        session=session,
        entry_uuid="edits",
        kind="micro",
        at=call.at,
        trigger="api",
        saved_tokens=8000,
        cleared_count=3,
        call_number=call.number,
    )
    session.calls.filter(pk=call.pk).update(context_tokens=20_000)
    page = read(sign_in("alice"), f"/sessions/{session.pk}/compactions/")
    assert "the API" in page
    assert "8,000" in page or "8.0k" in page
    following = session.calls.get(agent_id="", number=call.number + 1)
    sent = following.input_tokens + following.read_tokens + following.write_5m_tokens
    assert f'<td class="num">{(20_000 - sent) / 1000:.1f}k</td>' in page

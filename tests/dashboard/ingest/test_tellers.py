"""Whose session it is, and what follows: other agents are judged by the API's windows, everywhere alike."""

from dataclasses import replace
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from compaction.context.policy import Policy
from compaction.timeline.observations import REPORT, LineKind, Observation
from dashboard import access
from dashboard.ingest.intake import Origin, take_in
from dashboard.ingest.observed import Piece, Rules
from dashboard.ingest.otlp.spans import read_span
from dashboard.ingest.otlp.telling import Told
from dashboard.ingest.otlp.values import Span
from dashboard.ingest.picture.tellers import is_of_claude_code
from dashboard.jobs.perform import perform_due
from dashboard.models import AgentSession, ObservedCompaction, Scope, Team, Thread, User
from dashboard.pages.gauges import list_sessions
from dashboard.pages.session_filters import SessionFilters
from dashboard.pages.session_page import read_header
from dashboard.pages.session_settings import GUIDE, read_settings
from dashboard.policies.changes import change_policy
from dashboard.policies.effects import count_effect
from dashboard.policies.in_force import find_policy
from tests.builders import make_key, make_team
from tests.dashboard.ingest.conversation import Conversation
from tests.visitors import sign_in

NAMED, UNNAMED = "4f6c1f0e-0000-4000-8000-000000000001", "proxy-0011"


@pytest.fixture
def team(db: None) -> Team:
    return make_team("Harbour", owner="alice")


def make_fact(name: str, **told: Any) -> Observation:
    return Observation(name, LineKind.OTHER, **{"type": REPORT, **told})


@pytest.mark.parametrize(
    ("fact", "session", "expected"),
    [
        (make_fact("u1", type="user", version="2.1.126"), NAMED, True),
        (make_fact("u1", type="user", cwd="/srv"), NAMED, True),
        (make_fact("u1", type="user"), NAMED, False),  # a message that an agent told
        (make_fact("api:session", version="0.9"), NAMED, False),
        (make_fact("api:call:c1"), NAMED, False),
        (make_fact("hook:prompt:p1"), NAMED, True),
        (make_fact("status:now"), NAMED, True),
        (make_fact("otlp:call:req_1"), NAMED, True),
        (make_fact("otlp:counter:claude_code.cost.usage:1"), NAMED, True),
        (make_fact("otlp:span:a-b", version="0.9"), NAMED, False),
        (make_fact("proxied:msg_1"), UNNAMED, False),
        (make_fact("proxied:msg_1", version="2.1.325"), UNNAMED, True),
        (make_fact("proxied:msg_1"), NAMED, True),
    ],
)
def test_what_tells_claude_code_from_other_agents(fact: Observation, session: str, *, expected: bool) -> None:
    assert is_of_claude_code([fact], session) is expected
    assert is_of_claude_code([], session) is False


@pytest.mark.parametrize(
    ("name", "service", "expected"),
    [("chat opus", "pilot", False), ("chat opus", "claude-code", True), ("claude_code.llm_request", "", True)],
)
def test_spans_tell_whose_they_are(name: str, service: str, *, expected: bool) -> None:
    usage = {"gen_ai.usage.input_tokens": 10, "gen_ai.usage.output_tokens": 5, "input_tokens": 10, "output_tokens": 5}
    span = Span(name, "a", "b", 1, 2, {"session.id": "s1", **usage}, {"service.name": service})
    told = read_span(span, Rules(keeps_content=True, digest_key=b"k" * 32))
    assert isinstance(told, Told)
    assert is_of_claude_code(told.facts, "s1") is expected


def tell(client: Client, team: Team, *tokens: int) -> AgentSession:
    """Calls of any agent, by the API."""
    key = make_key(team, User.objects.get(username="alice"), Scope.INGEST)[1]
    calls = [
        {
            "type": "call",
            "session": "pilot-1",
            "id": f"c{number}",
            "at": f"2026-05-01T10:{number:02}:00Z",
            "model": "claude-opus-4-6",
            "usage": {"input_tokens": 360, "cache_read_input_tokens": count - 460, "output_tokens": 100},
        }
        for number, count in enumerate(tokens)
    ]
    told = {"items": calls}
    answer = client.post(
        "/api/v1/ingest/items", told, content_type="application/json", headers={"Authorization": f"Bearer {key}"}
    )
    assert answer.status_code == 200, answer.content
    return AgentSession.objects.get(external_id="pilot-1")


def test_session_of_another_agent_has_the_window_of_the_api_everywhere(client: Client, team: Team) -> None:
    session = tell(client, team, 90_000, 155_360)
    expected = (1_000_000, "ok", 84)
    assert (session.window_tokens, session.level, session.percent_left) == expected
    assert Thread.objects.get().window_tokens == 1_000_000
    actor, now = access.person(User.objects.get(username="alice")), timezone.now()
    (row,) = list_sessions(actor, SessionFilters(), now=now).rows
    assert (row.window_tokens, row.reading.level, row.reading.percent_left) == expected
    header = read_header(actor, session, now=now)
    assert (header.standing.bar.window_tokens, header.standing.reading.level) == (1_000_000, "ok")
    settings = read_settings(actor, session, header.standing)
    assert settings.lines[0].words == "window 1,000,000 from the API's table for claude-opus-4-6"
    assert settings.state == GUIDE
    visitor = sign_in("alice")
    page = visitor.get(f"/sessions/{session.pk}/settings/").content.decode()
    assert "In force: the client compacts" not in page
    assert "client defaults" not in page
    assert "<dt>Agent</dt><dd>not Claude Code" in page
    told = visitor.get(f"/api/v1/sessions/{session.pk}").json()
    assert (told["is_claude_code"], told["window_tokens"], told["level"]) == (False, 1_000_000, "ok")


def test_change_of_policy_and_its_preview_know_other_agents(client: Client, team: Team) -> None:
    session = tell(client, team, 155_360)
    AgentSession.objects.update(last_at=timezone.now())
    effect = count_effect(team, Policy(), Policy(), now=timezone.now())
    assert {line.before for line in effect.lines} == {0}
    early = replace(find_policy(team), thresholds={"preset": "early"})
    change_policy(team, early, by=None, base_version=0)
    perform_due()
    session.refresh_from_db()
    assert (session.level, session.window_tokens) == ("ok", 1_000_000)


def test_claude_code_beside_another_teller_stays_claude_codes(client: Client, team: Team) -> None:
    session = tell(client, team, 155_360)
    talk = Conversation("beside")
    talk.ask()
    take_in(Origin(team, session.owner, "push"), Piece(talk.data, "test", session.external_id))
    session.refresh_from_db()
    assert (session.is_claude_code, session.window_tokens, session.level) == (True, 200_000, "error")


def test_long_window_that_no_call_names_is_said_to_be_inferred(team: Team) -> None:
    talk = Conversation("long")
    talk.ask()
    talk.answer("msg_1", written=230_000)
    talk.compact(before=231_000)
    take_in(Origin(team, None, "push"), Piece(talk.data, "test", talk.session_id))
    session = AgentSession.objects.get()
    assert (session.model, session.is_window_inferred) == ("claude-opus-4-5-20251101[1m]", True)
    assert (session.window_tokens, session.is_claude_code) == (1_000_000, True)
    assert ObservedCompaction.objects.get().line_tokens == 967_000
    header = read_header(access.person(User.objects.get(username="alice")), session, now=timezone.now())
    window = header.standing.lines.window if header.standing.lines else None
    assert window is not None
    assert (str(window.origin), window.description) == (
        "inferred",
        "window 1,000,000 inferred: a call exceeded the window in the client's table for claude-opus-4-5",
    )


def test_window_that_calls_name_is_not_inferred(team: Team) -> None:
    talk = Conversation("named")
    talk.ask()
    talk.answer("msg_1", written=230_000, model="claude-opus-4-5[1m]")
    take_in(Origin(team, None, "push"), Piece(talk.data, "test", talk.session_id))
    session = AgentSession.objects.get()
    assert (session.model, session.is_window_inferred, session.window_tokens) == (
        "claude-opus-4-5[1m]",
        False,
        1_000_000,
    )


def test_peak_counts_what_was_compacted(team: Team) -> None:
    talk = Conversation("full")
    talk.ask()
    talk.answer("msg_1", written=163_500)
    talk.compact(before=168_200)
    talk.answer("msg_2", written=30_000)
    take_in(Origin(team, None, "push"), Piece(talk.data, "test", talk.session_id))
    session = AgentSession.objects.get()
    assert (session.peak_tokens, Thread.objects.get().peak_tokens) == (168_200, 168_200)
    AgentSession.objects.update(last_at=timezone.now())
    effect = count_effect(team, Policy(), Policy(), now=timezone.now())
    assert {line.line: line.before for line in effect.lines}["auto-compact"] == 1

"""Settings in force: every figure with its origin, what the team decided, which lifetime of the cache was seen."""

import json
from datetime import timedelta
from typing import Any

import pytest

from dashboard import access
from dashboard.ingest.client_reports import take_in_hooks, take_in_statuses
from dashboard.models import AgentSession, Team, TeamPolicy
from dashboard.pages.session_page import read_header
from dashboard.pages.session_settings import SettingsInForce, read_settings
from tests.builders import make_session, make_team, make_user
from tests.session_builders import START, make_calls
from tests.visitors import ask, sign_in
from tests.visitors import read as read_page

pytestmark = pytest.mark.django_db


@pytest.fixture
def team() -> Team:
    return make_team("Harbour", admin="anna", viewer="vera")


@pytest.fixture
def session(team: Team) -> AgentSession:
    return make_session(team, "s-1")


def read(session: AgentSession, name: str = "vera") -> SettingsInForce:
    actor = access.person(make_user(name))
    return read_settings(actor, session, read_header(actor, session, now=START).standing)


def test_without_a_decision_the_lines_are_the_clients(session: AgentSession) -> None:
    found = read(session)
    assert {line.name: line.tokens for line in found.lines} == {
        "window": 200_000,
        "reserve": 20_000,
        "available": 180_000,
        "warning": 147_000,
        "error": 147_000,
        "auto-compact": 167_000,
        "blocking": 177_000,
    }
    assert {line.origin for line in found.lines} == {"client's table", "Claude Code's rule"}
    assert found.policy.version == 0
    assert not found.may_tune
    assert read(session, "anna").may_tune


def decide(team: Team, **thresholds: Any) -> None:
    TeamPolicy.objects.create(team=team, version=3, thresholds=thresholds, changed_by_name="anna", note="sooner")


def test_what_the_team_decided_is_named_with_its_version(team: Team, session: AgentSession) -> None:
    decide(team, warning_margin_tokens=40_000, is_auto_enabled=False)
    found = read(session)
    lines = {line.name: line for line in found.lines}
    assert lines["warning"].origin == "team policy"
    assert lines["warning"].tokens == 140_000
    assert not lines["auto-compact"].is_acting
    assert found.state == "off"
    assert ("Automatic compaction", "off", "team policy") in [(s.name, s.value, s.origin) for s in found.switches]
    assert (found.policy.version, found.policy.changed_by, found.policy.note) == (3, "anna", "sooner")
    assert found.is_behind


def test_values_for_one_model_hold_for_it(team: Team, session: AgentSession) -> None:
    decide(team, models={"claude-sonnet-4-5": {"window_tokens": 500_000}})
    assert next(line for line in read(session).lines if line.name == "window").tokens == 500_000
    other = make_session(team, "s-2", model="claude-opus-4-5")
    assert next(line for line in read(other).lines if line.name == "window").tokens == 200_000


def test_unknown_window_has_no_lines_and_says_so(team: Team) -> None:
    found = read(make_session(team, "s-2", model="some-model"))
    assert found.lines == ()
    assert found.state == "unknown"
    assert "unknown" in found.state_words


LIFETIMES = {
    "short": ([(5, 0), (5, 0)], "All cache writes use 5 minutes."),
    "long": ([(0, 5)], "All cache writes use 1 hour."),
    "short then long": ([(5, 0), (0, 5)], "Both lifetimes are in use; the newest writes use 1 hour."),
    "long then short": ([(0, 5), (5, 0)], "Both lifetimes are in use; the newest writes use 5 minutes."),
    "both at once": ([(5, 5)], "Both lifetimes are in use; the newest writes use 5 minutes."),
    "none": ([(0, 0)], "Unknown: no call has written to the cache."),
}


@pytest.mark.parametrize("case", LIFETIMES)
@pytest.mark.parametrize("agent_id", ["", "a"])
def test_lifetime_is_read_off_the_writes(session: AgentSession, case: str, agent_id: str) -> None:
    writes, sentence = LIFETIMES[case]
    for call, (short, long) in zip(make_calls(session, len(writes), agent_id=agent_id), writes, strict=True):
        call.write_5m_tokens, call.write_1h_tokens = short, long
        call.at = START + timedelta(minutes=call.number)
        call.save()
    (seen,) = read(session).lifetimes
    assert seen.sentence == sentence
    assert seen.thread == ("sub-agents" if agent_id else "main conversation")


def test_what_the_client_says_of_itself_is_told_with_its_teller(team: Team) -> None:
    limits = {"five_hour": {"used_percentage": 42.4, "resets_at": (START + timedelta(hours=2)).timestamp()}}
    status = {"session_id": "s-2", "model": {"id": "claude-opus-4-5"}, "rate_limits": limits}
    started = {"session_id": "s-2", "hook_event_name": "SessionStart", "source": "resume", "context_tokens": 91_000}
    started |= {"prompt_cache_likely_expired": True}
    take_in_statuses(team, None, json.dumps(status).encode())
    take_in_hooks(team, None, json.dumps(started).encode())
    found = read(AgentSession.objects.get(external_id="s-2")).client_words
    assert [(word.name, word.value, word.teller) for word in found] == [
        ("5-hour rate limit", "42% used", "status line"),
        ("Context at last start", "91,000 tokens", "hook"),
        ("Cache at last start", "probably expired", "hook"),
    ]
    assert "Reported by the client" in read_page(
        sign_in("vera"), f"/sessions/{AgentSession.objects.get().pk}/settings/"
    )


def test_program_reads_what_the_tab_shows(team: Team, session: AgentSession) -> None:
    decide(team, warning_margin_tokens=40_000)
    make_calls(session, 2)
    found, told = read(session), ask(sign_in("vera"), f"sessions/{session.pk}/settings")
    assert [(line["name"], line["tokens"], line["origin"]) for line in told["lines"]] == [
        (line.name, line.tokens, line.origin) for line in found.lines
    ]
    assert (told["auto_state"], told["sentence"], told["expected_ttl"]) == (
        found.state, found.state_words, found.chosen_ttl,
    )  # fmt: skip
    assert [(switch["name"], switch["value"]) for switch in told["switches"]] == [
        (switch.name, switch.value) for switch in found.switches
    ]
    assert [seen["sentence"] for seen in told["lifetimes"]] == ["All cache writes use 5 minutes."]
    assert (told["policy"]["version"], told["policy"]["note"], told["is_behind"]) == (3, "sooner", True)
    assert told["client_words"] == []

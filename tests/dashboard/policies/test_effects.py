"""What a draft would mean: the lines it draws, and the sessions that would have crossed them."""

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from compaction.context.policy import Policy
from compaction.context.thresholds import compute_thresholds
from compaction.context.windows import ModelInUse
from dashboard.models import Team
from dashboard.policies import effects
from dashboard.policies.drawn_lines import draw_windows, say_formula
from dashboard.policies.effects import Effect, LineEffect, count_effect
from tests.builders import make_session, make_team

CLIENT, EARLY = Policy(), Policy.from_team_values({"preset": "early"})
NOW = timezone.now()


@pytest.fixture
def team(db: None) -> Team:
    return make_team("Harbour")


def counts(effect: Effect) -> dict[str, tuple[int, int]]:
    return {line.line: (line.before, line.after) for line in effect.lines}


def test_sessions_are_counted_at_their_fullest_by_the_lines_of_their_own_window(team: Team) -> None:
    for number, peak in enumerate((126_999, 127_000, 146_999, 147_000, 167_000, 177_000)):
        make_session(team, f"short {number}", peak_tokens=peak, context_tokens=1_000)
    make_session(team, "long", reported_window_tokens=1_000_000, peak_tokens=930_000)
    make_session(team, "old client", client_version="2.1.20", peak_tokens=120_000)
    make_session(team, "unknown", model="qwen-coder", peak_tokens=500_000)
    make_session(team, "long ago", peak_tokens=170_000, last_at=NOW - timedelta(days=31))
    make_session(make_team("Marina"), "stranger", peak_tokens=170_000)
    effect = count_effect(team, CLIENT, EARLY, now=NOW)
    assert counts(effect) == {"warning": (3, 7), "error": (3, 3), "auto-compact": (2, 2), "blocking": (1, 1)}
    assert (effect.session_count, effect.not_counted) == (9, 1)
    assert effect.sentence == "In the last 30 days 4 more sessions would have crossed the warning threshold."


def test_line_that_is_switched_off_is_crossed_by_nobody(team: Team) -> None:
    make_session(team, "full", peak_tokens=178_000)
    off = Policy.from_team_values({"is_auto_enabled": False})
    assert counts(count_effect(team, CLIENT, off, now=NOW))["auto-compact"] == (1, 0)


def test_model_gets_its_own_lines(team: Team) -> None:
    make_session(team, "sonnet", peak_tokens=100_000)
    make_session(team, "opus", model="claude-opus-4-5-20251101", peak_tokens=100_000)
    draft = Policy.from_team_values({"models": {"claude-opus-4-5": {"auto_percent": 50}}})
    assert counts(count_effect(team, CLIENT, draft, now=NOW))["auto-compact"] == (0, 1)


SENTENCES = {
    "No session was active in the last 30 days, so there is nothing to compare.": (0, (0, 0, 0, 0)),
    "In the last 30 days the same thresholds would have been crossed.": (1, (0, 0, 0, 0)),
    "In the last 30 days 1 fewer session would have crossed the blocking threshold.": (9, (0, 0, 0, -1)),
    "In the last 30 days 12 more sessions would have crossed the warning and error thresholds, 3 fewer the "
    "auto-compact threshold.": (99, (12, 12, -3, 0)),
}


@pytest.mark.parametrize("sentence", SENTENCES)
def test_effect_is_one_sentence(sentence: str) -> None:
    total, changes = SENTENCES[sentence]
    names = ("warning", "error", "auto-compact", "blocking")
    lines = tuple(LineEffect(name, 20, 20 + change) for name, change in zip(names, changes, strict=True))
    assert Effect(total, 0, lines).sentence == sentence


@pytest.mark.parametrize("sessions", [1, 60])
def test_one_query_however_many_sessions(team: Team, sessions: int) -> None:
    for number in range(sessions):
        make_session(team, str(number), client_version=f"2.1.{number}", peak_tokens=number * 4_000)
    with CaptureQueriesContext(connection) as queries:
        count_effect(team, CLIENT, EARLY, now=NOW)
    assert len(queries) == 1


def test_only_the_newest_are_looked_at_and_that_is_said(team: Team, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(effects, "MOST_SESSIONS", 3)
    for days in range(5):
        make_session(team, str(days), peak_tokens=130_000 - days, last_at=NOW - timedelta(days=days))
    effect = count_effect(team, CLIENT, EARLY, now=NOW)
    assert counts(effect)["warning"] == (0, 3)
    assert effect.sentence.startswith("In the newest 3 sessions of the last 30 days 3 more sessions would")


def test_windows_of_200k_and_1m_are_drawn_and_models_with_values() -> None:
    draft = Policy.from_team_values({"preset": "early", "models": {"claude-opus-4-5": {"auto_percent": 50}}})
    short, long, opus = draw_windows(CLIENT, draft)
    assert [(line.name, line.before, line.tokens, line.formula) for line in short.moved] == [
        ("warning", 147_000, 127_000, "auto - 40,000"),
        ("error", 147_000, 147_000, "auto - 20,000"),
        ("auto-compact", 167_000, 167_000, "available - 13,000"),
        ("blocking", 177_000, 177_000, "available - 3,000"),
    ]
    assert short.available == "usable window (available) 180,000 = window - 20,000"
    assert [line.tokens for line in long.moved] == [927_000, 947_000, 967_000, 977_000]
    assert (opus.model, opus.moved[2].tokens) == ("claude-opus-4-5", 90_000)


def test_one_window_for_all_is_drawn_once_and_a_line_switched_off_says_so() -> None:
    (only,) = draw_windows(CLIENT, Policy.from_team_values({"window_tokens": 300_000, "is_auto_enabled": False}))
    assert only.window_tokens == 300_000
    auto = only.moved[2]
    assert (auto.before, auto.tokens, auto.formula) == (167_000, None, "off")
    (unknown,) = draw_windows(CLIENT, Policy.from_team_values({"models": {"qwen": {"auto_percent": 50}}}))[2:]
    assert (unknown.window_tokens, unknown.moved) == (None, [])


def test_told_formula_keeps_what_holds_a_line() -> None:
    lines = compute_thresholds(EARLY, ModelInUse("", reported_window_tokens=40_000))
    assert lines is not None
    assert say_formula(lines.error) == "auto - 20,000 = -13,000, held at 0"
    assert say_formula(lines.auto) == "available - 13,000"

"""Whole runs with Claude behind them: a team's key, the worker, a Messages API on the loopback, rows and money."""

import threading
import time
from decimal import Decimal

import pytest
from django.db import connection
from django.utils import timezone
from pytest_django import Settings

from dashboard.jobs.perform import perform_due
from dashboard.models import AgentSession, CompactionRun, DaySpend, RunState, SummarizerName, Team
from dashboard.runs.choices import RunChoices
from dashboard.runs.settings_changes import set_key
from dashboard.runs.start import cancel_run, start_run
from tests.dashboard.runs.scripted import Script
from tests.dashboard.runs.world import make_harbour, person, record_session, run_now
from tests.fakes import replies
from tests.fakes.messages_api import MessagesApi
from tests.fakes.replies import Reply
from tests.recorded_talk import RecordedTalk

pytestmark = pytest.mark.django_db(transaction=True)
CLAUDE = RunChoices(summarizer=SummarizerName.CLAUDE)
KEY = "sk-ant-api03-key-of-the-harbour-0000"


@pytest.fixture
def session(messages_api: MessagesApi, script: Script, settings: Settings) -> AgentSession:
    """Of a team whose key the API knows; the script that stands for a model elsewhere is put aside."""
    settings.PAID_SUMMARIZER = "dashboard.runs.claude.open_claude"
    settings.ANTHROPIC_BASE_URL, messages_api.known_key = messages_api.url, KEY
    team = make_harbour()
    set_key(team, KEY, by=None)
    return record_session(team)


def spend_of(team: Team) -> tuple[Decimal, Decimal]:
    row = DaySpend.objects.get(team=team)
    return row.spent_usd, row.reserved_usd


def test_run_is_written_by_the_small_model_counted_and_paid(messages_api: MessagesApi, session: AgentSession) -> None:
    run = run_now(session, CLAUDE)
    assert (run.state, run.failure_sentence) == (RunState.DONE, "")
    written, counted = run.attempts.order_by("number")
    assert (written.path, written.model, written.failure_code) == ("plain", "claude-haiku-5-5", "")
    assert written.input_tokens > 1000
    assert written.cost_usd == run.spent_usd > 0
    assert spend_of(session.team) == (run.spent_usd, Decimal(0))
    assert (counted.path, counted.failure_code, counted.cost_usd) == ("count", "", None)
    [asked, measured] = messages_api.requests
    assert asked.body["tool_choice"] == {"type": "none"}
    assert measured.body["model"] == "claude-opus-4-5-20251101", "the session's own: its next call is what is measured"
    assert run.after_origin == "counted"
    text = run.revisions.get().text
    assert "Turn 3: never touch the lighthouse module" in text
    assert any(text in block["text"] for block in measured.body["messages"][0]["content"])


def test_count_that_fails_leaves_the_estimate(messages_api: MessagesApi, session: AgentSession) -> None:
    messages_api.script(replies.GOOD, replies.RATE_LIMITED)
    run = run_now(session, CLAUDE)
    assert (run.state, run.after_origin) == (RunState.DONE, "estimate")
    assert run.after_tokens == run.revisions.get().after_tokens
    assert [attempt.failure_code for attempt in run.attempts.order_by("number")] == ["", "rate_limited"]


def test_size_before_is_counted_where_no_call_has_measured_it(messages_api: MessagesApi, session: AgentSession) -> None:
    talk = RecordedTalk("unanswered")
    for turn in range(3):
        talk.ask(f"Turn {turn}: draw basin {turn}. " + "The harbour is wide. " * 500)
    run = run_now(record_session(session.team, talk), CLAUDE)
    assert (run.state, run.before_origin, run.after_origin) == (RunState.DONE, "counted", "counted")
    assert [attempt.path for attempt in run.attempts.order_by("number")] == ["plain", "count", "count"]
    before = messages_api.requests[-2].body
    assert run.before_tokens is not None
    assert "Turn 2: draw basin 2." in str(before["messages"])


def test_run_without_a_model_sends_nothing_anywhere(messages_api: MessagesApi, session: AgentSession) -> None:
    run = run_now(session, RunChoices(summarizer=SummarizerName.EXTRACTIVE))
    assert (run.state, run.after_origin) == (RunState.DONE, "estimate")
    assert messages_api.requests == []


ENDS = [
    (replies.WRONG_KEY, "authentication", 1),
    (replies.NO_SUCH_MODEL, "model_not_found", 1),
    (replies.OVERLOADED, "overloaded", 2),
    (replies.CUT, "connection", 2),
    (replies.ENDED_EARLY, "no_stop_reason", 2),
    (replies.REFUSED, "refusal", 1),
    (replies.CUT_AT_LIMIT, "max_tokens", 1),
]


@pytest.mark.parametrize(("reply", "code", "tries"), ENDS)
def test_failure_ends_the_run_with_its_code_and_its_paid_attempts(
    messages_api: MessagesApi, session: AgentSession, reply: Reply, code: str, tries: int
) -> None:
    messages_api.script(*[reply] * 4)
    run = run_now(session, CLAUDE)
    assert (run.state, run.failure_code) == (RunState.FAILED, code)
    assert [attempt.failure_code for attempt in run.attempts.all()] == [code] * tries
    is_paid = reply.status == 200
    assert (run.spent_usd > 0) == is_paid
    assert run.spent_usd == sum(attempt.cost_usd or 0 for attempt in run.attempts.all())
    assert run.reserved_usd == 0
    assert KEY not in run.failure_sentence


def test_cancel_reaches_a_stream_that_stalls(messages_api: MessagesApi, session: AgentSession) -> None:
    messages_api.script(replies.STALLED)
    run = start_run(person("alice"), session, CLAUDE, source="api", now=timezone.now())
    canceller = threading.Thread(target=_cancel_once_asked, args=(messages_api, run.pk))
    canceller.start()
    started = time.monotonic()
    perform_due()
    canceller.join()
    run.refresh_from_db()
    assert run.state == RunState.CANCELLED
    assert time.monotonic() - started < 10
    [attempt] = run.attempts.all()
    assert attempt.failure_code == "cancelled"
    assert attempt.input_tokens > 1000
    assert run.spent_usd > 0


def _cancel_once_asked(api: MessagesApi, run_id: int) -> None:
    until = time.monotonic() + 10
    while not api.requests and time.monotonic() < until:
        time.sleep(0.02)
    try:
        cancel_run(person("alice"), CompactionRun.objects.get(pk=run_id), now=timezone.now())
    finally:
        connection.close()

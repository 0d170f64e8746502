"""Runs from start to result: every kind, both summarisers, every end; nothing is written twice or left open."""

import logging
from datetime import timedelta
from decimal import Decimal

import pytest
from django.db import connection
from django.utils import timezone
from pytest_django import Settings

from compaction.errors import CompactionCancelled, PromptTooLong, RunError, SummarizerUnavailable, SummaryRefused
from compaction.ports import Monitor, SummaryAnswer, SummaryRequest
from compaction.transcripts.chain import follow_chain, slice_context
from compaction.transcripts.entries import ToolResultBlock
from dashboard.jobs.claim import claim_next
from dashboard.jobs.perform import perform, perform_due, worker_stopping
from dashboard.jobs.sweep import sweep
from dashboard.models import (
    AgentSession,
    CompactionRun,
    DaySpend,
    Job,
    JobState,
    RunAttempt,
    RunKind,
    RunRevision,
    RunState,
    SummarizerName,
    Team,
    ThreadBreaker,
)
from dashboard.runs.choices import RunChoices
from dashboard.runs.failures import describe_failure
from dashboard.runs.outcomes import read_outcome
from dashboard.runs.start import cancel_run, start_run
from tests.dashboard.runs.scripted import Script, answer
from tests.dashboard.runs.world import give_key, make_harbour, person, record_session, run_now, write_talk
from tests.fakes import replies
from tests.fakes.messages_api import MessagesApi
from tests.recorded_talk import RecordedTalk

pytestmark = pytest.mark.django_db(transaction=True)
CLAUDE = RunChoices(summarizer=SummarizerName.CLAUDE)


@pytest.fixture
def team() -> Team:
    return make_harbour()


@pytest.fixture
def session(team: Team) -> AgentSession:
    return record_session(team)


def start(session: AgentSession, choices: RunChoices = CLAUDE) -> CompactionRun:
    return start_run(person("alice"), session, choices, source="api", now=timezone.now())


def test_full_run_without_a_model_costs_nothing_and_keeps_its_result(session: AgentSession) -> None:
    run = run_now(session)
    assert (run.state, run.stage, run.failure_sentence) == (RunState.DONE, "done", "")
    assert (run.before_tokens, run.before_origin, run.after_origin) == (11_943, "measured", "estimate")
    assert (run.summarised_count, run.kept_count, run.dropped_count) == (24, 0, 0)
    assert (run.spent_usd, run.reserved_usd, run.attempts.count(), run.fork_refusal) == (0, 0, 0, "")
    assert run.started_at is not None
    assert run.finished_at is not None
    revision = run.revisions.get()
    assert revision.number == 1
    assert "Turn 3: never touch the lighthouse module" in revision.text
    assert revision.retained_percent == 100
    assert revision.after_tokens == run.after_tokens
    stored = read_outcome(run)
    assert stored.expected_tokens == run.after_tokens
    assert [item.kind for item in stored.restored if item.state == "restored"] == ["file"] * 4
    assert stored.entries[0] == stored.boundary
    assert revision.text in stored.entries[1].message.content[0].text  # type: ignore[union-attr]
    # What is stored is a conversation of its own, whole from its boundary on.
    assert slice_context(follow_chain(stored.entries)).entries == stored.entries


@pytest.mark.parametrize("kind", [RunKind.FROM, RunKind.UP_TO])
def test_partial_run_keeps_the_other_side_word_for_word(session: AgentSession, kind: RunKind) -> None:
    talk = write_talk()
    lines = [line for line in talk.lines if b'"Turn 2:' in line]
    pivot = lines[0].split(b'"uuid":"')[1].split(b'"')[0].decode()
    run = run_now(session, RunChoices(kind=kind, pivot_uuid=pivot))
    assert run.state == RunState.DONE, run.failure_sentence
    assert (run.kept_count, run.summarised_count) == (12, 12)
    entries = read_outcome(run).entries
    kept = [entry.uuid for entry in entries if entry.uuid == pivot]
    assert bool(kept) == (kind is RunKind.UP_TO)


def write_heavy_talk(results: int = 12) -> RecordedTalk:
    talk = RecordedTalk("heavy")
    talk.ask("Look at everything.")
    for number in range(results):
        use = {"type": "tool_use", "id": f"bash_{number}", "name": "Bash", "input": {"command": "ls"}}
        talk.reply(f"heavy-{number}", use, read=1000, written=6000 * number)
        block = {"type": "tool_result", "tool_use_id": f"bash_{number}", "content": "x" * 24_000}
        talk.write("user", message={"role": "user", "content": [block]})
    return talk


@pytest.mark.parametrize(("kind", "cleared"), [(RunKind.MICRO_SIZE, 6), (RunKind.MICRO_IDLE, 7)])
def test_micro_run_clears_below_the_warning_line_because_a_person_asked(
    team: Team, kind: RunKind, cleared: int
) -> None:
    run = run_now(record_session(team, write_heavy_talk()), RunChoices(kind=kind))
    assert run.state == RunState.DONE, run.failure_sentence
    assert (run.cleared_count, run.summarizer, run.revisions.count()) == (cleared, "none", 0)
    stored = read_outcome(run)
    assert [each.tool for each in stored.cleared] == ["Bash"] * cleared
    assert sum(each.tokens for each in stored.cleared) == 6000 * cleared == run.before_tokens - run.after_tokens  # type: ignore[operator]
    texts = [
        block.text
        for entry in stored.entries
        for block in (entry.message.content if entry.message else ())
        if isinstance(block, ToolResultBlock)
    ]
    assert texts.count("[Old tool result content cleared]") == cleared
    assert stored.entries[-1].uuid == stored.boundary_uuid
    assert stored.audit is not None


def test_model_run_is_metered_and_settled(team: Team, session: AgentSession, script: Script) -> None:
    give_key(team)
    run = start(session)
    assert run.reserved_usd > 0
    assert DaySpend.objects.get().reserved_usd == run.reserved_usd
    perform_due()
    run.refresh_from_db()
    assert run.state == RunState.DONE, run.failure_sentence
    attempt = run.attempts.get()
    assert (attempt.path, attempt.input_tokens, attempt.output_tokens) == ("plain", 50_000, 900)
    assert (attempt.failure_code, attempt.message_id, attempt.duration_seconds) == ("", "msg_summary", 2.5)
    spent = Decimal("0.0545")  # 50,000 at $1 and 900 at $5 a million
    assert attempt.cost_usd == run.spent_usd == spent
    day = DaySpend.objects.get()
    assert (day.reserved_usd, day.spent_usd, run.reserved_usd) == (0, spent, 0)
    assert run.revisions.get().analysis == "Thought about it."
    assert script.requests[0].model == "claude-haiku-4-5"


def test_second_try_and_second_ask_are_attempts_of_their_own(team: Team, session: AgentSession, script: Script) -> None:
    give_key(team)
    partly = "<summary>\n1. Primary Request and Intent:\n   Draw.\n</summary>"
    script.steps = [SummarizerUnavailable("overloaded"), answer(partly), answer()]
    run = run_now(session, CLAUDE)
    assert run.state == RunState.DONE
    rows = list(run.attempts.order_by("number").values_list("number", "failure_code", "cost_usd"))
    assert rows == [(1, "api_error", None), (2, "", Decimal("0.0545")), (3, "", Decimal("0.0545"))]
    assert run.spent_usd == DaySpend.objects.get().spent_usd == Decimal("0.109")
    assert run.revisions.get().missing_sections == []


@pytest.mark.parametrize(
    ("steps", "code", "advice"),
    [
        ([SummarizerUnavailable("overloaded"), SummarizerUnavailable("overloaded")], "api_error", "again in a minute"),
        ([answer(stop="refusal")], "refusal", "another model"),
        ([answer(stop="max_tokens")], "max_tokens", "shorter summary"),
        ([answer("")], "no_summary", "again"),
        ([PromptTooLong()] * 4, "prompt_too_long", "larger window"),
    ],
)
def test_orderly_failure_is_told_and_settled(
    team: Team, session: AgentSession, script: Script, steps: list[SummaryAnswer | RunError], code: str, advice: str
) -> None:
    give_key(team)
    script.steps = [*steps]
    run = run_now(session, CLAUDE)
    assert (run.state, run.stage, run.failure_code) == (RunState.FAILED, "failed", code)
    failure = describe_failure(run)
    assert failure is not None
    assert failure.sentence == run.failure_sentence != ""
    assert advice in failure.advice
    assert "The session is as it was" in failure.kept
    assert run.attempts.count() == len(steps)
    day = DaySpend.objects.get()
    assert (day.reserved_usd, run.reserved_usd) == (0, 0)
    assert day.spent_usd == run.spent_usd == sum(each.cost_usd or 0 for each in run.attempts.all())
    assert Job.objects.get(kind="compact").state == JobState.FAILED
    assert not RunRevision.objects.exists()


def test_unexpected_error_tries_again_and_gives_up_in_the_end(
    team: Team, session: AgentSession, script: Script, settings: object
) -> None:
    give_key(team)

    def raise_bug(_request: SummaryRequest, _monitor: Monitor) -> SummaryAnswer:
        raise ZeroDivisionError

    script.steps = [raise_bug] * 5
    run = start(session)
    for _ in range(5):
        Job.objects.filter(state=JobState.QUEUED).update(due_at=None)
        perform_due()
    job = Job.objects.get(kind="compact")
    assert (job.state, job.attempts) == (JobState.DEAD, 5)
    run.refresh_from_db()
    assert run.state == RunState.RUNNING  # nobody has looked yet
    Job.objects.create(kind="end_stranded_runs", key="now")
    perform_due()
    run.refresh_from_db()
    assert (run.state, run.failure_code) == (RunState.FAILED, "worker_lost")
    assert run.attempts.filter(failure_code="worker_lost").count() == 5
    day = DaySpend.objects.get()
    assert (day.reserved_usd, run.reserved_usd) == (0, 0)
    assert day.spent_usd == run.spent_usd > 0  # what may have been paid counts as paid


def test_run_that_has_its_result_is_not_written_again(session: AgentSession) -> None:
    run = run_now(session)
    finished_at = run.finished_at
    Job.objects.filter(kind="compact").update(state=JobState.QUEUED, finished_at=None)
    assert perform_due() == 1
    run.refresh_from_db()
    assert (run.state, run.finished_at, run.revisions.count()) == (RunState.DONE, finished_at, 1)


def test_worker_that_lost_its_lease_writes_its_paid_attempt_and_nothing_else(
    team: Team, session: AgentSession, script: Script
) -> None:
    give_key(team)
    taken: list[CompactionRun] = []

    def sleep_past_the_lease(_request: SummaryRequest, _monitor: Monitor) -> SummaryAnswer:
        sweep(timezone.now() + timedelta(days=1))  # long past every lease
        taken.append(CompactionRun.objects.get())
        return answer()

    script.steps = [sleep_past_the_lease]
    run = start(session)
    claim = claim_next(worker="sleeper", kinds=["compact"], now=timezone.now())
    assert claim is not None
    perform(claim)
    run.refresh_from_db()
    assert run.state == RunState.RUNNING
    assert run.attempts.get().cost_usd == Decimal("0.0545")
    assert Job.objects.get(kind="compact").fence_rejections == 1
    perform_due()
    run.refresh_from_db()
    assert (run.state, run.revisions.count(), run.attempts.count()) == (RunState.DONE, 1, 2)
    assert DaySpend.objects.get().spent_usd == run.spent_usd == Decimal("0.109")


def test_attempt_in_flight_of_a_lost_worker_is_counted_at_its_most(
    team: Team, session: AgentSession, script: Script
) -> None:
    give_key(team)
    run = start(session)
    held = run.reserved_usd
    RunAttempt.objects.create(run=run, number=1, path="plain", model="claude-haiku-4-5", failure_code="in_flight")
    perform_due()
    run.refresh_from_db()
    assert run.state == RunState.DONE
    first, second = run.attempts.order_by("number")
    assert (first.failure_code, first.cost_usd) == ("worker_lost", held)
    assert (second.number, second.cost_usd) == (2, Decimal("0.0545"))
    assert DaySpend.objects.get().spent_usd == run.spent_usd == held + Decimal("0.0545")


def test_cancel_before_a_worker_took_it_ends_it_at_once(team: Team, session: AgentSession) -> None:
    give_key(team)
    run = start(session)
    assert cancel_run(person("alice"), run, now=timezone.now())
    run.refresh_from_db()
    assert (run.state, run.stage) == (RunState.CANCELLED, "cancelled")
    assert DaySpend.objects.get().reserved_usd == 0
    assert not cancel_run(person("alice"), run, now=timezone.now())
    perform_due()
    run.refresh_from_db()
    assert run.state == RunState.CANCELLED


def test_cancel_while_the_model_writes_ends_it_and_keeps_what_was_paid(
    team: Team, session: AgentSession, script: Script
) -> None:
    give_key(team)

    def cancel_meanwhile(_request: SummaryRequest, _monitor: Monitor) -> SummaryAnswer:
        assert cancel_run(person("alice"), CompactionRun.objects.get(), now=timezone.now())
        deadline = timezone.now() + timedelta(seconds=5)
        while not _monitor.is_cancelled() and timezone.now() < deadline:
            pass
        return answer()

    script.steps = [cancel_meanwhile]
    run = run_now(session, CLAUDE)
    assert (run.state, run.failure_code) == (RunState.CANCELLED, "")
    assert Job.objects.get(kind="compact").state == JobState.CANCELLED
    assert DaySpend.objects.get().spent_usd == run.spent_usd == Decimal("0.0545")
    assert DaySpend.objects.get().reserved_usd == 0


def test_job_ended_on_the_jobs_page_does_not_leave_its_run_open(session: AgentSession) -> None:
    run = start(session, RunChoices())
    Job.objects.filter(kind="compact").update(state=JobState.CANCELLED, finished_at=timezone.now())
    again = start(session, RunChoices())  # the next start finds it
    run.refresh_from_db()
    assert run.state == RunState.CANCELLED
    assert again.state == RunState.QUEUED


def test_content_that_went_away_meanwhile_fails_the_run_with_a_sentence(session: AgentSession) -> None:
    run = start(session, RunChoices())
    AgentSession.objects.update(has_content=False)
    perform_due()
    run.refresh_from_db()
    assert (run.state, run.failure_code) == (RunState.FAILED, "no_content")


def test_model_is_asked_outside_every_transaction(team: Team, session: AgentSession, script: Script) -> None:
    give_key(team)
    seen: list[bool] = []

    def look(_request: SummaryRequest, _monitor: Monitor) -> SummaryAnswer:
        seen.append(connection.in_atomic_block)
        return answer()

    script.steps = [look]
    assert run_now(session, CLAUDE).state == RunState.DONE
    assert seen == [False]


def test_stages_are_written_as_they_are_entered(team: Team, session: AgentSession, script: Script) -> None:
    give_key(team)
    seen: list[tuple[str, str, int]] = []

    def look(_request: SummaryRequest, monitor: Monitor) -> SummaryAnswer:
        monitor.keep_alive(120)
        run = CompactionRun.objects.get()
        seen.append((run.state, run.stage, run.written_tokens))
        return answer()

    script.steps = [look]
    run_now(session, CLAUDE)
    assert seen == [("running", "summarising", 120)]


def test_only_ids_and_numbers_reach_the_log(
    team: Team, session: AgentSession, caplog: pytest.LogCaptureFixture
) -> None:
    give_key(team)
    with caplog.at_level(logging.INFO):
        run_now(session, CLAUDE)
    names = [record.message for record in caplog.records if record.name == "dashboard.runs.monitor"]
    assert names[:2] == ["summary_answered", "compaction_completed"]
    told = " ".join(str(vars(record)) for record in caplog.records)
    assert "lighthouse" not in told
    assert "basin" not in told


def test_success_closes_the_breaker_and_a_manual_failure_does_not_count(
    team: Team, session: AgentSession, script: Script
) -> None:
    give_key(team)
    breaker = ThreadBreaker.objects.create(session=session, failures=3, opened_at=timezone.now())
    script.steps = [SummaryRefused()]
    assert run_now(session, CLAUDE).state == RunState.FAILED
    breaker.refresh_from_db()
    assert breaker.failures == 3
    assert run_now(session, CLAUDE).state == RunState.DONE
    breaker.refresh_from_db()
    assert (breaker.failures, breaker.opened_at) == (0, None)


def test_cap_that_is_reached_in_the_middle_ends_the_run_before_the_next_request(
    team: Team, session: AgentSession, script: Script
) -> None:
    settings = give_key(team)
    run = start(session)
    settings.daily_cap_usd = run.reserved_usd + Decimal("0.0001")
    settings.save()
    partly = "<summary>\n1. Primary Request and Intent:\n   Draw.\n</summary>"
    script.steps = [answer(partly), answer()]
    perform_due()
    run.refresh_from_db()
    # The first answer is usable; the second ask would have been above the cap and was never sent.
    assert (run.state, len(script.requests), run.attempts.count()) == (RunState.DONE, 1, 1)
    assert len(run.revisions.get().missing_sections) == 8
    day = DaySpend.objects.get()
    assert day.reserved_usd == 0
    assert day.spent_usd < settings.daily_cap_usd


def test_context_after_it_is_counted_by_the_api_where_a_key_is_there(
    team: Team, session: AgentSession, messages_api: MessagesApi, settings: Settings
) -> None:
    """The whole way: settings of the team, the real SDK, a Messages API on the loopback."""
    give_key(team)
    settings.PAID_SUMMARIZER = "dashboard.runs.claude.open_claude"
    settings.ANTHROPIC_BASE_URL = messages_api.url
    run = run_now(session, CLAUDE)
    assert (run.state, run.failure_sentence) == (RunState.DONE, "")
    assert run.after_origin == "counted"
    written, counted = run.attempts.order_by("number")
    assert (written.path, written.failure_code, counted.path, counted.failure_code) == ("plain", "", "count", "")
    assert written.cost_usd == run.spent_usd == DaySpend.objects.get().spent_usd > 0
    assert [request.path for request in messages_api.requests] == ["/v1/messages", "/v1/messages/count_tokens"]


def test_estimate_stands_where_counting_fails(
    team: Team, session: AgentSession, messages_api: MessagesApi, settings: Settings
) -> None:
    give_key(team)
    settings.PAID_SUMMARIZER = "dashboard.runs.claude.open_claude"
    settings.ANTHROPIC_BASE_URL = messages_api.url
    messages_api.script(replies.GOOD, replies.NOT_ALLOWED)
    run = run_now(session, CLAUDE)
    assert (run.state, run.after_origin) == (RunState.DONE, "estimate")
    assert run.attempts.get(path="count").failure_code == "permission"


def test_worker_that_is_told_to_end_gives_the_run_back(team: Team, session: AgentSession, script: Script) -> None:
    give_key(team)

    def stop_meanwhile(_request: SummaryRequest, monitor: Monitor) -> SummaryAnswer:
        worker_stopping.set()
        assert monitor.is_cancelled()
        raise CompactionCancelled

    script.steps = [stop_meanwhile]
    run = start(session)
    try:
        perform_due()
    finally:
        worker_stopping.clear()
    run.refresh_from_db()
    job = Job.objects.get(kind="compact")
    assert (run.state, run.stage, job.state, job.attempts) == (RunState.QUEUED, "queued", JobState.QUEUED, 0)
    assert run.reserved_usd > 0
    perform_due()
    run.refresh_from_db()
    assert (run.state, run.revisions.count(), run.attempts.count()) == (RunState.DONE, 1, 2)
    assert DaySpend.objects.get().reserved_usd == 0


def test_session_that_is_deleted_while_its_run_waits_takes_the_run_along(session: AgentSession) -> None:
    start(session, RunChoices())
    session.delete()
    assert perform_due() == 1
    assert Job.objects.get(kind="compact").state == JobState.DONE

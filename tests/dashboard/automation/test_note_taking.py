"""Notes are taken while a session goes on: when they are due, once, by whom the team wants, and quietly."""

from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal

import pytest
from django.utils import timezone

from compaction.compactors.notes.template import DEFAULT_TEMPLATE, is_template_only, parse_notes
from compaction.errors import SummarizerUnavailable
from compaction.ports import Monitor, SummaryAnswer, SummaryRequest
from dashboard.automation.note_taking import PAUSE_AFTER_FAILURE
from dashboard.automation.note_versions import MOST_VERSIONS, keep_version
from dashboard.automation.note_writers import write_notes
from dashboard.automation.notes_due import may_be_due, post_notes
from dashboard.automation.wishes import NotesWriter
from dashboard.jobs.perform import perform_due
from dashboard.models import (
    AgentSession,
    AutomaticMode,
    CompactionRun,
    DaySpend,
    Job,
    JobState,
    LineCrossing,
    NotesExtraction,
    RunKind,
    RunState,
    SessionNote,
    Team,
)
from dashboard.runs.choices import RunChoices
from tests.dashboard.automation.test_crossings import FULL, LiveTalk, bring_back_jobs, make_storing_team, run_of, wish
from tests.dashboard.runs.scripted import Script, answer
from tests.dashboard.runs.world import give_key, run_now

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def team() -> Team:
    team = make_storing_team("Harbour")
    wish(team, notes_writer=NotesWriter.EXTRACTIVE)
    return team


def grow_long(talk: LiveTalk, *sizes: int) -> LiveTalk:
    for size in sizes:
        talk.grow(size, words=9_000)
    return talk


def list_numbers() -> list[tuple[int, str]]:
    return list(SessionNote.objects.order_by("number").values_list("number", "writer"))


@pytest.mark.parametrize(
    ("last_tokens", "context_tokens", "is_due"),
    [
        (None, 9_999, False),
        (None, 10_000, True),
        (10_000, 14_999, False),
        (10_000, 15_000, True),
        (90_000, 4_999, False),
        (90_000, 5_000, True),  # compacted since: all of it is growth
    ],
)
def test_stored_figures_tell_when_notes_may_be_due(
    team: Team, last_tokens: int | None, context_tokens: int, *, is_due: bool
) -> None:
    session = AgentSession.objects.create(team=team, external_id="one")
    if last_tokens is not None:
        SessionNote.objects.create(
            team=team, session=session, number=1, text="# A\nb", context_tokens=last_tokens, writer="extractive"
        )
    assert may_be_due(team, session.pk, context_tokens) is is_due
    wish(team, notes_writer=NotesWriter.OFF)
    assert not may_be_due(team, session.pk, context_tokens)


def test_notes_are_taken_first_at_ten_thousand_tokens_and_then_as_the_session_grows(team: Team) -> None:
    talk = LiveTalk()
    session = talk.grow(9_000).send(team)
    assert list_numbers() == []
    session = talk.grow(12_000).send(team)
    assert list_numbers() == [(1, "extractive")]
    talk.grow(15_000).send(team)
    assert list_numbers() == [(1, "extractive")]
    session = talk.grow(18_000).send(team)
    assert list_numbers() == [(1, "extractive"), (2, "extractive")]
    newest = SessionNote.objects.get(number=2)
    assert (newest.session, newest.last_entry_uuid, newest.context_tokens) == (session, talk.parent, 18_000)
    assert not is_template_only(newest.text)
    assert "never touch the lighthouse" in newest.text
    assert not NotesExtraction.objects.exists()


@pytest.mark.parametrize(
    "spoil",
    [
        lambda team, _talk: wish(team, notes_writer=NotesWriter.OFF),
        lambda _team, talk: setattr(talk, "now", talk.now - timedelta(hours=2)),
    ],
    ids=["off", "old"],
)
def test_no_notes_where_none_are_wanted(team: Team, spoil: Callable[[Team, LiveTalk], None]) -> None:
    talk = LiveTalk()
    spoil(team, talk)
    session = talk.grow(40_000).send(team)
    post_notes(team, session.pk, version=99)
    perform_due()
    assert list_numbers() == []


def test_a_team_that_stores_numbers_only_takes_none() -> None:
    team = make_storing_team("Quay")
    team.policies.update(stores_content=False)
    wish(team, notes_writer=NotesWriter.EXTRACTIVE)
    LiveTalk().grow(40_000).send(team)
    assert list_numbers() == []
    assert not Job.objects.filter(kind="take_notes").exists()


def test_automatic_run_is_made_from_notes_that_were_taken_on_the_way(team: Team) -> None:
    wish(team, mode=AutomaticMode.RUN)
    talk = LiveTalk()
    grow_long(talk, 110_000, 125_000, 140_000).send(team)
    assert list_numbers() == [(1, "extractive")]
    run = run_of(talk.grow(FULL).send(team))
    assert (run.kind, run.state, run.source) == (RunKind.NOTES, RunState.DONE, "auto")
    assert "# Task Specification" in run.revisions.get().text
    assert run.after_tokens is not None
    assert run.after_tokens < 167_000


def test_a_killed_worker_leaves_one_version(team: Team, monkeypatch: pytest.MonkeyPatch) -> None:
    kills = iter([True, True, False])

    def write_or_die(*arguments: object) -> object:
        assert NotesExtraction.objects.count() == 1
        if next(kills):
            raise SystemExit
        return write_notes(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr("dashboard.automation.note_taking.write_notes", write_or_die)
    talk = LiveTalk().grow(12_000)
    with pytest.raises(SystemExit):
        talk.send(team)
    for _ in range(2):
        bring_back_jobs()
        try:
            perform_due()
        except SystemExit:
            continue
    assert list_numbers() == [(1, "extractive")]
    assert not NotesExtraction.objects.exists()


def test_one_extraction_of_a_thread_at_a_time(team: Team) -> None:
    session = LiveTalk().grow(9_000).send(team)
    other = Job.objects.create(kind="take_notes", key="other", state=JobState.RUNNING, lease_until=timezone.now())
    row = NotesExtraction.objects.create(session=session, job=other)
    talk = LiveTalk().grow(9_000).grow(12_000)
    talk.send(team)
    assert list_numbers() == []  # begun a moment ago
    NotesExtraction.objects.filter(pk=row.pk).update(started_at=timezone.now() - timedelta(seconds=61))
    talk.grow(13_000).send(team)
    assert list_numbers() == [(1, "extractive")]


def test_compaction_waits_for_notes_that_are_being_taken(team: Team) -> None:
    wish(team, mode=AutomaticMode.RUN)
    talk = grow_long(LiveTalk(), 110_000, 125_000, 140_000)
    session = talk.send(team)
    other = Job.objects.create(kind="take_notes", key="other", state=JobState.RUNNING, lease_until=timezone.now())
    NotesExtraction.objects.create(session=session, job=other)
    Job.objects.filter(kind="take_notes", state=JobState.QUEUED).delete()
    talk.grow(FULL).send(team)
    waiting = Job.objects.get(kind="answer_crossing")
    assert (waiting.state, waiting.attempts) == (JobState.QUEUED, 0)
    assert waiting.due_at is not None
    assert not CompactionRun.objects.exists()

    LineCrossing.objects.update(at=timezone.now() - timedelta(seconds=15))  # patience is over
    Job.objects.filter(pk=waiting.pk).update(due_at=timezone.now())
    perform_due()
    run = run_of(session)
    assert run.kind == RunKind.NOTES
    job = run.job
    assert job is not None
    job.refresh_from_db()
    assert job.state == JobState.QUEUED  # the run itself waits as well
    CompactionRun.objects.update(created_at=timezone.now() - timedelta(seconds=15))
    Job.objects.filter(pk=job.pk).update(due_at=timezone.now())
    perform_due()
    run.refresh_from_db()
    assert run.state == RunState.DONE


def test_notes_come_from_redacted_words(team: Team) -> None:
    secret = "sk-ant-api03-" + "Q7" * 46 + "AA"
    talk = LiveTalk()
    talk.ask(f"Never lose this key: {secret}")
    session = talk.grow(12_000).send(team)
    note = SessionNote.objects.get(session=session)
    assert "Never lose this key" in note.text
    assert secret not in note.text


# --- with a model ----------------------------------------------------------------------------------------------------


def write_answer(words: str = "Every basin is drawn.") -> str:
    return "\n\n".join(section.format(words) for section in parse_notes(DEFAULT_TEMPLATE))


@pytest.fixture
def paying(team: Team) -> Team:
    give_key(team)
    wish(team, notes_writer=NotesWriter.CLAUDE)
    return team


def test_model_brings_the_notes_up_to_date_and_its_cost_is_counted(paying: Team, script: Script) -> None:
    secret = "sk-ant-api03-" + "Q7" * 46 + "AA"
    script.steps = [answer(write_answer()), answer(write_answer(f"Basin 3 is next. {secret}"))]
    talk = LiveTalk()
    talk.grow(12_000).send(paying)
    talk.grow(18_000).send(paying)
    assert list_numbers() == [(1, "claude"), (2, "claude")]
    assert "Every basin is drawn." in script.requests[1].prompt
    newest = SessionNote.objects.get(number=2)
    assert "Basin 3 is next." in newest.text
    assert secret not in newest.text
    day = DaySpend.objects.get()
    assert newest.cost_usd > 0
    assert (day.spent_usd, day.reserved_usd) == (2 * newest.cost_usd, Decimal(0))


def test_a_failure_is_told_quietly_and_nobody_is_asked_again_at_once(paying: Team, script: Script) -> None:
    script.steps = [SummarizerUnavailable("overloaded", is_retryable=False)]
    talk = LiveTalk()
    talk.grow(12_000).send(paying)
    row = NotesExtraction.objects.select_related("job").get()
    assert row.job.state == JobState.DONE
    assert row.job.result is not None
    assert "overloaded" in row.job.result["refusal"]
    assert DaySpend.objects.get().spent_usd == 0
    talk.grow(18_000).send(paying)
    assert len(script.requests) == 1
    Job.objects.filter(pk=row.job_id).update(finished_at=timezone.now() - PAUSE_AFTER_FAILURE)
    script.steps = [answer(write_answer())]
    talk.grow(19_000).send(paying)
    assert list_numbers() == [(1, "claude")]
    assert not NotesExtraction.objects.exists()


@pytest.mark.parametrize(
    ("text", "stop", "why"),
    [("I have nothing to say.", "end_turn", "none of the sections"), ("# Worklog\nhalf", "max_tokens", "cut")],
)
def test_an_answer_that_is_no_notes_is_not_kept(paying: Team, script: Script, text: str, stop: str, why: str) -> None:
    script.steps = [answer(text, stop=stop)]
    LiveTalk().grow(12_000).send(paying)
    assert list_numbers() == []
    told = NotesExtraction.objects.get().job.result
    assert told is not None
    assert why in told["refusal"]
    assert DaySpend.objects.get().spent_usd > 0


def test_no_model_is_asked_without_a_key_or_above_the_cap(team: Team, script: Script) -> None:
    wish(team, notes_writer=NotesWriter.CLAUDE)
    LiveTalk("without").grow(12_000).send(team)
    give_key(team, daily_cap_usd=Decimal("0.001"))
    LiveTalk("capped").grow(12_000).send(team)
    told = [row.job.result or {} for row in NotesExtraction.objects.select_related("job").order_by("pk")]
    assert [each["code"] for each in told] == ["no_key", "cap_reached"]
    assert not script.requests
    assert not DaySpend.objects.filter(reserved_usd__gt=0).exists()


def test_a_worker_lost_while_the_model_writes_leaves_the_most_it_may_cost(paying: Team, script: Script) -> None:
    def die(_request: SummaryRequest, _monitor: Monitor) -> SummaryAnswer:
        raise SystemExit

    script.steps = [die, answer(write_answer())]
    with pytest.raises(SystemExit):
        LiveTalk().grow(12_000).send(paying)
    held_usd = DaySpend.objects.get().spent_usd
    assert held_usd > 0
    bring_back_jobs()
    perform_due()
    note = SessionNote.objects.get()
    assert DaySpend.objects.get().spent_usd == held_usd + note.cost_usd


def test_old_versions_go_and_what_people_wrote_stays(team: Team) -> None:
    session = AgentSession.objects.create(team=team, external_id="long")
    for number in range(1, MOST_VERSIONS + 4):
        writer = "person" if number == 2 else "extractive"
        keep_version(SessionNote(team=team, session=session, number=number, text="# A\nb", writer=writer), {})
    numbers = [number for number, _ in list_numbers()]
    assert numbers == [2, *range(4, MOST_VERSIONS + 4)]


def test_a_run_from_notes_by_a_person(team: Team) -> None:
    session = grow_long(LiveTalk(), 20_000, 30_000, 40_000).send(team)
    run = run_now(session, RunChoices(kind=RunKind.NOTES))
    assert run.state == RunState.DONE

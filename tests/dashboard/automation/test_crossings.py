"""A crossed auto-compact line is answered once, as the team wishes: not at all, by a suggestion, or by a run."""

from datetime import timedelta

import pytest
from django.utils import timezone

from compaction.errors import SummarizerUnavailable
from dashboard import access
from dashboard.automation.answer import choose_kind, is_due
from dashboard.automation.crossings import dismiss, find_waiting, list_waiting
from dashboard.automation.wishes import WishChange, change_wish, find_wish
from dashboard.ingest.intake import Origin, take_in
from dashboard.ingest.observed import Piece
from dashboard.jobs.perform import perform_due
from dashboard.jobs.sweep import sweep
from dashboard.models import (
    AgentSession,
    ApiCall,
    AuditEvent,
    AutomaticMode,
    CompactionRun,
    Job,
    JobState,
    LineCrossing,
    RunKind,
    RunState,
    SessionNote,
    SummarizerName,
    Team,
    TeamPolicy,
)
from dashboard.runs.basis import Basis
from dashboard.runs.breakers import read_breaker
from dashboard.runs.session_notes import add_notes
from tests.builders import make_team, make_user
from tests.dashboard.runs.scripted import Script
from tests.dashboard.runs.world import give_key
from tests.recorded_talk import RecordedTalk
from tests.visitors import read, sign_in

pytestmark = pytest.mark.django_db(transaction=True)

FULL = 170_000


class LiveTalk(RecordedTalk):
    """A session that goes on now. Its text alone stays far below the line, so only usage crosses it."""

    def __init__(self, name: str = "live") -> None:
        super().__init__(name)
        self.now = timezone.now() - timedelta(minutes=20)
        self.calls = 0

    def grow(self, tokens: int, *, reads: int = 0, words: int = 0) -> "LiveTalk":
        self.calls += 1
        self.ask(f"Turn {self.calls}: never touch the lighthouse. Draw basin {self.calls}." + " depth" * words)
        for number in range(reads):
            self.read_large(f"{self.calls}-{number}", tokens - 9_000 * (reads - number))
        self.reply(f"{self.session_id}-{self.calls}", read=tokens - 943, written=900)
        return self

    def read_large(self, name: str, tokens: int) -> None:
        use = {"type": "tool_use", "id": f"toolu_{name}", "name": "Read", "input": {"file_path": f"/tmp/{name}.py"}}
        self.reply(f"{self.session_id}-{name}", use, read=tokens - 943, written=900)
        block = {"type": "tool_result", "tool_use_id": f"toolu_{name}", "content": "depth 12 m\n" * 3000}
        self.write("user", message={"role": "user", "content": [block]})

    def send(self, team: Team) -> AgentSession:
        take_in(Origin(team, make_user("alice"), "follow"), Piece(self.data, "talk", self.session_id))
        perform_due()
        return AgentSession.objects.select_related("team").get(team=team, external_id=self.session_id)


@pytest.fixture
def team() -> Team:
    return make_storing_team("Harbour")


def make_storing_team(name: str, mode: AutomaticMode | None = None) -> Team:
    team = make_team(name, owner="alice", viewer="vera")
    TeamPolicy.objects.create(team=team, version=1, stores_content=True)
    if mode is not None:
        wish(team, mode=mode)
    return team


def wish(team: Team, **values: object) -> None:
    change_wish(team, WishChange(**values), by=None)  # type: ignore[arg-type]


def test_crossing_is_suggested_once_until_the_context_fell(team: Team) -> None:
    talk = LiveTalk()
    session = talk.grow(150_000).send(team)
    assert find_waiting(session) is None
    session = talk.grow(FULL).send(team)
    waiting = find_waiting(session)
    assert waiting is not None
    assert (waiting.answer, waiting.used_tokens, waiting.line_tokens) == ("suggest", FULL, 167_000)
    assert [row.pk for row in list_waiting(access.person(make_user("vera")), team, now=timezone.now())] == [waiting.pk]

    talk.grow(160_000).grow(FULL + 500).send(team)  # ups and downs: one crossing
    assert LineCrossing.objects.count() == 1
    session = talk.grow(100_000).grow(FULL).send(team)
    assert LineCrossing.objects.count() == 2
    assert not CompactionRun.objects.exists()

    alice = access.person(make_user("alice"))
    waiting = find_waiting(session)
    assert waiting is not None
    assert dismiss(alice, waiting, now=timezone.now())
    assert not dismiss(alice, waiting, now=timezone.now())
    assert find_waiting(session) is None


def test_a_boundary_arms_again(team: Team) -> None:
    talk = LiveTalk()
    talk.grow(FULL).send(team)
    talk.compact()
    talk.grow(FULL).send(team)
    assert LineCrossing.objects.count() == 2


def test_two_teams_with_different_wishes_at_once() -> None:
    off, suggest, run = (
        make_storing_team(mode.value.title(), mode)
        for mode in (AutomaticMode.OFF, AutomaticMode.SUGGEST, AutomaticMode.RUN)
    )
    for team in (off, suggest, run):
        LiveTalk(f"of-{team.slug}").grow(FULL).send(team)
    assert {row.team.slug: (row.answer, row.run is not None) for row in LineCrossing.objects.all()} == {
        "suggest": ("suggest", False),
        "run": ("run", True),
    }


def test_an_old_history_crosses_nothing(team: Team) -> None:
    talk = LiveTalk()
    talk.now -= timedelta(days=30)
    talk.grow(FULL).send(team)
    assert not LineCrossing.objects.exists()


def run_of(session: AgentSession) -> CompactionRun:
    crossing = LineCrossing.objects.get(session=session)
    assert crossing.run is not None, crossing.refusal
    return crossing.run


def test_first_rung_clears_where_that_is_enough(team: Team) -> None:
    wish(team, mode=AutomaticMode.RUN)
    run = run_of(LiveTalk().grow(FULL, reads=8).send(team))
    assert (run.kind, run.state, run.trigger, run.source) == (RunKind.MICRO_SIZE, RunState.DONE, "auto", "auto")
    assert run.started_by_name == "automatic mode"
    assert run.after_tokens is not None
    assert run.after_tokens < 167_000


def test_second_rung_takes_the_notes(team: Team) -> None:
    wish(team, mode=AutomaticMode.RUN)
    talk = LiveTalk()
    session = talk.grow(110_000, words=9_000).grow(125_000, words=9_000).grow(140_000, words=9_000).send(team)
    SessionNote.objects.create(
        team=team,
        session=session,
        number=1,
        text="# Task\nDraw every basin.",
        last_entry_uuid=talk.parent or "",
        writer="person",
    )
    run = run_of(talk.grow(FULL).send(team))
    assert (run.kind, run.state, run.summarizer) == (RunKind.NOTES, RunState.DONE, SummarizerName.NONE)
    assert "Draw every basin." in run.revisions.get().text


def test_last_rung_writes_a_summary_without_a_model(team: Team) -> None:
    wish(team, mode=AutomaticMode.RUN)
    run = run_of(LiveTalk().grow(150_000).grow(FULL).send(team))
    assert (run.kind, run.state, run.summarizer) == (RunKind.FULL, RunState.DONE, SummarizerName.EXTRACTIVE)


def test_no_paid_call_without_a_key_and_the_reason_is_kept(team: Team, script: Script) -> None:
    wish(team, mode=AutomaticMode.RUN, summarizer=SummarizerName.CLAUDE)
    session = LiveTalk().grow(150_000).grow(FULL).send(team)
    crossing = LineCrossing.objects.get()
    assert crossing.run is None
    assert crossing.refusal.startswith("No API key is configured")
    assert find_waiting(session) == crossing
    assert not script.requests


def test_three_failures_pause_automatic_runs(team: Team, script: Script) -> None:
    give_key(team)
    wish(team, mode=AutomaticMode.RUN, summarizer=SummarizerName.CLAUDE)
    script.steps = [SummarizerUnavailable("overloaded", is_retryable=False) for _ in range(9)]
    talk = LiveTalk()
    for _ in range(4):
        talk.grow(150_000).grow(FULL).send(team)
    rows = list(LineCrossing.objects.order_by("pk"))
    assert [row.run is not None and row.run.state for row in rows] == ["failed", "failed", "failed", False]
    assert "paused after 3 failures" in rows[-1].refusal


def test_numbers_only_are_suggested_and_not_run() -> None:
    team = make_team("Quay", owner="alice")
    wish(team, mode=AutomaticMode.RUN)
    session = LiveTalk().grow(FULL).send(team)
    crossing = LineCrossing.objects.get(session=session)
    assert crossing.run is None
    assert "not stored" in crossing.refusal


def test_a_killed_worker_leaves_one_run_per_crossing(team: Team, monkeypatch: pytest.MonkeyPatch) -> None:
    wish(team, mode=AutomaticMode.RUN)
    killed = iter([True, True, False])

    def choose_or_die(session: AgentSession, **now: object) -> RunKind:
        if next(killed):
            raise SystemExit
        return choose_kind(session, **now)  # type: ignore[arg-type]

    monkeypatch.setattr("dashboard.automation.answer.choose_kind", choose_or_die)
    talk = LiveTalk().grow(150_000).grow(FULL)
    for _ in range(3):
        try:
            talk.send(team)
        except SystemExit:
            bring_back_jobs()
    perform_due()
    assert LineCrossing.objects.count() == CompactionRun.objects.count() == 1


def bring_back_jobs() -> None:
    """As the sweeper does for a worker that was killed."""
    Job.objects.filter(state=JobState.RUNNING).update(lease_until=timezone.now() - timedelta(minutes=5))
    sweep(timezone.now())


def leave_unfinished(team: Team, monkeypatch: pytest.MonkeyPatch, talk: LiveTalk | None = None) -> AgentSession:
    """A worker noted the crossing and was killed before it started the run."""
    talk = talk or LiveTalk().grow(150_000).grow(FULL)
    with monkeypatch.context() as patch:
        patch.setattr("dashboard.automation.answer.choose_kind", end_worker)
        with pytest.raises(SystemExit):
            talk.send(team)
    bring_back_jobs()
    return AgentSession.objects.select_related("team").get(team=team)


def end_worker(*_: object, **__: object) -> None:
    raise SystemExit


@pytest.mark.parametrize("mode", [AutomaticMode.OFF, AutomaticMode.SUGGEST])
def test_a_wish_that_changed_while_the_job_waited_is_followed(
    team: Team, monkeypatch: pytest.MonkeyPatch, mode: AutomaticMode
) -> None:
    wish(team, mode=AutomaticMode.RUN)
    session = leave_unfinished(team, monkeypatch)
    page = read(sign_in("alice"), f"/sessions/{session.pk}/")
    assert "An automatic run is about to start." in page
    wish(team, mode=mode)
    perform_due()
    crossing = LineCrossing.objects.get()
    assert (crossing.answer, crossing.run) == (mode, None)
    assert not CompactionRun.objects.exists()
    assert (find_waiting(session) is None) == (mode is AutomaticMode.OFF)


def test_a_session_that_fell_silent_while_the_job_waited_is_left_alone(
    team: Team, monkeypatch: pytest.MonkeyPatch
) -> None:
    wish(team, mode=AutomaticMode.RUN)
    leave_unfinished(team, monkeypatch)
    AgentSession.objects.update(last_at=timezone.now() - timedelta(hours=2))
    perform_due()
    assert "went inactive" in LineCrossing.objects.get().refusal
    assert not CompactionRun.objects.exists()


def test_calls_that_compact_themselves_start_nothing(team: Team) -> None:
    wish(team, mode=AutomaticMode.RUN)
    talk = LiveTalk()
    session = talk.grow(20_000).grow(FULL - 10_000).send(team)
    AgentSession.objects.update(context_tokens=FULL)
    session.refresh_from_db()
    last = ApiCall.objects.filter(session=session).order_by("-number")[:1]
    for source, is_expected in (("compact", False), ("session_memory", False), ("sdk", True)):
        ApiCall.objects.filter(pk__in=list(last.values_list("pk", flat=True))).update(query_source=source)
        assert is_due(session, now=timezone.now()) == is_expected


def test_notes_that_will_not_do_in_the_end_give_way_to_a_summary(team: Team, monkeypatch: pytest.MonkeyPatch) -> None:
    wish(team, mode=AutomaticMode.RUN)
    talk = LiveTalk()
    session = talk.grow(110_000, words=9_000).grow(125_000, words=9_000).grow(140_000, words=9_000).send(team)
    notes = SessionNote.objects.create(
        team=team, session=session, number=1, text="# Task\nDraw.", last_entry_uuid=talk.parent or "", writer="person"
    )

    def lose_place(basis: Basis) -> Basis:
        SessionNote.objects.filter(pk=notes.pk).update(last_entry_uuid="elsewhere")
        return add_notes(basis)

    monkeypatch.setattr("dashboard.runs.perform.add_notes", lose_place)
    talk.grow(FULL).send(team)
    perform_due()
    first, second = CompactionRun.objects.order_by("pk")
    assert (first.kind, first.state, first.failure_code) == (RunKind.NOTES, RunState.FAILED, "position_lost")
    assert (second.kind, second.state, second.source) == (RunKind.FULL, RunState.DONE, "auto")
    assert LineCrossing.objects.get().run == second
    assert read_breaker(session).failures == 0


def test_pages_tell_of_a_crossing_and_admins_choose_the_mode(team: Team) -> None:
    session = LiveTalk().grow(FULL).send(team)
    alice, vera = sign_in("alice"), sign_in("vera")
    for visitor in (alice, vera):
        assert "Auto-compact threshold of 167,000 tokens crossed" in read(visitor, f"/sessions/{session.pk}/")
        assert "Due for a compaction" in read(visitor, "/")
    crossing = LineCrossing.objects.get()
    assert vera.post(f"/crossings/{crossing.pk}/dismiss/").status_code == 403
    assert alice.post(f"/crossings/{crossing.pk}/dismiss/").status_code == 302
    assert "was crossed" not in read(vera, f"/sessions/{session.pk}/")

    sent = {"mode": "run", "summarizer": "claude", "notes_writer": "off", "notes_template": "no heading"}
    refused = alice.post("/teams/harbour/automation/", sent)
    assert refused.status_code == 422
    assert alice.post("/teams/harbour/automation/", {**sent, "notes_template": ""}).status_code == 302
    wish = find_wish(team)
    assert (wish.mode, wish.summarizer, wish.changed_by_name) == ("run", "claude", "alice")
    assert AuditEvent.objects.get(action="automation changed").details["changes"][0] == "mode: suggest to run"
    overtaken = alice.post("/teams/harbour/automation/", {**sent, "mode": "off", "notes_template": "", "stamp": "x"})
    assert overtaken.status_code == 409

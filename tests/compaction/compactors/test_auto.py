"""The automatic chain: order of steps, guards, switches, breaker, reactive runs, tracking."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compaction.compactors.auto import AutoResult, Decision, RecompactionTracker, Turn, run_auto
from compaction.compactors.breaker import Breaker
from compaction.compactors.extractive.summarizer import ExtractiveSummarizer
from compaction.compactors.micro.cache_edits import CacheEditState
from compaction.compactors.micro.clearing import MicroKind
from compaction.compactors.notes.template import DEFAULT_TEMPLATE, SessionNotes
from compaction.compactors.outcome import Trigger
from compaction.compactors.restore.restorer import ContextRestorer
from compaction.compactors.run import RunPorts
from compaction.compactors.thread_state import ThreadState
from compaction.context.policy import Policy
from compaction.context.thresholds import compute_thresholds
from compaction.context.windows import ModelInUse
from compaction.errors import AutomaticRunsPaused, EmptySummary, NotesMissing, SummarizerUnavailable
from compaction.events import BreakerClosed, BreakerOpened, CompactionCompleted, MicroCompacted
from compaction.ports import Stage, Summarizer
from compaction.transcripts.client_protocol import CLEARED_RESULT
from compaction.transcripts.entries import Entry
from tests.compaction.compactors.checks import check_outcome
from tests.compaction.compactors.sessions import Session, sessions
from tests.compaction.compactors.summarizers import Script, Watcher, say
from tests.compaction.compactors.talks import NOW, talks

LINES = compute_thresholds(Policy(), ModelInUse("claude-opus-4-5"))
NOTES = DEFAULT_TEMPLATE.replace("# Worklog", "# Worklog\n- did things\n")


def make_turn(**values: object) -> Turn:
    return replace(Turn(now=NOW, policy=Policy(), thresholds=LINES), **values)  # type: ignore[arg-type]


def make_entries(tokens: int, rounds: int = 4, size: int = 400) -> list[Entry]:
    session = Session()
    session.say("Fix the login bug.")
    for number in range(rounds):
        session.run(f"step {number}", "x" * size)
    session.answer("last", {"type": "text", "text": "Working on it."}, tokens=tokens - 5)
    return session.entries


def run(
    entries: Sequence[Entry],
    turn: Turn | None = None,
    *,
    state: ThreadState | None = None,
    by: Summarizer | None = None,
) -> tuple[AutoResult, Watcher]:
    watcher = Watcher()
    ports = RunPorts(by or ExtractiveSummarizer(), restore=ContextRestorer(), monitor=watcher)
    return run_auto(entries, turn or make_turn(), state or ThreadState(), ports), watcher


@pytest.mark.parametrize(("tokens", "decision"), [(166_999, Decision.BELOW_THRESHOLD), (167_000, Decision.FULL)])
def test_the_line_is_reached_not_passed(tokens: int, decision: Decision) -> None:
    entries = make_entries(tokens)
    result, watcher = run(entries)
    assert result.decision is decision
    assert (result.entries is entries) is (decision is Decision.BELOW_THRESHOLD)
    if result.outcome is not None:
        check_outcome(result.outcome, entries)
        assert result.entries == result.outcome.entries
        assert result.outcome.trigger is Trigger.AUTO
        assert Stage.DONE in watcher.stages


@pytest.mark.parametrize(
    ("turn", "decision"),
    [
        ({"policy": Policy(is_compaction_enabled=False)}, Decision.DISABLED),
        ({"policy": Policy(is_auto_enabled=False)}, Decision.DISABLED),
        ({"source": "compact"}, Decision.GUARDED),
        ({"source": "session_memory"}, Decision.GUARDED),
        ({"thresholds": None}, Decision.THRESHOLD_NOT_KNOWN),
        ({"policy": Policy(is_compaction_enabled=False), "is_too_long": True}, Decision.DISABLED),
        ({"policy": Policy(is_reactive_enabled=False), "is_too_long": True}, Decision.DISABLED),
        ({"policy": Policy(is_auto_enabled=False), "is_too_long": True}, Decision.FULL),
        ({"thresholds": None, "is_too_long": True}, Decision.FULL),
        ({"source": "compact", "is_too_long": True}, Decision.GUARDED),
    ],
)
def test_switches_guards_and_reactive_runs(turn: dict[str, object], decision: Decision) -> None:
    entries = make_entries(170_000)
    result, _ = run(entries, make_turn(**turn))
    assert result.decision is decision
    assert (result.outcome is not None) is (decision is Decision.FULL)
    if result.outcome is None:
        assert result.entries is entries


def test_notes_come_before_a_full_compaction() -> None:
    entries = make_entries(170_000, rounds=20, size=8_000)
    notes = SessionNotes(NOTES, entries[-1].uuid)
    script = Script()
    result, _ = run(entries, make_turn(notes=notes), by=script)
    assert result.decision is Decision.FROM_NOTES
    assert script.requests == []
    assert result.outcome is not None
    check_outcome(result.outcome, entries)


def test_without_usable_notes_the_chain_goes_on_and_says_why() -> None:
    result, _ = run(make_entries(170_000))
    assert isinstance(result.notes_refusal, NotesMissing)
    off, _ = run(make_entries(170_000), make_turn(policy=Policy(is_session_memory_enabled=False)))
    assert (off.decision, off.notes_refusal) == (Decision.FULL, None)


def test_an_autonomous_turn_is_told_to_stay_in_its_loop() -> None:
    result, _ = run(make_entries(170_000), make_turn(is_autonomous=True))
    assert result.outcome is not None
    assert result.outcome.trigger is Trigger.AUTONOMOUS


def test_three_failures_open_the_breaker_and_no_fourth_is_tried() -> None:
    entries, state, script = make_entries(170_000), ThreadState(), Script((SummarizerUnavailable("overloaded"),))
    decisions, events = [], []
    for _ in range(5):
        result, watcher = run(entries, state=state, by=script)
        decisions.append(result.decision)
        events += [event for event in watcher.events if isinstance(event, BreakerOpened)]
        assert result.entries is entries
        assert result.failure is not None
    assert decisions == [Decision.FAILED] * 3 + [Decision.BREAKER_OPEN] * 2
    assert len(events) == 1
    assert isinstance(result.failure, AutomaticRunsPaused)
    asked = len(script.requests)
    run(entries, state=state, by=script)
    assert len(script.requests) == asked


def test_a_success_closes_the_breaker_and_cleans_the_thread() -> None:
    state = ThreadState(breaker=Breaker(2), cache_edits=CacheEditState(order=("t1",)))
    result, watcher = run(make_entries(170_000), state=state)
    assert result.outcome is not None
    assert (state.breaker, state.cache_edits) == (Breaker(), CacheEditState())
    assert not any(isinstance(event, BreakerClosed) for event in watcher.events)


def test_a_cancelled_run_is_no_failure() -> None:
    state = ThreadState(breaker=Breaker(2))
    watcher = Watcher(cancel_at=Stage.PRE_HOOKS)
    ports = RunPorts(ExtractiveSummarizer(), monitor=watcher)
    result = run_auto(make_entries(170_000), make_turn(), state, ports)
    assert (result.decision, state.breaker) == (Decision.CANCELLED, Breaker(2))


def test_a_bad_summary_is_a_failure_with_a_sentence() -> None:
    entries = make_entries(170_000)
    result, _ = run(entries, by=Script((say(""),)))
    assert result.decision is Decision.FAILED
    assert isinstance(result.failure, EmptySummary)
    assert str(result.failure).endswith(".")


def test_recompactions_are_tracked() -> None:
    entries = make_entries(170_000)
    first, watcher = run(entries, make_turn(run_id="run-1"))
    (done,) = [event for event in watcher.events if isinstance(event, CompactionCompleted)]
    assert (done.is_recompaction, done.line_tokens, done.source) == (False, 167_000, "repl_main_thread")
    tracker = first.tracker
    for _ in range(2):
        below, _ = run(make_entries(20_000), make_turn(tracker=tracker))
        tracker = below.tracker
    assert tracker == RecompactionTracker("run-1", 2)
    _, watcher = run(entries, make_turn(run_id="run-2", tracker=tracker))
    (done,) = [event for event in watcher.events if isinstance(event, CompactionCompleted)]
    assert (done.is_recompaction, done.turns_since_previous, done.previous_run_id) == (True, 2, "run-1")


def test_a_cold_cache_is_used_to_clear_old_results() -> None:
    entries = make_entries(20_000, rounds=9)
    result, watcher = run(entries, make_turn(now=NOW + timedelta(hours=2)))
    (step,) = result.micro.outcomes
    assert step.kind is MicroKind.IDLE
    assert len(step.cleared_tool_ids) == 4
    assert [type(event) for event in watcher.events] == [MicroCompacted]
    assert sum(CLEARED_RESULT in (entry.raw or b"").decode() or _reads_cleared(entry) for entry in result.entries) == 4


def _reads_cleared(entry: Entry) -> bool:
    blocks = entry.message.content if entry.message else ()
    return any(getattr(block, "text", "") == CLEARED_RESULT for block in blocks)


def test_above_the_warning_line_old_results_go_and_that_may_be_enough() -> None:
    entries = make_entries(168_000, rounds=30, size=10_000)
    result, _ = run(entries)
    (step,) = result.micro.outcomes
    assert step.kind is MicroKind.SIZE
    assert result.decision is Decision.BELOW_THRESHOLD
    assert result.used_tokens < 167_000
    assert len(result.entries) == len(entries)
    off, _ = run(entries, make_turn(policy=Policy(is_micro_enabled=False)))
    assert (off.micro.outcomes, off.decision) == ((), Decision.FULL)


def test_a_warm_cache_is_edited_and_the_messages_stay() -> None:
    entries, state = make_entries(150_000, rounds=14, size=9_000), ThreadState()
    result, _ = run(entries, make_turn(can_edit_cache=True), state=state)
    assert result.entries is entries
    assert result.micro.queued_deletions == 11
    assert state.cache_edits.is_drop_expected


def test_nothing_new_since_the_last_boundary_is_no_failure() -> None:
    session = Session()
    session.say("x")
    session.bound()
    result, _ = run(session.entries, make_turn(is_too_long=True))
    assert result.decision is Decision.NOTHING_NEW
    assert result.entries is session.entries


@settings(max_examples=80, deadline=None)
@given(entries=st.one_of(sessions(), talks()), is_autonomous=st.booleans())
def test_below_every_line_a_warm_thread_comes_back_as_it_is(entries: list[Entry], *, is_autonomous: bool) -> None:
    script, state = Script(), ThreadState()
    result, watcher = run(entries, make_turn(is_autonomous=is_autonomous), state=state, by=script)
    assert LINES is not None
    if result.used_tokens < LINES.warning.tokens:
        assert result.entries is entries
        assert (script.requests, watcher.events, result.outcome) == ([], [], None)


@settings(max_examples=60, deadline=None)
@given(talks(fewest_steps=2), st.lists(st.booleans(), min_size=1, max_size=12))
def test_whatever_happens_no_fourth_automatic_failure_in_a_row_gets_through(
    entries: list[Entry], works: list[bool]
) -> None:
    state, failures = ThreadState(), 0
    for is_working in works:
        by = ExtractiveSummarizer() if is_working else Script((EmptySummary(),))
        result, _ = run(entries, make_turn(is_too_long=True), state=state, by=by)
        if result.decision is Decision.FAILED:
            failures += 1
        elif result.outcome is not None:
            failures = 0
        assert failures <= 3


@settings(max_examples=40, deadline=None)
@given(talks(fewest_steps=2))
def test_the_same_turn_gives_the_same_result(entries: list[Entry]) -> None:
    turn = make_turn(is_too_long=True)
    first, _ = run(entries, turn)
    second, _ = run(entries, turn)
    assert (first.decision, first.outcome) == (second.decision, second.outcome)
    if first.outcome is not None:
        check_outcome(first.outcome, entries)

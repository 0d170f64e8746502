"""The breaker, and cleanup by thread."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction.compactors.breaker import MOST_FAILURES, Breaker, list_breaker_events
from compaction.compactors.micro.cache_edits import CacheEditState
from compaction.compactors.outcome import Trigger
from compaction.compactors.thread_state import ThreadMemory
from compaction.errors import (
    AutomaticRunsPaused,
    BlockedByHook,
    CompactionCancelled,
    ConversationTooLong,
    EmptySummary,
    NothingToCompact,
    RunError,
    SummarizerUnavailable,
)
from compaction.events import BreakerClosed, BreakerOpened


def test_three_failures_in_a_row_open_it_and_a_person_may_still_try() -> None:
    breaker = Breaker()
    for _ in range(MOST_FAILURES):
        breaker.check(Trigger.AUTO)
        breaker = breaker.note_failure(EmptySummary(), Trigger.AUTO)
    assert breaker.is_open
    for trigger in (Trigger.AUTO, Trigger.AUTONOMOUS):
        with pytest.raises(AutomaticRunsPaused, match="3 failures"):
            breaker.check(trigger)
    breaker.check(Trigger.MANUAL)
    assert not breaker.note_success().is_open


@pytest.mark.parametrize("error", [CompactionCancelled(), BlockedByHook("no"), NothingToCompact()])
def test_what_was_decided_against_is_no_failure(error: RunError) -> None:
    assert Breaker(2).note_failure(error, Trigger.AUTO) == Breaker(2)


def test_a_failure_by_hand_does_not_count() -> None:
    assert Breaker(2).note_failure(EmptySummary(), Trigger.MANUAL) == Breaker(2)


def test_opening_and_closing_are_events() -> None:
    (opened,) = list_breaker_events(Breaker(2), Breaker(3), session_id="s")
    assert opened == BreakerOpened(session_id="s", failures=3)
    assert list_breaker_events(Breaker(3), Breaker()) == (BreakerClosed(),)
    assert list_breaker_events(Breaker(0), Breaker(1)) == ()


_RUNS = st.sampled_from(["success", "failure", "cancel", "manual failure"])


@given(st.lists(_RUNS, max_size=40))
def test_a_fourth_automatic_failure_in_a_row_is_never_let_through(runs: list[str]) -> None:
    breaker, in_a_row = Breaker(), 0
    for run in runs:
        trigger = Trigger.MANUAL if run == "manual failure" else Trigger.AUTO
        try:
            breaker.check(trigger)
        except AutomaticRunsPaused:
            assert in_a_row == MOST_FAILURES
            continue
        if run == "success":
            breaker, in_a_row = breaker.note_success(), 0
        elif run == "cancel":
            breaker = breaker.note_failure(CompactionCancelled(), trigger)
        else:
            error = SummarizerUnavailable("overloaded") if in_a_row % 2 else ConversationTooLong()
            breaker = breaker.note_failure(error, trigger)
            in_a_row += trigger is Trigger.AUTO
        assert in_a_row <= MOST_FAILURES


def test_cleanup_forgets_one_thread() -> None:
    cleaned, other = ThreadMemory(), ThreadMemory()
    for memory in (cleaned, other):
        memory.micro.has_occurred = True
        memory.cache_edits = CacheEditState(order=("t1",))
        memory.sections.add("memory", iter(["before", "after"]).__next__)
        memory.sections.resolve()
        memory.breaker = Breaker(2)
    cleaned.clean_up()
    assert (cleaned.micro.has_occurred, cleaned.cache_edits, cleaned.breaker) == (False, CacheEditState(), Breaker())
    assert cleaned.sections.resolve()[-1] == "after"
    assert (other.micro.has_occurred, other.cache_edits.order, other.breaker) == (True, ("t1",), Breaker(2))
    assert other.sections.resolve()[-1] == "before"

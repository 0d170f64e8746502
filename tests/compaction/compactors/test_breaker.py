"""The breaker, and cleanup by thread."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction.compactors.breaker import MAX_FAILURES_IN_A_ROW, Breaker, list_breaker_events
from compaction.compactors.micro.cache_edits import CacheEditState
from compaction.compactors.outcome import Trigger
from compaction.compactors.thread_state import ThreadState
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
    for _ in range(MAX_FAILURES_IN_A_ROW):
        breaker.require_closed(Trigger.AUTO)
        breaker = breaker.after_failure(EmptySummary(), Trigger.AUTO)
    assert breaker.is_open
    for trigger in (Trigger.AUTO, Trigger.AUTONOMOUS):
        with pytest.raises(AutomaticRunsPaused, match="3 failures"):
            breaker.require_closed(trigger)
    breaker.require_closed(Trigger.MANUAL)
    assert not breaker.after_success().is_open


@pytest.mark.parametrize("error", [CompactionCancelled(), BlockedByHook("no"), NothingToCompact()])
def test_what_was_decided_against_is_no_failure(error: RunError) -> None:
    assert Breaker(2).after_failure(error, Trigger.AUTO) == Breaker(2)


def test_a_failure_by_hand_does_not_count() -> None:
    assert Breaker(2).after_failure(EmptySummary(), Trigger.MANUAL) == Breaker(2)


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
            breaker.require_closed(trigger)
        except AutomaticRunsPaused:
            assert in_a_row == MAX_FAILURES_IN_A_ROW
            continue
        if run == "success":
            breaker, in_a_row = breaker.after_success(), 0
        elif run == "cancel":
            breaker = breaker.after_failure(CompactionCancelled(), trigger)
        else:
            error = SummarizerUnavailable("overloaded") if in_a_row % 2 else ConversationTooLong()
            breaker = breaker.after_failure(error, trigger)
            in_a_row += trigger is Trigger.AUTO
        assert in_a_row <= MAX_FAILURES_IN_A_ROW


def test_cleanup_forgets_one_thread() -> None:
    cleaned, other = ThreadState(), ThreadState()
    for memory in (cleaned, other):
        memory.micro.has_occurred = True
        memory.cache_edits = CacheEditState(order=("t1",))
        memory.sections.add("memory", iter(["before", "after"]).__next__)
        memory.sections.resolve()
        memory.breaker = Breaker(2)
    cleaned.reset_after_compaction()
    assert (cleaned.micro.has_occurred, cleaned.cache_edits, cleaned.breaker) == (False, CacheEditState(), Breaker())
    assert cleaned.sections.resolve()[-1] == "after"
    assert (other.micro.has_occurred, other.cache_edits.order, other.breaker) == (True, ("t1",), Breaker(2))
    assert other.sections.resolve()[-1] == "before"

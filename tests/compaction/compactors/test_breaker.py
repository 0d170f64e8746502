"""The breaker, cleanup by thread, and crossings of the line."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction.compactors.breaker import MOST_FAILURES, Breaker, list_breaker_events
from compaction.compactors.crossing import CrossingAnswer, CrossingWatch, answer_crossing
from compaction.compactors.micro.cache_edits import CacheEditState
from compaction.compactors.outcome import Trigger
from compaction.compactors.thread_state import ThreadMemories, copy_memory, expect_drop, take_expected_drop
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


def test_cleanup_forgets_one_thread_and_keeps_its_announced_skills() -> None:
    memories = ThreadMemories()
    for agent in (None, "a1"):
        memory = memories.get("s", agent)
        memory.micro.has_occurred = True
        memory.cache_edits = CacheEditState(order=("t1",))
        memory.prompt_sections["memory"] = "text"
        memory.read_files["/a"] = "hash"
        memory.cache_baseline_tokens = 90_000
        memory.breaker = Breaker(2)
        memory.announced_skills = frozenset({"docs"})
    forgotten = memories.clean_up("s", "a1")
    assert forgotten == (
        "micro tracking", "pinned edits", "prompt sections", "read files", "cache baseline", "failures",
    )  # fmt: skip
    cleaned, other = memories.get("s", "a1"), memories.get("s")
    assert cleaned.cache_edits == CacheEditState()
    assert (cleaned.breaker, cleaned.cache_baseline_tokens, cleaned.prompt_sections) == (Breaker(), None, {})
    assert cleaned.announced_skills == {"docs"}
    assert (other.breaker, other.cache_baseline_tokens, other.read_files) == (Breaker(2), 90_000, {"/a": "hash"})
    assert memories.clean_up("s", "a1") == ()


def test_break_detection_expects_one_lower_read_after_a_compaction() -> None:
    memory = ThreadMemories().get("s")
    memory.clean_up()
    assert take_expected_drop(memory) == "compacted"
    assert take_expected_drop(memory) is None
    expect_drop(memory, "cleared")
    assert copy_memory(memory).expected_drop == "cleared"


def test_a_copy_of_a_memory_goes_its_own_way_and_a_dropped_one_is_gone() -> None:
    memories = ThreadMemories()
    memory = memories.get("s")
    copy = copy_memory(memory)
    copy.read_files["/a"] = "x"
    assert memory.read_files == {}
    memory.breaker = Breaker(3)
    memories.drop("s")
    assert memories.get("s").breaker == Breaker()


def test_a_crossing_is_answered_once_until_five_percent_below_or_a_boundary() -> None:
    watch = CrossingWatch()
    seen = []
    for used, boundary in [
        (99, None), (100, None), (101, None), (96, None), (100, None),
        (95, None), (100, None), (120, "b1"), (121, "b1"),
    ]:  # fmt: skip
        watch, answer = answer_crossing(
            watch, used_tokens=used, line_tokens=100, boundary_uuid=boundary, wish=CrossingAnswer.RUN
        )
        seen.append(answer is CrossingAnswer.RUN)
    assert seen == [False, True, False, False, False, False, True, True, False]


@pytest.mark.parametrize("wish", list(CrossingAnswer))
def test_the_team_decides_what_a_crossing_leads_to(wish: CrossingAnswer) -> None:
    _, answer = answer_crossing(CrossingWatch(), used_tokens=100, line_tokens=100, boundary_uuid=None, wish=wish)
    assert answer is wish

"""Where a cache broke, from what could still be read."""

import pytest

from compaction.cache.break_places import BreakPlace, locate_losses
from compaction.cache.breaks import judge_thread
from compaction.timeline.calls import CONVERSATION_START
from tests.compaction.cache.builders import call

E, S, C, L = BreakPlace.EVERYTHING, BreakPlace.SYSTEM, BreakPlace.CONVERSATION, BreakPlace.LATER

# Reads of the calls of a thread, each of 60,000 tokens but the first, which has 30,000; places of the losses.
THREADS: dict[str, tuple[str | None, list[int], list[BreakPlace]]] = {
    "as the first call read": (CONVERSATION_START, [16_606, 29_900, 16_606], [C]),
    "a few tokens less": (CONVERSATION_START, [16_606, 29_900, 16_589], [C]),
    "shorter than the first prompt": (CONVERSATION_START, [0, 29_900, 16_606], [C]),
    "nothing": (CONVERSATION_START, [16_606, 29_900, 0], [E]),
    "part of the system prompt": (CONVERSATION_START, [16_606, 29_900, 10_947, 16_600], [S, C]),
    "the first prompt": (CONVERSATION_START, [16_606, 29_900, 59_990, 29_990], [L]),
    "later": (CONVERSATION_START, [16_606, 29_900, 59_990, 45_000, 16_606], [L, C]),
    "once is no system prompt where another is read again": (
        CONVERSATION_START,
        [9_000, 29_900, 9_010, 20_000],
        [C, L],
    ),
    "in the middle of a conversation, once": (None, [0, 29_900, 16_606], [L]),
    "in the middle of a conversation, again": (None, [0, 29_900, 16_606, 0, 16_606], [C, E, C]),
}


@pytest.mark.parametrize("name", THREADS)
def test_place_follows_from_what_was_read(name: str) -> None:
    parent, reads, places = THREADS[name]
    calls = [
        call(f"m{number}", read, (30_000 if number == 0 else 60_000) - read, minutes=number / 10,
             parent_call_id=parent if number == 0 else f"m{number - 1}")
        for number, read in enumerate(reads)
    ]  # fmt: skip
    found = locate_losses({each.call_id: each for each in calls}, judge_thread(calls))
    assert [at.place for at in found.values()] == places
    assert all(f"{at.read_tokens:,}" in at.sentence for at in found.values() if at.place in (S, L))


def test_thread_without_a_loss_has_no_place() -> None:
    calls = [call("m0", 0, 30_000, parent_call_id=CONVERSATION_START), call("m1", 30_000, 500, parent_call_id="m0")]
    assert locate_losses({each.call_id: each for each in calls}, judge_thread(calls)) == {}

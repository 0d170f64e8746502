"""Events: names as the log knows them, ids and numbers and codes only, nothing that is not known."""

from dataclasses import fields

import pytest

from compaction import events
from compaction.events import BreakerClosed, BreakerOpened, Event, FileNotRestored

KINDS = [
    kind for kind in vars(events).values() if isinstance(kind, type) and issubclass(kind, Event) and kind is not Event
]


def test_every_event_of_the_log_has_its_name() -> None:
    assert {kind.name for kind in KINDS} == {
        "compaction_completed",
        "compaction_failed",
        "summary_answered",
        "microcompact",
        "threshold_exceeded",
        "cache_break",
        "breaker_opened",
        "breaker_closed",
        "file_restored",
        "file_not_restored",
    }


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_events_carry_no_field_for_text(kind: type[Event]) -> None:
    words = {"text", "prompt", "summary", "content", "message", "instructions", "path_name"}
    assert words.isdisjoint(field.name for field in fields(kind))


def test_what_is_not_known_is_left_out() -> None:
    assert BreakerClosed().to_fields() == {"event": "breaker_closed"}
    assert BreakerOpened(session_id="s", agent_id="a", failures=3).to_fields() == {
        "event": "breaker_opened",
        "session_id": "s",
        "agent_id": "a",
        "failures": 3,
    }
    assert FileNotRestored(position=1, tokens=2, reason="budget").to_fields()["reason"] == "budget"

"""What a call is judged against: the last judged call of its thread, and what made a lower read expected since."""

from collections.abc import Mapping
from datetime import datetime

import msgspec

from compaction.cache.causes import Cause
from compaction.llm.lookup import keeps_thinking
from compaction.prompt.fingerprint import Fingerprint
from compaction.timeline.calls import Call
from compaction.timeline.preceding import Event

EVENT_CAUSES: Mapping[Event, Cause] = {
    Event.COMPACTED: Cause.COMPACTED,
    Event.MICRO_COMPACTED: Cause.MICRO_COMPACTED,
    Event.RESULTS_DELETED: Cause.DELETION_ANNOUNCED,
}

_NO_CAUSES: frozenset[Cause] = frozenset()


class Baseline(msgspec.Struct, frozen=True, gc=False):
    """The prefix that the last judged call of a thread left in the cache."""

    call_id: str
    at: datetime
    model: str | None
    read_tokens: int
    written_tokens: int
    ttl: str | None = None
    client_version: str | None = None
    speed: str | None = None
    has_thinking: bool = False  # that the model drops when a new prompt arrives
    fingerprint: Fingerprint | None = None
    expected_causes: frozenset[Cause] = frozenset()
    deleted_tokens: int = 0

    @property
    def cached_tokens(self) -> int:
        """Return the size of the prefix that the next call should find."""
        return self.read_tokens + self.written_tokens


def build_baseline(previous: Baseline | None, call: Call) -> Baseline:
    """Return the baseline after a judged call. A call that wrote nothing leaves the lifetime in force as it was."""
    usage = call.usage
    previous_ttl = previous.ttl if previous else None
    drops_thinking = (call.starts_turn or call.has_thinking) and not keeps_thinking(call.model)
    has_earlier_thinking = previous is not None and previous.has_thinking and not (drops_thinking and call.starts_turn)
    return Baseline(
        call_id=call.call_id,
        at=call.at,
        model=call.model,
        read_tokens=usage.cache_read_tokens,
        written_tokens=usage.cache_creation_tokens,
        ttl=call.written_ttl or previous_ttl or call.requested_ttl,
        client_version=call.client_version,
        speed=usage.speed,
        has_thinking=(drops_thinking and call.has_thinking) or has_earlier_thinking,
        fingerprint=call.fingerprint,
        deleted_tokens=usage.cache_deleted_tokens,
    )


def add_expected_causes(baseline: Baseline | None, causes: frozenset[Cause]) -> Baseline | None:
    """Return the baseline with causes that make a lower read at the next judged call expected."""
    if baseline is None or not causes:
        return baseline
    return msgspec.structs.replace(baseline, expected_causes=baseline.expected_causes | causes)


def list_expected_causes(call: Call) -> frozenset[Cause]:
    """Return the causes that the events before a call stand for."""
    return frozenset(EVENT_CAUSES[event] for event in call.events) if call.events else _NO_CAUSES

"""What the API cleared from prompts by itself. It tells all of it with every call, as the client sends all again.

Only what is more than with the call before was cleared then, whatever was remembered when it was told.
"""

from collections.abc import Mapping, Sequence

from compaction.timeline.calls import SOURCES, belongs_to_conversation
from compaction.timeline.observations import (
    REPORT,
    CompactionRecord,
    LineKind,
    Observation,
    change_compacted,
    change_observation,
)

BY_API = "api"  # the trigger of such a compaction
_PROXY = SOURCES[0]  # nobody else tells of it

_Thread = tuple[bool, str | None]
_Total = tuple[int, int]  # tokens and pieces cleared from the last prompt


def subtract_earlier_clearing(facts: Sequence[Observation]) -> Sequence[Observation]:
    """Ordered facts; as they are where the API cleared nothing. What clears no more than before is left out."""
    if not any([fact.kind is LineKind.MICRO and _is_by_api(fact) for fact in facts]):  # noqa: C419 (half the time)
        return facts
    totals = {
        fact.answer.call_id: fact.answer.cleared_tokens
        for fact in facts
        if fact.answer and fact.answer.source == _PROXY
    }
    before: dict[_Thread, _Total] = {}
    settled = []
    for fact in facts:
        thread = fact.is_sidechain, fact.agent_id if fact.is_sidechain else None
        tokens, count = before.get(thread, (0, 0))
        if fact.compacted is not None and _is_by_api(fact):
            grown = _grow(fact.compacted, _find_total(fact, totals) - tokens, count)
            before[thread] = tokens, fact.compacted.cleared_count
            if grown is not None:
                settled.append(change_observation(fact, compacted=grown))
            continue
        settled.append(fact)
        if fact.answer is not None and fact.answer.source == _PROXY and belongs_to_conversation(fact):
            total = fact.answer.cleared_tokens
            before[thread] = total, count if total >= tokens else 0
    return settled


def _is_by_api(fact: Observation) -> bool:
    return fact.type == REPORT and fact.compacted is not None and fact.compacted.trigger == BY_API


def _find_total(fact: Observation, totals: Mapping[str, int]) -> int:
    """Of the call that the fact is named after."""
    told = fact.compacted.saved_tokens if fact.compacted else None
    return totals.get(fact.id.partition(":")[2], told or 0)


def _grow(told: CompactionRecord, tokens: int, count: int) -> CompactionRecord | None:
    saved_tokens = min(told.saved_tokens or 0, tokens)
    if saved_tokens <= 0:
        return None
    return change_compacted(told, saved_tokens=saved_tokens, cleared_count=max(0, told.cleared_count - count))

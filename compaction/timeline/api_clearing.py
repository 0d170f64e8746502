"""Context clearing applied by the API. Each response reports a cumulative total, because the client sends everything
again with every call; the amount cleared by one call is the increase over the previous call."""

from collections.abc import Mapping, Sequence

import msgspec

from compaction.timeline.calls import belongs_to_conversation
from compaction.timeline.observations import (
    REPORT,
    CompactionRecord,
    LineKind,
    Observation,
    ThreadKey,
    thread_key,
)
from compaction.timeline.sources import SOURCES

BY_API = "api"  # the trigger of such a compaction
_PROXY = SOURCES[0]  # the only source that reports it


def subtract_earlier_clearing(lines: Sequence[Observation]) -> Sequence[Observation]:
    """Return ordered lines without clearing that an earlier call reported; the same lines when the API cleared
    nothing."""
    if not any([line.kind is LineKind.MICRO and _is_by_api(line) for line in lines]):  # noqa: C419 (half the time)
        return lines
    totals = {
        line.response.call_id: line.response.cleared_tokens
        for line in lines
        if line.response and line.response.source == _PROXY
    }
    before: dict[ThreadKey, tuple[int, int]] = {}  # tokens and blocks cleared from the last prompt of each thread
    remaining = []
    for line in lines:
        thread = thread_key(line)
        tokens, count = before.get(thread, (0, 0))
        if line.compaction is not None and _is_by_api(line):
            increase = _compute_increase(line.compaction, _get_total(line, totals) - tokens, count)
            before[thread] = tokens, line.compaction.cleared_count
            if increase is not None:
                remaining.append(msgspec.structs.replace(line, compaction=increase))
            continue
        remaining.append(line)
        if line.response is not None and line.response.source == _PROXY and belongs_to_conversation(line):
            total = line.response.cleared_tokens
            before[thread] = total, count if total >= tokens else 0
    return remaining


def _is_by_api(line: Observation) -> bool:
    return line.type == REPORT and line.compaction is not None and line.compaction.trigger == BY_API


def _get_total(line: Observation, totals: Mapping[str, int]) -> int:
    """Return the total of the call that the observation is named after."""
    reported = line.compaction.saved_tokens if line.compaction else None
    return totals.get(line.id.partition(":")[2], reported or 0)


def _compute_increase(record: CompactionRecord, tokens: int, count: int) -> CompactionRecord | None:
    saved_tokens = min(record.saved_tokens or 0, tokens)
    if saved_tokens <= 0:
        return None
    return msgspec.structs.replace(
        record, saved_tokens=saved_tokens, cleared_count=max(0, record.cleared_count - count)
    )

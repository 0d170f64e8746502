"""What the client itself says in hooks and on its status line, brought together with what lines tell of the same.

A turn, a compaction or a miss that a line or report tells of is told once; what nobody else tells of counts.
"""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from compaction.timeline.observations import (
    CompactionRecord,
    LineKind,
    Observation,
    change_observation,
    change_response,
)

# The client notices a miss when the answer is there; lines of the answer are written while it comes in.
NEAR_MISS = timedelta(seconds=60)
# A failed attempt is told by telemetry when it ends, by a hook when it begins.
NEAR_ATTEMPT = timedelta(minutes=5)
NO_REASON_TOLD = "the client did not say why"

_Thread = tuple[bool, str | None]
_ENDS_ATTEMPT = frozenset({"PreCompact", "Stop", "UserPromptSubmit", "SessionEnd"})
_COMPACTED = frozenset({LineKind.BOUNDARY, LineKind.OLDER_SUMMARY})


def merge_client_reports(facts: Sequence[Observation]) -> Sequence[Observation]:
    """Ordered facts; as they are where the client said nothing beside its transcript."""
    if not any([fact.client is not None for fact in facts]):  # noqa: C419 (half the time)
        return facts
    return _give_reasons(_settle_hooks(_settle_attempts(facts)))


def _get_thread(fact: Observation) -> _Thread:
    return fact.is_sidechain, fact.agent_id if fact.is_sidechain else None


def _get_event(fact: Observation) -> str:
    return fact.client.event if fact.client is not None and fact.kind is LineKind.HOOK else ""


def _settle_hooks(facts: Sequence[Observation]) -> list[Observation]:
    """Hooks as the lines they stand for. Prompts count where the thread has none of its own, each once."""
    spoken = {_get_thread(fact) for fact in facts if fact.kind is LineKind.PROMPT}
    counted: set[str] = set()
    settled = []
    for fact in facts:
        event, told = _get_event(fact), fact.client
        if event == "Stop":
            settled.append(change_observation(fact, kind=LineKind.TURN_END))
        elif event == "SessionStart" and told is not None and told.detail == "resume":
            settled.append(change_observation(fact, kind=LineKind.RESTART))
        elif event == "UserPromptSubmit" and told is not None and _get_thread(fact) not in spoken:
            name = told.prompt_id or fact.id
            is_first = name not in counted
            counted.add(name)
            settled.append(change_observation(fact, kind=LineKind.PROMPT, has_words=True) if is_first else fact)
        else:
            settled.append(fact)
    return settled


def _settle_attempts(facts: Sequence[Observation]) -> list[Observation]:
    """An attempt to compact that the next one, or the end of the turn, finds without a compaction has failed."""
    failed = {fact.id for fact in _find_failed(facts)}
    told_at = [fact.at for fact in facts if fact.kind is LineKind.COMPACTION_REPORT and fact.name and fact.at]
    return [_fail(fact) if fact.id in failed and not _is_near(fact.at, told_at) else fact for fact in facts]


def _find_failed(facts: Sequence[Observation]) -> Iterable[Observation]:
    open_attempts: dict[_Thread, Observation] = {}
    for fact in facts:
        thread, event = _get_thread(fact), _get_event(fact)
        if fact.kind in _COMPACTED or (fact.kind is LineKind.COMPACTION_REPORT and not fact.name):
            open_attempts.pop(thread, None)
        elif event in _ENDS_ATTEMPT and thread in open_attempts:
            yield open_attempts.pop(thread)
        if event == "PreCompact":
            open_attempts[thread] = fact


def _is_near(at: datetime | None, others: Iterable[datetime]) -> bool:
    return at is not None and any(timedelta(0) <= other - at <= NEAR_ATTEMPT for other in others)


def _fail(fact: Observation) -> Observation:
    compacted = fact.compacted or CompactionRecord()
    return change_observation(fact, kind=LineKind.COMPACTION_REPORT, name=NO_REASON_TOLD, compacted=compacted)


def _give_reasons(facts: Sequence[Observation]) -> list[Observation]:
    """Why the client thinks it missed the cache, to the call of the main conversation that missed it."""
    misses = [fact for fact in facts if fact.client is not None and fact.client.reasons and fact.at is not None]
    if not misses:
        return list(facts)
    answers = sorted(
        (fact for fact in facts if fact.answer is not None and fact.at is not None and not fact.is_sidechain),
        key=_get_time,
    )
    times = [_get_time(fact) for fact in answers]
    changed: dict[str, Observation] = {}
    for miss in misses:
        at = _get_time(miss)
        place = bisect_left(times, at)
        near = min(answers[max(0, place - 1) : place + 1], key=lambda fact: abs(_get_time(fact) - at), default=None)
        if near is not None and near.answer is not None and abs(_get_time(near) - at) <= NEAR_MISS and miss.client:
            answer = change_response(near.answer, client_reasons=miss.client.reasons)
            changed[near.id] = change_observation(near, answer=answer)
    return [changed.get(fact.id, fact) for fact in facts]


def _get_time(fact: Observation) -> datetime:
    if fact.at is None:
        raise ValueError(fact.id)  # those without a time were left out
    return fact.at

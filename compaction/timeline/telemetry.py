"""Facts that telemetry reports, brought together with what lines tell of the same: one thing is told once.

Reports of calls are merged in fact_calls; here they get the thread and the name of the call they are about.
"""

from bisect import insort
from collections.abc import Sequence
from datetime import datetime, timedelta

from compaction.timeline.observations import (
    REPORT,
    CompactionRecord,
    LineKind,
    Observation,
    Response,
    change_observation,
)

# A boundary and the report of its compaction are written at the same moment, by clocks of one machine.
NEAR_COMPACTION = timedelta(minutes=2)
# A line is written while the answer comes in, a report when it is there.
NEAR_CALL = timedelta(minutes=10)
TRANSCRIPT = "transcript"

_Thread = tuple[bool, str | None]
_FULL = frozenset({LineKind.BOUNDARY, LineKind.OLDER_SUMMARY})


def merge_telemetry(facts: Sequence[Observation]) -> Sequence[Observation]:
    """Ordered facts with reports merged; as they are where nobody reports. Reported compactions that no line tells of
    become boundaries, failed ones stay reports; reported prompts count where a thread has no prompts of its own."""
    if REPORT not in {fact.type for fact in facts}:
        return facts
    placed = _place_reports(_name_calls(facts))
    return _settle_prompts(_settle_compactions(placed))


def _get_thread(fact: Observation) -> _Thread:
    return fact.is_sidechain, fact.agent_id if fact.is_sidechain else None


def _place_reports(facts: Sequence[Observation]) -> list[Observation]:
    """A report of a call stands in the thread of its lines, or where the best-informed report says."""
    if not any(fact.is_sidechain for fact in facts):
        return list(facts)
    threads: dict[str, _Thread] = {}
    told = [fact for fact in facts if fact.answer is not None]
    for fact in sorted(told, key=lambda fact: (_get_source(fact) != TRANSCRIPT, not fact.is_sidechain, fact.id)):
        for name in _list_names(fact.answer):
            threads.setdefault(name, _get_thread(fact))
    return [_move(fact, threads) if fact.answer and fact.type == REPORT else fact for fact in facts]


def _move(fact: Observation, threads: dict[str, _Thread]) -> Observation:
    found = next((threads[name] for name in _list_names(fact.answer) if name in threads), _get_thread(fact))
    return fact if found == _get_thread(fact) else change_observation(fact, is_sidechain=found[0], agent_id=found[1])


def _list_names(answer: Response | None) -> list[str]:
    return [] if answer is None else [name for name in (answer.request_id, answer.call_id) if name]


def _get_source(fact: Observation) -> str:
    return fact.answer.source if fact.answer else ""


def _name_calls(facts: Sequence[Observation]) -> list[Observation]:
    """Some providers give requests no id. A report without one is about the call with its figures nearest in time."""
    nameless = [fact for fact in facts if fact.answer is not None and _is_nameless(fact.answer)]
    if not nameless:
        return list(facts)
    named: dict[tuple[int, int, int], list[tuple[datetime, str]]] = {}
    for fact in facts:
        if fact.answer is not None and fact.at is not None and not _is_nameless(fact.answer):
            insort(named.setdefault(_get_figures(fact.answer), []), (fact.at, fact.answer.call_id))
    taken: set[tuple[str, str]] = set()
    renamed: dict[str, Observation] = {}
    for fact in sorted(nameless, key=lambda fact: fact.id):
        if fact.answer is None or fact.at is None or fact.answer.usage.prompt_tokens == 0:
            continue
        figures, kind = _get_figures(fact.answer), _get_kind(fact)
        at = fact.at
        near = [
            (abs(when - at), name)
            for when, name in named.get(figures, ())
            if abs(when - at) <= NEAR_CALL and (kind, name) not in taken
        ]
        if near:
            name = min(near)[1]
            renamed[fact.id] = change_observation(fact, answer=_rename(fact.answer, name))
        else:
            name = fact.answer.call_id
            insort(named.setdefault(figures, []), (at, name))
        taken.add((kind, name))
    return [renamed.get(fact.id, fact) for fact in facts]


def _rename(answer: Response, call_id: str) -> Response:
    values = {name: getattr(answer, name) for name in answer.__struct_fields__}
    return Response(**values | {"call_id": call_id})


def _is_nameless(answer: Response) -> bool:
    """Such calls are named after their source, for want of anything better."""
    return answer.request_id is None and answer.call_id.startswith(f"{answer.source}-")


def _get_figures(answer: Response) -> tuple[int, int, int]:
    usage = answer.usage
    return usage.input_tokens, usage.cache_creation_tokens, usage.cache_read_tokens


def _get_kind(fact: Observation) -> str:
    """Who reports what: `otlp:call`, `otlp:span`. One of a kind speaks of a thing once."""
    return ":".join(fact.id.split(":")[:2])


def _settle_compactions(facts: Sequence[Observation]) -> list[Observation]:
    known = {fact.id: fact for fact in facts if fact.kind in _FULL and fact.compacted is not None}
    tellers: dict[str, set[str]] = {}
    merged: set[str] = set()
    for report in (fact for fact in facts if fact.kind is LineKind.COMPACTION_REPORT and not fact.name):
        kind = _get_kind(report)
        near = [
            (distance, fact.id)
            for fact in known.values()
            if kind not in tellers.get(fact.id, ()) and (distance := _measure(fact, report)) is not None
        ]
        name = min(near)[1] if near else report.id
        tellers.setdefault(name, set()).add(kind)
        if near:
            merged.add(report.id)
            known[name] = _fill(known[name], report.compacted)
        else:
            known[name] = change_observation(report, kind=LineKind.BOUNDARY)
    return [known.get(fact.id, fact) for fact in facts if fact.id not in merged]


def _measure(fact: Observation, report: Observation) -> timedelta | None:
    """How far apart they are; None where they cannot be the same compaction."""
    one, other = fact.compacted or CompactionRecord(), report.compacted or CompactionRecord()
    if fact.at is None or report.at is None or _get_thread(fact) != _get_thread(report):
        return None
    if one.trigger and other.trigger and one.trigger != other.trigger:
        return None
    distance = abs(fact.at - report.at)
    return distance if distance <= NEAR_COMPACTION else None


_FILLED = ("trigger", "before_tokens", "after_tokens", "duration_seconds", "saved_tokens", "summary_tokens")


def _fill(fact: Observation, told: CompactionRecord | None) -> Observation:
    """What the line does not say; what it says stays."""
    known = fact.compacted or CompactionRecord()
    values = {name: getattr(known, name) for name in known.__struct_fields__}
    values |= {name: getattr(told, name) for name in _FILLED if values[name] is None and told is not None}
    return change_observation(fact, compacted=CompactionRecord(**values))


def _settle_prompts(facts: Sequence[Observation]) -> list[Observation]:
    spoken = {_get_thread(fact) for fact in facts if fact.kind is LineKind.PROMPT}
    settled = []
    for fact in facts:
        if fact.kind is not LineKind.PROMPT_REPORT:
            settled.append(fact)
        elif _get_thread(fact) not in spoken:
            settled.append(change_observation(fact, kind=LineKind.PROMPT))
    return settled

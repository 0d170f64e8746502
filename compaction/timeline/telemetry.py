"""Merges reports of other sources with transcript lines, so that what several sources report counts once.

Reports of calls are merged in `calls`; here they get the thread and the id of the call they are about.
"""

from bisect import insort
from collections.abc import Sequence
from datetime import datetime, timedelta

import msgspec

from compaction.timeline.observations import (
    REPORT,
    CompactionRecord,
    LineKind,
    Observation,
    Response,
    ThreadKey,
    thread_key,
)
from compaction.timeline.sources import TRANSCRIPT

# A boundary and the report of its compaction are written at the same moment, by clocks of one machine.
NEAR_COMPACTION = timedelta(minutes=2)
# A line is written while the response arrives, a report when it is complete.
NEAR_CALL = timedelta(minutes=10)

_FULL = frozenset({LineKind.BOUNDARY, LineKind.OLDER_SUMMARY})


def merge_telemetry(lines: Sequence[Observation]) -> Sequence[Observation]:
    """Return ordered lines with reports merged; the same lines when there are no reports.

    Reported compactions without a line become boundaries, failed ones stay reports. Reported prompts count where a
    thread has no prompts of its own.
    """
    if REPORT not in {line.type for line in lines}:
        return lines
    return _merge_prompts(_merge_compactions(_assign_threads(_assign_call_ids(lines))))


def _assign_threads(lines: Sequence[Observation]) -> list[Observation]:
    """Move reports of calls to the thread of the call's lines, or to that of its best-informed report."""
    if not any(line.is_sidechain for line in lines):
        return list(lines)
    threads: dict[str, ThreadKey] = {}
    responses = [line for line in lines if line.response is not None]
    for line in sorted(responses, key=lambda line: (_get_source(line) != TRANSCRIPT, not line.is_sidechain, line.id)):
        for call_name in _list_call_names(line.response):
            threads.setdefault(call_name, thread_key(line))
    return [_move(line, threads) if line.response and line.type == REPORT else line for line in lines]


def _move(report: Observation, threads: dict[str, ThreadKey]) -> Observation:
    current = thread_key(report)
    thread = next((threads[name] for name in _list_call_names(report.response) if name in threads), current)
    if thread == current:
        return report
    return msgspec.structs.replace(report, is_sidechain=thread[0], agent_id=thread[1])


def _list_call_names(response: Response | None) -> list[str]:
    return [] if response is None else [name for name in (response.request_id, response.call_id) if name]


def _get_source(line: Observation) -> str:
    return line.response.source if line.response else ""


def _assign_call_ids(lines: Sequence[Observation]) -> list[Observation]:
    """Give reports without a request id the id of the call with the same figures that is nearest in time, as some
    providers give requests no id."""
    unidentified = [line for line in lines if line.response is not None and _is_unidentified(line.response)]
    if not unidentified:
        return list(lines)
    calls: dict[tuple[int, int, int], list[tuple[datetime, str]]] = {}
    for line in lines:
        if line.response is not None and line.at is not None and not _is_unidentified(line.response):
            insort(calls.setdefault(_get_figures(line.response), []), (line.at, line.response.call_id))
    assigned: set[tuple[str, str]] = set()
    changed: dict[str, Observation] = {}
    for report in sorted(unidentified, key=lambda line: line.id):
        response, at = report.response, report.at
        if response is None or at is None or response.usage.prompt_tokens == 0:
            continue
        figures, reporter = _get_figures(response), _get_reporter(report)
        candidates = [
            (abs(call_at - at), call_id)
            for call_at, call_id in calls.get(figures, ())
            if abs(call_at - at) <= NEAR_CALL and (reporter, call_id) not in assigned
        ]
        if candidates:
            call_id = min(candidates)[1]
            identified = msgspec.structs.replace(response, call_id=call_id)
            changed[report.id] = msgspec.structs.replace(report, response=identified)
        else:
            call_id = response.call_id
            insort(calls.setdefault(figures, []), (at, call_id))
        assigned.add((reporter, call_id))
    return [changed.get(line.id, line) for line in lines]


def _is_unidentified(response: Response) -> bool:
    """Return whether a call is named after its source because it has no id."""
    return response.request_id is None and response.call_id.startswith(f"{response.source}-")


def _get_figures(response: Response) -> tuple[int, int, int]:
    usage = response.usage
    return usage.input_tokens, usage.cache_creation_tokens, usage.cache_read_tokens


def _get_reporter(report: Observation) -> str:
    """Return what kind of report it is, such as `otlp:call` or `otlp:span`; each kind reports a call once."""
    return ":".join(report.id.split(":")[:2])


def _merge_compactions(lines: Sequence[Observation]) -> list[Observation]:
    compactions = {line.id: line for line in lines if line.kind in _FULL and line.compaction is not None}
    reporters: dict[str, set[str]] = {}
    merged: set[str] = set()
    for report in (line for line in lines if line.kind is LineKind.COMPACTION_REPORT and not line.name):
        reporter = _get_reporter(report)
        candidates = [
            (distance, line.id)
            for line in compactions.values()
            if reporter not in reporters.get(line.id, ()) and (distance := _measure_distance(line, report)) is not None
        ]
        line_id = min(candidates)[1] if candidates else report.id
        reporters.setdefault(line_id, set()).add(reporter)
        if candidates:
            merged.add(report.id)
            compactions[line_id] = _fill_gaps(compactions[line_id], report.compaction)
        else:
            compactions[line_id] = msgspec.structs.replace(report, kind=LineKind.BOUNDARY)
    return [compactions.get(line.id, line) for line in lines if line.id not in merged]


def _measure_distance(line: Observation, report: Observation) -> timedelta | None:
    """Return the time between them; None when they cannot be the same compaction."""
    one, other = line.compaction or CompactionRecord(), report.compaction or CompactionRecord()
    if line.at is None or report.at is None or thread_key(line) != thread_key(report):
        return None
    if one.trigger and other.trigger and one.trigger != other.trigger:
        return None
    distance = abs(line.at - report.at)
    return distance if distance <= NEAR_COMPACTION else None


_REPORTED = ("trigger", "before_tokens", "after_tokens", "duration_seconds", "saved_tokens", "summary_tokens")


def _fill_gaps(line: Observation, reported: CompactionRecord | None) -> Observation:
    """Return the line with reported figures where it has none itself."""
    record = line.compaction or CompactionRecord()
    gaps = {name: getattr(reported, name) for name in _REPORTED if reported and getattr(record, name) is None}
    return msgspec.structs.replace(line, compaction=msgspec.structs.replace(record, **gaps))


def _merge_prompts(lines: Sequence[Observation]) -> list[Observation]:
    """Return reported prompts as prompts, without those of threads that have prompts of their own."""
    threads = {thread_key(line) for line in lines if line.kind is LineKind.PROMPT}
    merged = []
    for line in lines:
        if line.kind is not LineKind.PROMPT_REPORT:
            merged.append(line)
        elif thread_key(line) not in threads:
            merged.append(msgspec.structs.replace(line, kind=LineKind.PROMPT))
    return merged

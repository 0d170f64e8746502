"""Merges what the client reports in hooks and on its status line with transcript lines and telemetry.

A turn, a compaction or a cache miss that a line or telemetry report records counts once; one that only the client
reports counts too.
"""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

import msgspec

from compaction.timeline.observations import CompactionRecord, LineKind, Observation, ThreadKey, thread_key

# The client notices a miss when the response is complete; lines of the response are written while it arrives.
NEAR_MISS = timedelta(seconds=60)
# Telemetry reports a failed attempt when it ends, a hook when it begins.
NEAR_ATTEMPT = timedelta(minutes=5)
UNKNOWN_REASON = "the client did not say why"

_ENDS_ATTEMPT = frozenset({"PreCompact", "Stop", "UserPromptSubmit", "SessionEnd"})
_COMPACTED = frozenset({LineKind.BOUNDARY, LineKind.OLDER_SUMMARY})


def merge_client_reports(lines: Sequence[Observation]) -> Sequence[Observation]:
    """Return ordered lines with client reports merged; the same lines when there are no client reports."""
    if not any([line.client_report is not None for line in lines]):  # noqa: C419 (half the time)
        return lines
    return _assign_miss_reasons(_merge_hooks(_mark_failed_attempts(lines)))


def _get_hook(line: Observation) -> str:
    return line.client_report.event if line.client_report is not None and line.kind is LineKind.HOOK else ""


def _merge_hooks(lines: Sequence[Observation]) -> list[Observation]:
    """Return hooks as the lines they correspond to. Prompts count once, and only if the thread has none of its own."""
    threads = {thread_key(line) for line in lines if line.kind is LineKind.PROMPT}
    prompt_ids: set[str] = set()
    merged = []
    for line in lines:
        event, report = _get_hook(line), line.client_report
        if event == "Stop":
            merged.append(msgspec.structs.replace(line, kind=LineKind.TURN_END))
        elif event == "SessionStart" and report is not None and report.detail == "resume":
            merged.append(msgspec.structs.replace(line, kind=LineKind.RESTART))
        elif event == "UserPromptSubmit" and report is not None and thread_key(line) not in threads:
            prompt_id = report.prompt_id or line.id
            is_first = prompt_id not in prompt_ids
            prompt_ids.add(prompt_id)
            prompt = msgspec.structs.replace(line, kind=LineKind.PROMPT, has_user_content=True)
            merged.append(prompt if is_first else line)
        else:
            merged.append(line)
    return merged


def _mark_failed_attempts(lines: Sequence[Observation]) -> list[Observation]:
    """Return attempts to compact as failed when no compaction followed before the next attempt or the turn's end."""
    failed = {line.id for line in _find_failed_attempts(lines)}
    reported = [line.at for line in lines if line.kind is LineKind.COMPACTION_REPORT and line.name and line.at]
    return [_mark_failed(line) if line.id in failed and not _is_reported(line.at, reported) else line for line in lines]


def _find_failed_attempts(lines: Sequence[Observation]) -> Iterable[Observation]:
    open_attempts: dict[ThreadKey, Observation] = {}
    for line in lines:
        thread, event = thread_key(line), _get_hook(line)
        if line.kind in _COMPACTED or (line.kind is LineKind.COMPACTION_REPORT and not line.name):
            open_attempts.pop(thread, None)
        elif event in _ENDS_ATTEMPT and thread in open_attempts:
            yield open_attempts.pop(thread)
        if event == "PreCompact":
            open_attempts[thread] = line


def _is_reported(at: datetime | None, reported: Iterable[datetime]) -> bool:
    return at is not None and any(timedelta(0) <= reported_at - at <= NEAR_ATTEMPT for reported_at in reported)


def _mark_failed(line: Observation) -> Observation:
    record = line.compaction or CompactionRecord()
    return msgspec.structs.replace(line, kind=LineKind.COMPACTION_REPORT, name=UNKNOWN_REASON, compaction=record)


def _assign_miss_reasons(lines: Sequence[Observation]) -> list[Observation]:
    """Add the client's reasons for a cache miss to the nearest call of the main conversation."""
    misses = [line for line in lines if line.client_report is not None and line.client_report.reasons and line.at]
    if not misses:
        return list(lines)
    responses = sorted(
        (line for line in lines if line.response is not None and line.at is not None and not line.is_sidechain),
        key=_get_time,
    )
    times = [_get_time(line) for line in responses]
    changed: dict[str, Observation] = {}
    for miss in misses:
        at = _get_time(miss)
        index = bisect_left(times, at)
        near = min(responses[max(0, index - 1) : index + 1], key=lambda line: abs(_get_time(line) - at), default=None)
        if near is None or near.response is None or miss.client_report is None or abs(_get_time(near) - at) > NEAR_MISS:
            continue
        response = msgspec.structs.replace(near.response, client_reasons=miss.client_report.reasons)
        changed[near.id] = msgspec.structs.replace(near, response=response)
    return [changed.get(line.id, line) for line in lines]


def _get_time(line: Observation) -> datetime:
    if line.at is None:
        raise ValueError(line.id)  # lines without a time were filtered out
    return line.at

"""Computes how full the window of a thread is, from its observations: what the last call of its branch measured, and
the estimate of what arrived since. It is the same branch that transcripts/chain.py follows over entries."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from compaction.context.composition import LARGEST_PREFIX_TOKENS
from compaction.context.tokens import ContextSize, add_margin
from compaction.timeline.calls import Call, belongs_to_conversation
from compaction.timeline.observations import LineKind, Observation
from compaction.timeline.sources import TRANSCRIPT

_BOUNDARY = LineKind.BOUNDARY
_MESSAGES = frozenset({"user", "assistant"})
_RESTORED = frozenset({LineKind.SUMMARY, LineKind.ATTACHMENT})  # in the size that a boundary reports
_BESIDE = frozenset({LineKind.RESULT, LineKind.ATTACHMENT})  # may be beside the branch


@dataclass(slots=True)
class _Branch:
    """The lines of a conversation since its last answer or boundary, with results and attachments beside them."""

    end: Observation | None = None  # the answer or boundary
    ids: set[str] = field(default_factory=set)
    lines: list[Observation] = field(default_factory=list)


def measure_thread_context(lines: Sequence[Observation], calls: Sequence[Call]) -> ContextSize:
    """Return the size of a thread's context. `calls` are its calls without those beside the conversation.

    After a compaction without a later call, all of it is an estimate: what the boundary reports or the sum of its
    lines, and system and tools as the first call of the thread had them.
    """
    measured = {call.call_id: call for call in calls if call.usage.prompt_tokens}
    last = next(reversed(measured.values()), None)
    branch = _find_branch(lines, measured)
    if branch is None:
        return ContextSize(last.usage.context_tokens, 0, last.call_id) if last else ContextSize(0, 0)
    if branch.end is None:
        return ContextSize(0, add_margin(_sum_tokens(branch.lines)) + _find_prefix_tokens(lines, measured))
    if branch.end.response is not None:
        usage = measured[branch.end.response.call_id].usage
        return ContextSize(usage.context_tokens, add_margin(_sum_tokens(branch.lines)), branch.end.response.call_id)
    reported = (branch.end.compaction.after_tokens if branch.end.compaction else None) or 0
    counted = [line for line in branch.lines if not (reported and line.kind in _RESTORED)]
    return ContextSize(0, reported + add_margin(_sum_tokens(counted)) + _find_prefix_tokens(lines, measured))


def _sum_tokens(lines: Sequence[Observation]) -> int:
    return sum(line.tokens or 0 for line in lines)


def _find_branch(lines: Sequence[Observation], measured: dict[str, Call]) -> _Branch | None:
    """Return the current branch; None without lines, or when the last call is known from telemetry only."""
    leaf = next((index for index in range(len(lines) - 1, -1, -1) if _is_message(lines[index])), None)
    if leaf is None or any(_is_unwritten(line, measured) for line in lines[leaf + 1 :]):
        return None
    indexes = {line.id: index for index, line in enumerate(lines)}
    branch = _Branch()
    index: int | None = leaf
    while index is not None and lines[index].id not in branch.ids:
        line = lines[index]
        if line.kind is _BOUNDARY or (line.response is not None and line.response.call_id in measured):
            branch.end = line
            break
        branch.ids.add(line.id)
        branch.lines.append(line)
        index = _find_parent(line, index, lines, indexes)
    _add_lines_beside(lines, branch, indexes)
    return branch


def _is_message(line: Observation) -> bool:
    return line.type in _MESSAGES or line.kind is _BOUNDARY


def _is_unwritten(line: Observation, measured: dict[str, Call]) -> bool:
    """Return whether this is a report of a conversation call that has no line."""
    if line.response is None or line.response.source == TRANSCRIPT or not belongs_to_conversation(line):
        return False
    call = measured.get(line.response.call_id)
    return call is not None and call.line_count == 0


def _find_parent(line: Observation, index: int, lines: Sequence[Observation], indexes: dict[str, int]) -> int | None:
    """Return the index of the parent, or of the message before when the parent is missing or not recorded."""
    if line.parent is not None and line.parent in indexes:
        return indexes[line.parent]
    if line.parent is None and line.agent_id is None:
        return None
    return next((above for above in range(index - 1, -1, -1) if _is_message(lines[above])), None)


def _add_lines_beside(lines: Sequence[Observation], branch: _Branch, indexes: dict[str, int]) -> None:
    """Add results of parallel tools, also those between the lines of their answer, and pending attachments."""
    end = branch.end
    end_ids = [] if end is None else [end.id]
    if end is not None and end.response is not None:
        call_id = end.response.call_id
        end_ids = [line.id for line in lines if line.response is not None and line.response.call_id == call_id]
    connected = {*branch.ids, *end_ids}
    for line in lines[indexes[end_ids[0]] if end_ids else 0 :]:
        if line.kind in _BESIDE and line.id not in connected and line.parent in connected:
            connected.add(line.id)
            branch.lines.append(line)


def _find_prefix_tokens(lines: Sequence[Observation], measured: dict[str, Call]) -> int:
    """Return what system and tools take: what the first call read beyond the lines before it. Of a transcript that
    begins in the middle that holds an earlier conversation too, so no more of it counts than they usually take."""
    before = 0
    first_message = next((line for line in lines if line.type in _MESSAGES), None)
    for line in lines:
        call = measured.get(line.response.call_id) if line.response is not None else None
        if call is not None:
            beyond = max(0, call.usage.prompt_tokens - add_margin(before))
            is_whole = first_message is not None and _begins_thread(first_message, lines)
            return beyond if is_whole else min(beyond, LARGEST_PREFIX_TOKENS)
        before += line.tokens or 0
    return 0


def _begins_thread(first: Observation, lines: Sequence[Observation]) -> bool:
    """Return whether the transcript holds the start of the thread: no ancestor of its first message is missing."""
    by_id = {line.id: line for line in lines}
    seen: set[str] = set()
    line: Observation | None = first
    while line is not None and line.parent is not None and line.id not in seen and line.kind is not _BOUNDARY:
        seen.add(line.id)
        if line.parent not in by_id:
            return False
        line = by_id[line.parent]
    return True

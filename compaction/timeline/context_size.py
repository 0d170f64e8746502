"""How full the window of a thread is now, from its facts: what the last call of its branch measured, and the estimate
of what arrived since. The same branch that compaction/transcripts/chain.py follows over entries."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from compaction.context.composition import LARGEST_PREFIX_TOKENS
from compaction.context.tokens import ContextSize, add_margin
from compaction.timeline.calls import TRANSCRIPT, Call, belongs_to_conversation
from compaction.timeline.observations import LineKind, Observation

_BOUNDARY = LineKind.BOUNDARY
_MESSAGES = frozenset({"user", "assistant"})
_RESTORED = frozenset({LineKind.SUMMARY, LineKind.ATTACHMENT})  # in the size that a boundary reports
_BESIDE = frozenset({LineKind.RESULT, LineKind.ATTACHMENT})  # may hang beside the branch


@dataclass(slots=True)
class _Branch:
    """The lines of a conversation since its last answer or boundary, with results and attachments beside them."""

    end: Observation | None = None  # the answer or boundary
    ids: set[str] = field(default_factory=set)
    lines: list[Observation] = field(default_factory=list)


def measure_thread_context(facts: Sequence[Observation], turns: Sequence[Call]) -> ContextSize:
    """Return the size of a thread's context. `turns` are its calls without those beside the conversation.

    Behind a compaction that no call has followed, all of it is an estimate: what the boundary reports or its lines come
    to, and system and tools as the first call of the thread had them.
    """
    measured = {call.call_id: call for call in turns if call.usage.prompt_tokens}
    last = next(reversed(measured.values()), None)
    branch = _find_branch(facts, measured)
    if branch is None:
        return ContextSize(last.usage.context_tokens, 0, last.call_id) if last else ContextSize(0, 0)
    if branch.end is None:
        return ContextSize(0, add_margin(_sum_tokens(branch.lines)) + _find_prefix_tokens(facts, measured))
    if branch.end.answer is not None:
        usage = measured[branch.end.answer.call_id].usage
        return ContextSize(usage.context_tokens, add_margin(_sum_tokens(branch.lines)), branch.end.answer.call_id)
    reported = (branch.end.compacted.after_tokens if branch.end.compacted else None) or 0
    counted = [fact for fact in branch.lines if not (reported and fact.kind in _RESTORED)]
    return ContextSize(0, reported + add_margin(_sum_tokens(counted)) + _find_prefix_tokens(facts, measured))


def _sum_tokens(lines: Sequence[Observation]) -> int:
    return sum(fact.tokens or 0 for fact in lines)


def _find_branch(facts: Sequence[Observation], measured: dict[str, Call]) -> _Branch | None:
    """Return the current branch; None without lines, or when the last call is known from telemetry only."""
    leaf = next((index for index in range(len(facts) - 1, -1, -1) if _is_message(facts[index])), None)
    if leaf is None or any(_is_unwritten(fact, measured) for fact in facts[leaf + 1 :]):
        return None
    places = {fact.id: index for index, fact in enumerate(facts)}
    branch = _Branch()
    index: int | None = leaf
    while index is not None and facts[index].id not in branch.ids:
        fact = facts[index]
        if fact.kind is _BOUNDARY or (fact.answer is not None and fact.answer.call_id in measured):
            branch.end = fact
            break
        branch.ids.add(fact.id)
        branch.lines.append(fact)
        index = _find_parent(fact, index, facts, places)
    _add_lines_beside(facts, branch, places)
    return branch


def _is_message(fact: Observation) -> bool:
    return fact.type in _MESSAGES or fact.kind is _BOUNDARY


def _is_unwritten(fact: Observation, measured: dict[str, Call]) -> bool:
    """Return whether this is a report of a conversation call that has no line."""
    if fact.answer is None or fact.answer.source == TRANSCRIPT or not belongs_to_conversation(fact):
        return False
    call = measured.get(fact.answer.call_id)
    return call is not None and call.line_count == 0


def _find_parent(fact: Observation, index: int, facts: Sequence[Observation], places: dict[str, int]) -> int | None:
    """Return the index of the parent, or of the message before when the parent is missing or not recorded."""
    if fact.parent is not None and fact.parent in places:
        return places[fact.parent]
    if fact.parent is None and fact.agent_id is None:
        return None
    return next((above for above in range(index - 1, -1, -1) if _is_message(facts[above])), None)


def _add_lines_beside(facts: Sequence[Observation], branch: _Branch, places: dict[str, int]) -> None:
    """Add results of parallel tools, also those between the lines of their answer, and pending attachments."""
    end = branch.end
    own = [] if end is None else [end.id]
    if end is not None and end.answer is not None:
        call_id = end.answer.call_id
        own = [fact.id for fact in facts if fact.answer is not None and fact.answer.call_id == call_id]
    connected = {*branch.ids, *own}
    for fact in facts[places[own[0]] if own else 0 :]:
        if fact.kind in _BESIDE and fact.id not in connected and fact.parent in connected:
            connected.add(fact.id)
            branch.lines.append(fact)


def _find_prefix_tokens(facts: Sequence[Observation], measured: dict[str, Call]) -> int:
    """Return what system and tools take: what the first call read beyond the lines before it. Of a transcript that
    begins in the middle that holds an earlier conversation too, so no more of it counts than they usually take."""
    before = 0
    first_message = next((fact for fact in facts if fact.type in _MESSAGES), None)
    for fact in facts:
        call = measured.get(fact.answer.call_id) if fact.answer is not None else None
        if call is not None:
            beyond = max(0, call.usage.prompt_tokens - add_margin(before))
            is_whole = first_message is not None and _begins_thread(first_message, facts)
            return beyond if is_whole else min(beyond, LARGEST_PREFIX_TOKENS)
        before += fact.tokens or 0
    return 0


def _begins_thread(first: Observation, facts: Sequence[Observation]) -> bool:
    """Return whether the transcript holds the start of the thread: no ancestor of its first message is missing."""
    by_id = {fact.id: fact for fact in facts}
    seen: set[str] = set()
    fact: Observation | None = first
    while fact is not None and fact.parent is not None and fact.id not in seen and fact.kind is not _BOUNDARY:
        seen.add(fact.id)
        if fact.parent not in by_id:
            return False
        fact = by_id[fact.parent]
    return True

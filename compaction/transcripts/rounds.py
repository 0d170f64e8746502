"""Rounds: one model response with the results that follow it; and split points, where a conversation may be divided."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from compaction.transcripts.entries import Entry, ToolResultBlock, ToolUseBlock


@dataclass(frozen=True, slots=True)
class Round:
    """A response and everything up to the next one; the first round may hold only what is before any response."""

    entries: tuple[Entry, ...]
    message_id: str | None = None


@dataclass(slots=True)
class _Draft:
    index: int
    message_id: str | None
    entries: list[Entry]
    joined_to: "_Draft | None" = None

    def find(self) -> "_Draft":
        """Return the round that this one was joined to."""
        draft = self
        while draft.joined_to is not None:
            draft.joined_to = draft.joined_to.joined_to or draft.joined_to
            draft = draft.joined_to
        return draft


def group_rounds(entries: Iterable[Entry]) -> tuple[Round, ...]:
    """Return the entries in rounds. A round begins with another response; a tool pair is never in two rounds."""
    drafts: list[_Draft] = []
    requested_in: dict[str, _Draft] = {}
    for entry in entries:
        message_id = _find_response_id(entry)
        if not drafts or (message_id is not None and message_id != drafts[-1].message_id):
            drafts.append(_Draft(len(drafts), message_id, []))
        drafts[-1].entries.append(entry)
        _join_rounds(drafts, _find_home(entry, requested_in, drafts[-1]))
    return tuple(Round(tuple(draft.entries), draft.message_id) for draft in drafts)


def _find_response_id(entry: Entry) -> str | None:
    if entry.type != "assistant" or entry.message is None:
        return None
    return entry.message.id or entry.uuid or f"line {entry.line_number}"


def _find_home(entry: Entry, requested_in: dict[str, _Draft], here: _Draft) -> int:
    """Return the index of the earliest round that this entry answers; record the requests it makes."""
    home = here.index
    for block in entry.message.content if entry.message else ():
        if isinstance(block, ToolUseBlock):
            requested_in.setdefault(block.id, here)
        elif isinstance(block, ToolResultBlock) and block.tool_use_id in requested_in:
            home = min(home, requested_in[block.tool_use_id].find().index)
    return home


def _join_rounds(drafts: list[_Draft], home: int) -> None:
    """Join all rounds from a request to its later result into one."""
    while len(drafts) - 1 > home:
        late = drafts.pop()
        late.joined_to = drafts[-1]
        drafts[-1].entries += late.entries
        drafts[-1].message_id = late.message_id


def compute_split_points(entries: Sequence[Entry]) -> tuple[bool, ...]:
    """Return for each index from 0 to len(entries) whether the entries may be divided before it.

    A split point separates neither a tool request from its result nor the lines of one response.
    """
    changes = [0] * (len(entries) + 1)
    first: dict[tuple[str, str], int] = {}
    last: dict[tuple[str, str], int] = {}
    for index, entry in enumerate(entries):
        for tie in _list_ties(entry):
            first.setdefault(tie, index)
            last[tie] = index
    for tie, start in first.items():
        changes[start] += 1
        changes[last[tie]] -= 1
    split_points = [True]
    open_ties = 0
    for index in range(len(entries)):
        open_ties += changes[index]
        split_points.append(open_ties == 0)
    return tuple(split_points)


def find_split_point(entries: Sequence[Entry], index: int) -> int:
    """Return the nearest split point at or before this index."""
    split_points = compute_split_points(entries)
    return next(point for point in range(min(index, len(entries)), -1, -1) if split_points[point])


def _list_ties(entry: Entry) -> Iterator[tuple[str, str]]:
    """List what ties an entry to others: its response, and the tool requests it makes or answers."""
    message = entry.message
    if message is None:
        return
    if message.id is not None:
        yield "response", message.id
    for block in message.content:
        if isinstance(block, ToolUseBlock):
            yield "tool", block.id
        elif isinstance(block, ToolResultBlock):
            yield "tool", block.tool_use_id

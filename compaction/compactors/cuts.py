"""Cuts: the places where a conversation may be divided without parting a tool pair or the lines of one response."""

from collections.abc import Iterator, Sequence

from compaction.transcripts.entries import Entry, ToolResultBlock, ToolUseBlock


def find_cuts(entries: Sequence[Entry]) -> tuple[bool, ...]:
    """For every index from 0 to len(entries): whether the entries may be divided before it."""
    depth = [0] * (len(entries) + 1)
    first: dict[tuple[str, str], int] = {}
    last: dict[tuple[str, str], int] = {}
    for index, entry in enumerate(entries):
        for tie in _list_ties(entry):
            first.setdefault(tie, index)
            last[tie] = index
    for tie, start in first.items():
        depth[start] += 1
        depth[last[tie]] -= 1
    cuts = [True]
    open_ties = 0
    for index in range(len(entries)):
        open_ties += depth[index]
        cuts.append(open_ties == 0)
    return tuple(cuts)


def find_cut(entries: Sequence[Entry], index: int) -> int:
    """The nearest place at or before this index where the entries may be divided."""
    cuts = find_cuts(entries)
    return next(place for place in range(min(index, len(entries)), -1, -1) if cuts[place])


def _list_ties(entry: Entry) -> Iterator[tuple[str, str]]:
    """What holds this entry to others: its response, and the tool requests it makes or answers."""
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

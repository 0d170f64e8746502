"""The active branch of a transcript, its boundaries, and the slice of it that the model still sees."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from compaction.transcripts.client_protocol import COMPACT_BOUNDARY
from compaction.transcripts.entries import Entry, ToolResultBlock, ToolUseBlock
from compaction.transcripts.payloads import Boundary

CONVERSATION_TYPES = frozenset({"user", "assistant", "attachment", "system"})


@dataclass(frozen=True, slots=True)
class Chain:
    """The active branch of a thread in file order. `gaps`: its entries whose parent is missing, where it continues at
    the line before them."""

    entries: tuple[Entry, ...]
    gaps: frozenset[str] = frozenset()

    def count_gaps(self, context: "ContextSlice") -> int:
        """Return how many gaps are in what the model sees. What is before the boundary has left the context."""
        boundary = context.boundary.uuid if context.boundary else None
        return sum(entry.uuid in self.gaps for entry in context.entries if entry.uuid and entry.uuid != boundary)


@dataclass(frozen=True, slots=True)
class ContextSlice:
    """What the model sees: from the last boundary on, kept old entries after the summary that anchors them."""

    entries: tuple[Entry, ...]
    boundary: Entry | None = None
    kept_uuids: frozenset[str] = frozenset()


def is_boundary(entry: Entry) -> bool:
    """Return whether everything before this entry has left the context."""
    return entry.type == "system" and entry.subtype == COMPACT_BOUNDARY


def find_leaf(entries: Sequence[Entry]) -> Entry | None:
    """Return the end of the conversation: the last message or boundary, of the main thread if it has any.

    Attachments and notices may be on a side branch, so they are a leaf only where there is nothing else.
    """
    chained = [entry for entry in entries if entry.uuid is not None and entry.type in CONVERSATION_TYPES]
    thread = [entry for entry in chained if not entry.is_sidechain] or chained
    leaves = [entry for entry in thread if entry.message is not None or is_boundary(entry)] or thread
    return leaves[-1] if leaves else None


def find_chain(entries: Sequence[Entry], leaf: Entry | None = None, *, over_gaps: bool = True) -> Chain:
    """Return the active branch in file order: from the leaf through its parents, without rewound branches.

    Results of parallel tool requests, which are on side branches, and other lines of the same response are included.
    Without a leaf the branch ends at the end of the conversation and includes what was attached there since. Where a
    parent is missing the branch continues at the line before it; without `over_gaps` it ends there, as it does for a
    client that resumes these entries.
    """
    end = leaf or find_leaf(entries)
    if end is None:
        return Chain(())
    by_uuid = {entry.uuid: entry for entry in entries if entry.uuid is not None}
    chosen, gaps = _walk_up(end, entries, by_uuid, over_gaps=over_gaps)
    chosen.update(_find_siblings(entries, chosen))
    order = {uuid: index for index, uuid in enumerate(by_uuid)}
    if leaf is None:
        _add_pending(entries, chosen, end)
    return Chain(tuple(by_uuid[uuid] for uuid in sorted(chosen, key=order.__getitem__)), gaps)


def follow_chain(entries: Sequence[Entry], leaf: Entry | None = None) -> tuple[Entry, ...]:
    """Return the entries of the active branch, across gaps."""
    return find_chain(entries, leaf).entries


def _add_pending(entries: Sequence[Entry], chosen: set[str], end: Entry) -> None:
    """Add attachments and notices written after the leaf, which go into the next request."""
    start = next(index for index in range(len(entries) - 1, -1, -1) if entries[index].uuid == end.uuid)
    for entry in entries[start + 1 :]:
        is_pending = entry.type in ("attachment", "system") and entry.is_sidechain == end.is_sidechain
        if is_pending and entry.uuid is not None and entry.parent_uuid in chosen:
            chosen.add(entry.uuid)


def _walk_up(
    leaf: Entry, entries: Sequence[Entry], by_uuid: dict[str, Entry], *, over_gaps: bool
) -> tuple[set[str], frozenset[str]]:
    """Return the uuids of the leaf and its ancestors, and those among them whose parent is missing."""
    seen: set[str] = set()
    gaps: set[str] = set()
    indexes: dict[str | None, int] = {}
    entry: Entry | None = leaf
    while entry is not None and entry.uuid is not None and entry.uuid in by_uuid and entry.uuid not in seen:
        seen.add(entry.uuid)
        parent = (is_boundary(entry) and entry.logical_parent_uuid) or entry.parent_uuid
        above = by_uuid.get(parent) if parent is not None else None
        # A sub-agent's lines from inside its parent's file have no parent, and none is missing.
        is_unlinked = parent is None and entry.agent_id is not None and not is_boundary(entry)
        if above is None and (parent is not None or is_unlinked) and over_gaps:
            indexes = indexes or {line.uuid: index for index, line in enumerate(entries)}
            above = _find_line_before(entries, indexes[entry.uuid], seen)
            if above is not None and not is_unlinked:
                gaps.add(entry.uuid)
        entry = above
    return seen, frozenset(gaps)


def _find_line_before(entries: Sequence[Entry], position: int, seen: set[str]) -> Entry | None:
    """Return the line at which an entry with a missing parent continues: the last message or boundary of its thread
    before it, or what follows that message in an unbroken row. None where the file begins with the entry.

    A summary replaces all before it, so it continues at a boundary or nowhere. Sub-agents without an id cannot be
    distinguished, so their gaps stay.
    """
    entry = entries[position]
    if entry.is_sidechain and entry.agent_id is None:
        return None
    thread = (entry.is_sidechain, entry.agent_id)
    between: list[Entry] = []
    for index in range(position - 1, -1, -1):
        above = entries[index]
        if above.uuid is None or above.uuid in seen or (above.is_sidechain, above.agent_id) != thread:
            continue
        if above.message is None and not is_boundary(above):
            between.append(above)
            continue
        if entry.is_compact_summary and not is_boundary(above):
            return None
        for line in reversed(between):
            above = line if line.parent_uuid == above.uuid else above
        return above
    return None


def _find_siblings(entries: Sequence[Entry], chosen: set[str]) -> set[str]:
    """Return the lines of chosen responses and the results of their tool requests that are on a side branch."""
    message_ids = {
        entry.message.id for entry in entries if entry.uuid in chosen and entry.is_response and entry.message
    }
    message_ids.discard(None)
    lines = {entry.uuid for entry in entries if entry.message and entry.message.id in message_ids and entry.uuid}
    family = chosen | lines
    candidates = [
        entry
        for entry in entries
        if entry.type == "user" and entry.uuid and entry.uuid not in family and entry.parent_uuid in family
    ]
    if not candidates:
        return lines
    open_requests = _list_open_requests(entry for entry in entries if entry.uuid in family)
    return lines | {entry.uuid for entry in candidates if entry.uuid and _answers(entry, open_requests)}


def _list_open_requests(entries: Iterable[Entry]) -> set[str]:
    requested: set[str] = set()
    answered: set[str] = set()
    for entry in entries:
        for block in entry.message.content if entry.message else ():
            if isinstance(block, ToolUseBlock):
                requested.add(block.id)
            elif isinstance(block, ToolResultBlock):
                answered.add(block.tool_use_id)
    return requested - answered


def _answers(entry: Entry, request_ids: set[str]) -> bool:
    blocks = entry.message.content if entry.message else ()
    return any(isinstance(block, ToolResultBlock) and block.tool_use_id in request_ids for block in blocks)


def slice_context(chain: Sequence[Entry]) -> ContextSlice:
    """Return the chain from its last boundary on, with the preserved segment after its anchor.

    The client leaves that segment before the boundary; a transcript written by compactors has it after it already.
    """
    start = next((index for index in range(len(chain) - 1, -1, -1) if is_boundary(chain[index])), None)
    if start is None:
        return ContextSlice(tuple(chain))
    boundary = chain[start]
    kept = _find_kept(chain[:start], boundary)
    rest = list(chain[start:])
    segment = boundary.payload.preserved_segment if isinstance(boundary.payload, Boundary) else None
    anchor = segment.anchor_uuid if segment else None
    after = next((index for index, entry in enumerate(rest) if anchor and entry.uuid == anchor), 0) + 1
    carried = () if kept else _find_kept(rest, boundary)
    rest[after:after] = kept
    return ContextSlice(tuple(rest), boundary, frozenset(entry.uuid for entry in (*kept, *carried) if entry.uuid))


def _find_kept(entries: Sequence[Entry], boundary: Entry) -> Sequence[Entry]:
    """Return the preserved entries among these: from head to tail; none when either is missing."""
    segment = boundary.payload.preserved_segment if isinstance(boundary.payload, Boundary) else None
    if segment is None:
        return ()
    indexes = {entry.uuid: index for index, entry in enumerate(entries)}
    head, tail = indexes.get(segment.head_uuid), indexes.get(segment.tail_uuid)
    return () if head is None or tail is None else entries[head : tail + 1]

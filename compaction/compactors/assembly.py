"""Assembles the outcome: boundary, summary, kept entries and attachments, in order and linked into one chain.

Every uuid is computed from its input, so that the same input gives the same outcome.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID, uuid5

from msgspec import structs

from compaction.compactors.outcome import (
    CompactionOutcome,
    CompactorKind,
    EntryFate,
    EntryRecord,
    Summary,
    SummaryCall,
    Trigger,
)
from compaction.compactors.restore.items import RestoredContext
from compaction.context.tokens import count_entry_tokens, estimate_tokens, measure_context
from compaction.transcripts.chain import ContextSlice, find_chain, is_boundary
from compaction.transcripts.client_protocol import COMPACT_BOUNDARY
from compaction.transcripts.entries import Entry, OtherBlock, ResultPart, ToolResultBlock
from compaction.transcripts.json_fields import get_text
from compaction.transcripts.payloads import Boundary, PreservedSegment

_NAMESPACE = UUID("6c1c7b7e-9d5b-5d0e-8a5f-2f6f0b8f4c11")  # any fixed one: it only separates our uuids from others
BOUNDARY_TEXT = "Conversation compacted"  # protocol constant: the content of a boundary line
_COMMON_FIELDS = {"userType": "external", "isSidechain": False}  # every line of the client carries these


@dataclass(frozen=True, slots=True, kw_only=True)
class Replacement:
    """Parts of an outcome. `summary_entry` and the restored entries (hook results last) have no uuid and parent yet."""

    kind: CompactorKind
    trigger: Trigger
    now: datetime
    context: ContextSlice
    kept: tuple[Entry, ...]
    dropped: tuple[Entry, ...] = ()
    summary: Summary
    summary_entry: Entry
    restored: RestoredContext = field(default_factory=RestoredContext)
    calls: tuple[SummaryCall, ...] = ()
    user_context: str | None = None
    prefix_tokens: int = 0
    threshold_tokens: int | None = None
    display_messages: tuple[str, ...] = ()


def assemble_outcome(replacement: Replacement) -> CompactionOutcome:
    """Return the outcome of a compaction, its boundary first, without events."""
    linked = _link_entries(replacement)
    kept_uuids = {entry.uuid for entry in replacement.kept if entry.uuid}
    replaced_tokens = estimate_tokens(linked)
    pre_tokens = measure_context(replacement.context).tokens
    boundary = _fill_boundary(linked, replacement, pre_tokens=pre_tokens, post_tokens=replaced_tokens)
    entries = (boundary, *linked[1:])
    return CompactionOutcome(
        kind=replacement.kind,
        trigger=replacement.trigger,
        boundary=boundary,
        summary_entry=next(entry for entry in entries if entry.is_compact_summary and entry.uuid not in kept_uuids),
        entries=entries,
        kept=replacement.kept,
        fates=tuple(_list_records(replacement, entries)),
        restored=replacement.restored.items,
        summary=replacement.summary,
        calls=replacement.calls,
        pre_tokens=pre_tokens,
        replaced_tokens=replaced_tokens,
        prefix_tokens=replacement.prefix_tokens,
        threshold_tokens=replacement.threshold_tokens,
        display_messages=replacement.display_messages,
    )


def _link_entries(replacement: Replacement) -> tuple[Entry, ...]:
    """Return all entries in order, each with a uuid and a parent among them; only the boundary is a root."""
    linked = _link_in_order(replacement, is_straight=False)
    reached = {entry.uuid for entry in find_chain(linked, over_gaps=False).entries}
    # Entries preserved by an earlier compaction may lie between two linked lines: old links would bypass them.
    if all(entry.uuid in reached for entry in linked if entry.type in ("user", "assistant", "attachment")):
        return linked
    return _link_in_order(replacement, is_straight=True)


def _link_in_order(replacement: Replacement, *, is_straight: bool) -> tuple[Entry, ...]:
    """Link each entry to the one before it. Kept entries keep their old parent if it is included, unless straight."""
    last = _get_last_entry(replacement.context.entries)
    seed = f"{last.session_id}/{last.uuid}/{replacement.kind}/{replacement.now.isoformat()}"
    kept = {id(entry) for entry in replacement.kept}
    linked: list[Entry] = []
    seen: set[str | None] = set()
    for number, entry in enumerate(_order_entries(replacement, last)):
        parent = linked[-1].uuid if linked else None
        if id(entry) not in kept or entry.uuid is None:
            linked.append(_stamp_entry(entry, last, f"{seed}/{number}", parent=parent, now=replacement.now))
            continue
        is_linked = entry.parent_uuid == parent or (not is_straight and entry.parent_uuid in seen)
        linked.append(entry if is_linked else relink_entry(entry, parent))
        seen.add(entry.uuid)
    return tuple(linked)


def _order_entries(replacement: Replacement, last: Entry) -> tuple[Entry, ...]:
    boundary = Entry("system", subtype=COMPACT_BOUNDARY, logical_parent_uuid=last.uuid)
    messages: tuple[Entry, ...] = (replacement.summary_entry, *replacement.kept)
    if replacement.kind is CompactorKind.FROM:
        messages = (*replacement.kept, replacement.summary_entry)
    return (boundary, *messages, *replacement.restored.entries)


def _get_last_entry(entries: Sequence[Entry]) -> Entry:
    """Return the last entry with a uuid: the logical parent, and the template for the keys of new lines."""
    return next((entry for entry in reversed(entries) if entry.uuid is not None), entries[-1])


def _stamp_entry(entry: Entry, last: Entry, seed: str, *, parent: str | None, now: datetime) -> Entry:
    """Return a new line with the keys that every line of this session has."""
    return entry.changed(
        uuid=str(uuid5(_NAMESPACE, seed)),
        parent_uuid=parent,
        at=entry.at or now,
        session_id=last.session_id,
        agent_id=last.agent_id,
        is_sidechain=last.is_sidechain,
        version=last.version,
        cwd=last.cwd,
        git_branch=last.git_branch,
        fields={"parentUuid": parent, **_COMMON_FIELDS, **entry.fields},
    )


def relink_entry(entry: Entry, parent_uuid: str | None) -> Entry:
    """Return the entry with another parent. Only the parent's uuid changes in its raw line, if that is safe."""
    if entry.raw is None or entry.parent_uuid == parent_uuid:
        return entry.changed(parent_uuid=parent_uuid)
    for gap in (b"", b" "):
        key = b'"parentUuid":' + gap
        old = key + (f'"{entry.parent_uuid}"'.encode() if entry.parent_uuid is not None else b"null")
        new = key + (f'"{parent_uuid}"'.encode() if parent_uuid is not None else b"null")
        # Inside strings quotes are escaped, so this is a real key; more than one would be nested objects.
        if entry.raw.count(b'"parentUuid"') == 1 and entry.raw.count(old) == 1:
            return structs.replace(entry, parent_uuid=parent_uuid, raw=entry.raw.replace(old, new))
    return entry.changed(parent_uuid=parent_uuid)


def _fill_boundary(entries: Sequence[Entry], replacement: Replacement, *, pre_tokens: int, post_tokens: int) -> Entry:
    dropped_before = _get_dropped_tokens(replacement.context.boundary)
    payload = Boundary(
        trigger=replacement.trigger.protocol_value,
        pre_tokens=pre_tokens,
        post_tokens=post_tokens,
        duration_seconds=sum(call.duration_seconds for call in replacement.calls),
        messages_summarized=sum(1 for _ in _list_summarised(replacement)),
        preserved_segment=_build_segment(entries, replacement),
        discovered_tools=_list_discovered_tools(replacement.context),
        user_context=replacement.user_context,
        cumulative_dropped_tokens=dropped_before + max(0, pre_tokens - post_tokens),
    )
    fields = {**entries[0].fields, "content": BOUNDARY_TEXT, "level": "info", "isMeta": False}
    return structs.replace(entries[0], payload=payload, fields=fields)


def _get_dropped_tokens(boundary: Entry | None) -> int:
    payload = boundary.payload if boundary is not None else None
    return (payload.cumulative_dropped_tokens or 0) if isinstance(payload, Boundary) else 0


def _build_segment(entries: Sequence[Entry], replacement: Replacement) -> PreservedSegment | None:
    """Return head, tail and anchor of the kept entries. The anchor is the summary, or the boundary for "from"."""
    uuids = [entry.uuid for entry in replacement.kept if entry.uuid is not None]
    if not uuids:
        return None
    anchor = entries[0] if replacement.kind is CompactorKind.FROM else entries[1]
    return PreservedSegment(uuids[0], uuids[-1], anchor.uuid)


def _list_discovered_tools(context: ContextSlice) -> tuple[str, ...]:
    """Return the deferred tools found by tool search, before and since the last boundary."""
    payload = context.boundary.payload if context.boundary is not None else None
    names = list(payload.discovered_tools) if isinstance(payload, Boundary) else []
    for entry in context.entries:
        for block in entry.message.content if entry.message else ():
            if isinstance(block, ToolResultBlock):
                names += [name for part in block.parts if (name := _read_tool_reference(part))]
    return tuple(sorted(set(names)))


def _read_tool_reference(part: ResultPart) -> str | None:
    if isinstance(part, OtherBlock) and part.type == "tool_reference":
        return get_text(part.fields, "tool_name")
    return None


def _list_summarised(replacement: Replacement) -> Iterator[Entry]:
    """List the messages covered by the summary."""
    excluded = {id(entry) for entry in (*replacement.kept, *replacement.dropped)}
    for entry in replacement.context.entries:
        if id(entry) not in excluded and not is_boundary(entry) and entry.message is not None:
            yield entry


def _list_records(replacement: Replacement, entries: Iterable[Entry]) -> Iterator[EntryRecord]:
    kept = {entry.uuid for entry in replacement.kept}
    dropped = {entry.uuid for entry in replacement.dropped}
    for entry in replacement.context.entries:
        if entry.uuid is None or (entry.message is None and entry.type != "attachment"):
            continue
        fate = EntryFate.SUMMARISED
        if entry.uuid in kept:
            fate = EntryFate.KEPT
        elif entry.uuid in dropped:
            fate = EntryFate.DROPPED
        yield EntryRecord(entry.uuid, fate, count_entry_tokens(entry))
    for entry in entries:
        if entry.uuid is not None and entry.uuid not in kept:
            yield EntryRecord(entry.uuid, EntryFate.ADDED, count_entry_tokens(entry))

"""Assembly: boundary, summary, kept entries and attachments put in order and linked into one chain.

Every uuid is worked out from what it stands for, so that the same input gives the same outcome.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID, uuid5

from msgspec import structs

from compaction.compactors.outcome import (
    CompactionKind,
    CompactionOutcome,
    EntryFate,
    Fate,
    RestoredContext,
    Summary,
    SummaryCall,
    Trigger,
)
from compaction.context.tokens import count_entry_tokens, estimate_tokens, measure_context
from compaction.transcripts.chain import ContextSlice, find_chain, is_boundary
from compaction.transcripts.client_protocol import COMPACT_BOUNDARY
from compaction.transcripts.entries import Entry, OtherBlock, ResultPart, ToolResultBlock
from compaction.transcripts.json_fields import get_text
from compaction.transcripts.payloads import Boundary, PreservedSegment

_NAMESPACE = UUID("6c1c7b7e-9d5b-5d0e-8a5f-2f6f0b8f4c11")  # any fixed one: it only keeps our uuids apart from others
BOUNDARY_TEXT = "Conversation compacted"  # protocol constant: the content of a boundary line
_COMMON_FIELDS = {"userType": "external", "isSidechain": False}  # every line of the client carries these


@dataclass(frozen=True, slots=True, kw_only=True)
class Replacement:
    """What replaces what. `summary_entry` and the restored entries (hook results last) come without uuid and parent."""

    kind: CompactionKind
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
    line_tokens: int | None = None
    display_messages: tuple[str, ...] = ()


def assemble_outcome(replacement: Replacement) -> CompactionOutcome:
    """The outcome of a compaction, its boundary first; no events yet."""
    made = _link_entries(replacement)
    kept_uuids = {entry.uuid for entry in replacement.kept if entry.uuid}
    replaced_tokens = estimate_tokens(made)
    pre_tokens = measure_context(replacement.context).tokens
    boundary = _fill_boundary(made, replacement, pre_tokens=pre_tokens, post_tokens=replaced_tokens)
    entries = (boundary, *made[1:])
    return CompactionOutcome(
        kind=replacement.kind,
        trigger=replacement.trigger,
        boundary=boundary,
        summary_entry=next(entry for entry in entries if entry.is_compact_summary and entry.uuid not in kept_uuids),
        entries=entries,
        kept=replacement.kept,
        fates=tuple(_list_fates(replacement, entries)),
        restored=replacement.restored.items,
        summary=replacement.summary,
        calls=replacement.calls,
        pre_tokens=pre_tokens,
        replaced_tokens=replaced_tokens,
        prefix_tokens=replacement.prefix_tokens,
        line_tokens=replacement.line_tokens,
        display_messages=replacement.display_messages,
    )


def _link_entries(replacement: Replacement) -> tuple[Entry, ...]:
    """All entries in their order, each with a uuid and a parent among them; only the boundary is a root."""
    linked = _link_in_order(replacement, is_straight=False)
    reached = {entry.uuid for entry in find_chain(linked, over_gaps=False).entries}
    # What an earlier compaction kept stands between lines that hang together: old links would lead around it.
    if all(entry.uuid in reached for entry in linked if entry.type in ("user", "assistant", "attachment")):
        return linked
    return _link_in_order(replacement, is_straight=True)


def _link_in_order(replacement: Replacement, *, is_straight: bool) -> tuple[Entry, ...]:
    """Every line under the one before it, kept ones under their old parent where it is here; all when straight."""
    model = _find_model_entry(replacement.context.entries)
    seed = f"{model.session_id}/{model.uuid}/{replacement.kind}/{replacement.now.isoformat()}"
    kept = {id(entry) for entry in replacement.kept}
    linked: list[Entry] = []
    seen: set[str | None] = set()
    for number, entry in enumerate(_put_in_order(replacement, model)):
        parent = linked[-1].uuid if linked else None
        if id(entry) not in kept or entry.uuid is None:
            linked.append(_stamp_entry(entry, model, f"{seed}/{number}", parent=parent, now=replacement.now))
            continue
        is_linked = entry.parent_uuid == parent or (not is_straight and entry.parent_uuid in seen)
        linked.append(entry if is_linked else relink_entry(entry, parent))
        seen.add(entry.uuid)
    return tuple(linked)


def _put_in_order(replacement: Replacement, model: Entry) -> tuple[Entry, ...]:
    boundary = Entry("system", subtype=COMPACT_BOUNDARY, logical_parent_uuid=model.uuid)
    told: tuple[Entry, ...] = (replacement.summary_entry, *replacement.kept)
    if replacement.kind is CompactionKind.FROM:
        told = (*replacement.kept, replacement.summary_entry)
    return (boundary, *told, *replacement.restored.entries)


def _find_model_entry(entries: Sequence[Entry]) -> Entry:
    """The last line that carries a uuid: where the conversation stood, and what new lines are like."""
    return next((entry for entry in reversed(entries) if entry.uuid is not None), entries[-1])


def _stamp_entry(entry: Entry, model: Entry, seed: str, *, parent: str | None, now: datetime) -> Entry:
    """A line made here with the keys every line of this session carries."""
    return entry.changed(
        uuid=str(uuid5(_NAMESPACE, seed)),
        parent_uuid=parent,
        at=entry.at or now,
        session_id=model.session_id,
        agent_id=model.agent_id,
        is_sidechain=model.is_sidechain,
        version=model.version,
        cwd=model.cwd,
        git_branch=model.git_branch,
        fields={"parentUuid": parent, **_COMMON_FIELDS, **entry.fields},
    )


def relink_entry(entry: Entry, parent_uuid: str | None) -> Entry:
    """The entry under another parent. Of its raw line only the parent's uuid changes, where that can be done safely."""
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
    dropped_before = _find_dropped_before(replacement.context.boundary)
    payload = Boundary(
        trigger=replacement.trigger.written,
        pre_tokens=pre_tokens,
        post_tokens=post_tokens,
        duration_seconds=sum(call.duration_seconds for call in replacement.calls),
        messages_summarized=sum(1 for _ in _list_summarised(replacement)),
        preserved_segment=_find_segment(entries, replacement),
        discovered_tools=_find_discovered_tools(replacement.context),
        user_context=replacement.user_context,
        cumulative_dropped_tokens=dropped_before + max(0, pre_tokens - post_tokens),
    )
    fields = {**entries[0].fields, "content": BOUNDARY_TEXT, "level": "info", "isMeta": False}
    return structs.replace(entries[0], payload=payload, fields=fields)


def _find_dropped_before(boundary: Entry | None) -> int:
    payload = boundary.payload if boundary is not None else None
    return (payload.cumulative_dropped_tokens or 0) if isinstance(payload, Boundary) else 0


def _find_segment(entries: Sequence[Entry], replacement: Replacement) -> PreservedSegment | None:
    """Head and tail of what is kept, hung under the entry it follows: the summary, or the boundary for "from"."""
    uuids = [entry.uuid for entry in replacement.kept if entry.uuid is not None]
    if not uuids:
        return None
    anchor = entries[0] if replacement.kind is CompactionKind.FROM else entries[1]
    return PreservedSegment(uuids[0], uuids[-1], anchor.uuid)


def _find_discovered_tools(context: ContextSlice) -> tuple[str, ...]:
    """Deferred tools that were found by searching, before and since the last boundary."""
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
    """The messages that the summary stands for."""
    gone = {id(entry) for entry in (*replacement.kept, *replacement.dropped)}
    for entry in replacement.context.entries:
        if id(entry) not in gone and not is_boundary(entry) and entry.message is not None:
            yield entry


def _list_fates(replacement: Replacement, entries: Iterable[Entry]) -> Iterator[EntryFate]:
    kept = {entry.uuid for entry in replacement.kept}
    dropped = {entry.uuid for entry in replacement.dropped}
    for entry in replacement.context.entries:
        if entry.uuid is None or (entry.message is None and entry.type != "attachment"):
            continue
        fate = Fate.KEPT if entry.uuid in kept else Fate.DROPPED if entry.uuid in dropped else Fate.SUMMARISED
        yield EntryFate(entry.uuid, fate, count_entry_tokens(entry))
    for entry in entries:
        if entry.uuid is not None and entry.uuid not in kept:
            yield EntryFate(entry.uuid, Fate.ADDED, count_entry_tokens(entry))

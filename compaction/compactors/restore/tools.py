"""Restores the announcements of tools, agent types and MCP instructions: deltas of the session, summed up."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from compaction.compactors.restore.budget import RestoreBudgets, apply_total, fit_text
from compaction.compactors.restore.items import (
    RestoredItem,
    RestoredKind,
    build_attachment_entry,
    build_restored_item,
    build_skipped_item,
    clean_name,
)
from compaction.context.tokens import count_text_tokens
from compaction.transcripts.client_protocol import AttachmentKind
from compaction.transcripts.entries import Entry
from compaction.transcripts.json_fields import get_fields, get_texts
from compaction.transcripts.payloads import Attachment

_MARK = "[cut here: the instructions of this server are longer than what comes back of one server]"
# Attachment type: the keys of added names, of their lines, and of removed names.
_DELTAS: Mapping[str, tuple[str, str, str]] = {
    AttachmentKind.TOOLS_DELTA: ("addedNames", "addedLines", "removedNames"),
    AttachmentKind.AGENTS_DELTA: ("addedTypes", "addedLines", "removedTypes"),
    AttachmentKind.MCP_DELTA: ("addedNames", "addedBlocks", "removedNames"),
}
_TOOLS_HEAD = "These tools can be loaded on demand:"
_AGENTS_HEAD = "These agent types can be started:"


@dataclass(slots=True)
class AnnouncedTools:
    """Announcements in force: the announced line or text by name."""

    tools: dict[str, str] = field(default_factory=dict)
    agents: dict[str, str] = field(default_factory=dict)
    servers: dict[str, str] = field(default_factory=dict)


def read_announced(entries: Iterable[Entry]) -> AnnouncedTools:
    """Return the sum of all deltas of these entries."""
    announced = AnnouncedTools()
    tables = dict(zip(_DELTAS, (announced.tools, announced.agents, announced.servers), strict=True))
    for entry in entries:
        if isinstance(entry.payload, Attachment) and entry.payload.kind in _DELTAS:
            _add_delta(tables[entry.payload.kind], get_fields(entry.fields, "attachment"), _DELTAS[entry.payload.kind])
    return announced


def restore_tools(entries: Sequence[Entry], kept: Sequence[Entry], budgets: RestoreBudgets) -> list[RestoredItem]:
    """Return one item for all tools, one for all agent types, and one for each MCP server within its budget."""
    announced, visible = read_announced(entries), read_announced(kept)
    items = _restore_names(
        RestoredKind.TOOLS,
        AttachmentKind.TOOLS_DELTA,
        head=_TOOLS_HEAD,
        announced=announced.tools,
        visible=visible.tools,
    )
    items += _restore_names(
        RestoredKind.AGENT_LISTING,
        AttachmentKind.AGENTS_DELTA,
        head=_AGENTS_HEAD,
        announced=announced.agents,
        visible=visible.agents,
    )
    servers = [_restore_server(name, text, visible, budgets) for name, text in announced.servers.items()]
    return items + apply_total(servers, budgets.all_servers_tokens, "MCP instructions")


def _add_delta(table: dict[str, str], delta: Mapping[str, object], keys: tuple[str, str, str]) -> None:
    names, lines = get_texts(delta, keys[0]), get_texts(delta, keys[1])
    for number, name in enumerate(names):
        table[name] = lines[number] if number < len(lines) else name
    for name in get_texts(delta, keys[2]):
        table.pop(name, None)


def _restore_names(
    kind: RestoredKind, attachment_kind: str, *, head: str, announced: Mapping[str, str], visible: Mapping[str, str]
) -> list[RestoredItem]:
    if not announced:
        return []
    missing = {name: line for name, line in announced.items() if name not in visible}
    count = f"{len(announced)} {'tools' if kind is RestoredKind.TOOLS else 'agent types'}"
    if not missing:
        reason = "They are announced in the messages that were kept."
        return [build_skipped_item(kind, count, reason, code="still_visible")]
    added, lines, removed = _DELTAS[attachment_kind]
    text = "\n".join([head, *(f"- {line}" for line in missing.values())])
    attachment: dict[str, object] = {added: list(missing), lines: list(missing.values()), removed: []}
    entry = build_attachment_entry(attachment_kind, text, attachment)
    return [build_restored_item(kind, f"{len(missing)} of {count}", entry)]


def _restore_server(name: str, text: str, visible: AnnouncedTools, budgets: RestoreBudgets) -> RestoredItem:
    kind = RestoredKind.MCP_INSTRUCTIONS
    tokens = count_text_tokens(text)
    if name in visible.servers:
        reason = "They are still visible in the messages that were kept."
        return build_skipped_item(kind, name, reason, code="still_visible", tokens=tokens)
    head = f"Instructions of the MCP server {clean_name(name)}:"
    shown, is_cut = fit_text(text, head, budgets.server_tokens, _MARK)
    if not shown:
        reason = f"The server's name alone exceeds {budgets.server_tokens:,} tokens."
        return build_skipped_item(kind, name, reason, code="no_room", tokens=tokens)
    attachment = {"addedNames": [name], "addedBlocks": [shown.split("\n", 1)[1]], "removedNames": []}
    cut = f"Cut to {budgets.server_tokens:,} tokens." if is_cut else ""
    entry = build_attachment_entry(AttachmentKind.MCP_DELTA, shown, attachment)
    return build_restored_item(kind, name, entry, cut=cut)

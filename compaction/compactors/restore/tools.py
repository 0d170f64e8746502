"""Tools, agent types and MCP instructions: announced as deltas over the session, told again as what is in force now."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from compaction.compactors.outcome import RestoredItem, RestoredKind
from compaction.compactors.restore.budget import (
    RestoreBudgets,
    apply_total,
    clean_name,
    fit_text,
    make_attachment_entry,
    restore,
    skip,
)
from compaction.context.tokens import count_text_tokens
from compaction.transcripts.client_protocol import AttachmentKind
from compaction.transcripts.entries import Entry
from compaction.transcripts.json_fields import get_fields, get_texts
from compaction.transcripts.payloads import Attachment

_MARK = "[cut here: the instructions of this server are longer than what comes back of one server]"
# Attachment type: the keys of names added, of their lines, and of names taken away.
_DELTAS: Mapping[str, tuple[str, str, str]] = {
    AttachmentKind.TOOLS_DELTA: ("addedNames", "addedLines", "removedNames"),
    AttachmentKind.AGENTS_DELTA: ("addedTypes", "addedLines", "removedTypes"),
    AttachmentKind.MCP_DELTA: ("addedNames", "addedBlocks", "removedNames"),
}
_TOOLS_HEAD = "These tools can be loaded on demand:"
_AGENTS_HEAD = "These agent types can be started:"


@dataclass(slots=True)
class AnnouncedTools:
    """What is in force, by name, with the line or text it was announced with."""

    tools: dict[str, str] = field(default_factory=dict)
    agents: dict[str, str] = field(default_factory=dict)
    servers: dict[str, str] = field(default_factory=dict)


def read_announced(entries: Iterable[Entry]) -> AnnouncedTools:
    """All deltas of these entries added up, in order."""
    announced = AnnouncedTools()
    tables = dict(zip(_DELTAS, (announced.tools, announced.agents, announced.servers), strict=True))
    for entry in entries:
        if isinstance(entry.payload, Attachment) and entry.payload.kind in _DELTAS:
            _add_delta(tables[entry.payload.kind], get_fields(entry.fields, "attachment"), _DELTAS[entry.payload.kind])
    return announced


def restore_tools(entries: Sequence[Entry], kept: Sequence[Entry], budgets: RestoreBudgets) -> list[RestoredItem]:
    """Tools and agent types as one line each, MCP instructions as one per server within their budgets."""
    announced, visible = read_announced(entries), read_announced(kept)
    items = _announce(RestoredKind.TOOLS, AttachmentKind.TOOLS_DELTA, _TOOLS_HEAD, announced.tools, visible.tools)
    items += _announce(
        RestoredKind.AGENT_LISTING, AttachmentKind.AGENTS_DELTA, _AGENTS_HEAD, announced.agents, visible.agents
    )
    servers = [_restore_server(name, text, visible, budgets) for name, text in announced.servers.items()]
    return items + apply_total(servers, budgets.all_servers_tokens, "MCP instructions")


def _add_delta(table: dict[str, str], delta: Mapping[str, object], keys: tuple[str, str, str]) -> None:
    names, lines = get_texts(delta, keys[0]), get_texts(delta, keys[1])
    for number, name in enumerate(names):
        table[name] = lines[number] if number < len(lines) else name
    for name in get_texts(delta, keys[2]):
        table.pop(name, None)


def _announce(
    kind: RestoredKind, attachment_kind: str, head: str, announced: Mapping[str, str], visible: Mapping[str, str]
) -> list[RestoredItem]:
    if not announced:
        return []
    missing = {name: line for name, line in announced.items() if name not in visible}
    what = f"{len(announced)} {'tools' if kind is RestoredKind.TOOLS else 'agent types'}"
    if not missing:
        return [skip(kind, what, "They are announced in the messages that were kept.", code="still_visible")]
    added, lines, removed = _DELTAS[attachment_kind]
    text = "\n".join([head, *(f"- {line}" for line in missing.values())])
    attachment: dict[str, object] = {added: list(missing), lines: list(missing.values()), removed: []}
    return [restore(kind, f"{len(missing)} of {what}", make_attachment_entry(attachment_kind, text, attachment))]


def _restore_server(name: str, text: str, visible: AnnouncedTools, budgets: RestoreBudgets) -> RestoredItem:
    kind = RestoredKind.MCP_INSTRUCTIONS
    tokens = count_text_tokens(text)
    if name in visible.servers:
        return skip(kind, name, "They stand in the messages that were kept.", code="still_visible", tokens=tokens)
    head = f"Instructions of the MCP server {clean_name(name)}:"
    shown, is_cut = fit_text(text, head, budgets.server_tokens, _MARK)
    if not shown:
        reason = f"{budgets.server_tokens:,} tokens do not hold even its name."
        return skip(kind, name, reason, code="no_room", tokens=tokens)
    attachment = {"addedNames": [name], "addedBlocks": [shown.split("\n", 1)[1]], "removedNames": []}
    cut = f"Cut to {budgets.server_tokens:,} tokens." if is_cut else ""
    return restore(kind, name, make_attachment_entry(AttachmentKind.MCP_DELTA, shown, attachment), cut=cut)

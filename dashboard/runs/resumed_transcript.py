"""The transcript of a compacted conversation: a new session that the client resumes as if it were its own.

What the client does with each form was measured, see docs/resume.md. No Django, no files.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from msgspec import structs

from compaction.compactors.assembly import relink_entry
from compaction.compactors.micro.clearing import is_cleared
from compaction.transcripts.attachments import render_attachment
from compaction.transcripts.chain import find_chain, is_boundary
from compaction.transcripts.client_protocol import CLEARED_RESULT, DELTA_ATTACHMENTS
from compaction.transcripts.entries import Entry, ToolResultBlock
from compaction.transcripts.payloads import Attachment
from compaction.transcripts.writer import write_entry

# What the client announces by itself wherever a transcript does not hold it: written as well, it would be sent twice.
_COPIED_KEYS = ("userType", "entrypoint", "cwd", "version", "gitBranch")
_COMMON: Mapping[str, object] = {"userType": "external", "cwd": "", "gitBranch": ""}
_TICK = timedelta(milliseconds=1)

Line = dict[str, object]


@dataclass(frozen=True, kw_only=True)
class ResumedSession:
    """What is written. `added_uuids` name the lines that the compaction made; all others were in the conversation.

    `originals` are lines of the conversation as the client wrote them, by uuid: they go before stored ones, in which
    secrets were taken out. `cwd`: the folder the client finds the session from.
    """

    external_id: str
    entries: tuple[Entry, ...]
    added_uuids: frozenset[str]
    now: datetime
    originals: Mapping[str, Entry] = field(default_factory=dict)
    cwd: str = ""


def make_transcript(session: ResumedSession) -> bytes:
    """One line per entry, in order, each with the keys that every line of the client carries."""
    defaults = _find_defaults(session)
    lines: list[Line] = []
    left_out: dict[str, str | None] = {}  # uuid -> the line to hang under instead
    for entry in _use_originals(session):
        if _is_announced(entry, session.added_uuids):
            left_out[entry.uuid or ""] = left_out.get(entry.parent_uuid or "", entry.parent_uuid)
            continue
        lines.append(_make_line(entry, session, defaults))
    for line in lines:
        parent = line.get("parentUuid")
        if isinstance(parent, str) and parent in left_out:
            line["parentUuid"] = left_out[parent]
    return b"".join(_write_lines(_stamp_times(lines, session.now)))


def _use_originals(session: ResumedSession) -> Iterator[Entry]:
    """Kept lines as the client wrote them, hung where the compaction hung them. What was cleared stays cleared."""
    for entry in _link_entries(session.entries):
        original = session.originals.get(entry.uuid or "")
        if original is None or entry.uuid in session.added_uuids or _is_cleared(entry):
            yield entry
        else:
            is_linked = original.parent_uuid == entry.parent_uuid
            yield original if is_linked else relink_entry(original, entry.parent_uuid)


def _is_cleared(entry: Entry) -> bool:
    if isinstance(entry.payload, Attachment):
        return tuple(entry.payload.rendered) == (CLEARED_RESULT,)
    blocks = entry.message.content if entry.message else ()
    return any(isinstance(block, ToolResultBlock) and is_cleared(block) for block in blocks)


def _link_entries(entries: tuple[Entry, ...]) -> tuple[Entry, ...]:
    """As they hang together if that reaches all; else each under the one before. What an earlier compaction of the
    client kept hangs under lines that are not here."""
    hanging = [structs.replace(entry, logical_parent_uuid=None) for entry in entries]
    reached = {entry.uuid for entry in find_chain(hanging, over_gaps=False).entries}
    if all(entry.uuid in reached for entry in entries if entry.type in ("user", "assistant", "attachment")):
        return entries
    linked: list[Entry] = []
    for entry in entries:
        parent = linked[-1].uuid if linked else None
        linked.append(entry if entry.parent_uuid == parent else relink_entry(entry, parent))
    return tuple(linked)


def _is_announced(entry: Entry, added_uuids: frozenset[str]) -> bool:
    return (
        entry.uuid in added_uuids and isinstance(entry.payload, Attachment) and entry.payload.kind in DELTA_ATTACHMENTS
    )


def _find_defaults(session: ResumedSession) -> Line:
    """Values of the common keys for lines made here: those of the newest line of the conversation."""
    newest = max(
        session.originals.values(), key=lambda entry: entry.at or datetime.min.replace(tzinfo=UTC), default=None
    )
    known = {key: newest.fields[key] for key in _COPIED_KEYS if key in newest.fields} if newest is not None else {}
    return {**_COMMON, **({"cwd": session.cwd} if session.cwd else {}), **known}


def _make_line(entry: Entry, session: ResumedSession, defaults: Line) -> Line:
    line = _read_line(entry)
    if entry.uuid in session.added_uuids and isinstance(entry.payload, Attachment):
        line = _speak(line, render_attachment(entry))
    # A sub-agent's conversation goes on as a session of its own.
    line.pop("agentId", None)
    line |= {"isSidechain": False, "sessionId": session.external_id}
    if is_boundary(entry) and entry.uuid == session.entries[0].uuid:
        line["logicalParentUuid"] = None  # what came before is in another file, or behind it in this one
    return {**{key: value for key, value in defaults.items() if line.get(key) is None}, **_drop_none(line)}


def _read_line(entry: Entry) -> Line:
    try:
        line = json.loads(write_entry(entry))
    except ValueError:  # a line that only a tolerant reader takes
        line = json.loads(write_entry(entry.changed()))
    return dict(line)


def _speak(line: Line, text: str) -> Line:
    """Something put back, as words of their own: attachments are moved by the client, before or far behind the
    summary as its version has it."""
    kept = {key: value for key, value in line.items() if key not in ("attachment", "rendered", "renderedRole")}
    return {**kept, "type": "user", "isMeta": True, "message": {"role": "user", "content": text}}


def _drop_none(line: Line) -> Line:
    return {key: value for key, value in line.items() if value is not None or key not in _COPIED_KEYS}


def _stamp_times(lines: Iterable[Line], now: datetime) -> Iterator[Line]:
    """The client reads no line without a time; one that has none gets a time just after the line before."""
    latest = now
    for line in lines:
        told = line.get("timestamp")
        if isinstance(told, str) and told:
            yield line
            continue
        latest += _TICK
        yield {**line, "timestamp": latest.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")}


def _write_lines(lines: Iterable[Line]) -> Iterator[bytes]:
    for line in lines:
        # A half character becomes its own JSON escape.
        text = json.dumps(line, ensure_ascii=False, separators=(",", ":"))
        yield text.encode("utf-8", "backslashreplace") + b"\n"

"""Files that come back: the most recently read or edited ones, as the transcript last showed them.

A path named in a transcript is untrusted: it is a name here and is never opened. Fresh content comes only from a
FileSource that the operator put in.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import PurePosixPath

from compaction.activity.files import TouchedFile, list_shown_paths, read_touched_files
from compaction.activity.plans import PLAN_FOLDER
from compaction.activity.tool_calls import Activity, read_activity
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
from compaction.ports import FileSource
from compaction.transcripts.client_protocol import AttachmentKind
from compaction.transcripts.entries import Entry
from compaction.transcripts.json_fields import get_fields, get_text
from compaction.transcripts.payloads import Attachment

# Instruction and memory files: they reach the model by the system prompt.
MEMORY_NAMES = frozenset({"CLAUDE.md", "CLAUDE.local.md", "AGENTS.md", "MEMORY.md", "GEMINI.md"})
_MEMORY_FOLDERS = ("/.claude/rules/", "/.claude/memory/", "/session-memory/")

_LARGEST_READ_BYTES = 256 * 1024  # the client's own limit for reading a file into the context


@dataclass(frozen=True, slots=True)
class _Content:
    text: str
    first_line: int
    is_part: bool
    label: str
    at: datetime | None


def restore_files(
    entries: Sequence[Entry],
    kept: Sequence[Entry],
    work: Activity,
    *,
    budgets: RestoreBudgets,
    source: FileSource | None,
    now: datetime,
) -> list[RestoredItem]:
    """The newest files within the budgets, and a reason for every other file that was touched."""
    session_ids = {entry.session_id for entry in entries if entry.session_id}
    visible = list_shown_paths(read_activity(kept).tool_calls) | _list_attached_paths(kept)
    items: list[RestoredItem] = []
    chosen = 0
    for known in read_touched_files(entries, work):
        if turned_away := _turn_away(known, visible, session_ids):
            items.append(turned_away)
        elif chosen >= budgets.most_files:
            reason = f"Only the {budgets.most_files} most recent files come back."
            items.append(skip(RestoredKind.FILE, known.path, reason, code="older_file", tokens=_count(known)))
        else:
            item = _restore_file(known, budgets, source, now)
            chosen += item.entry is not None
            items.append(item)
    return apply_total(items, budgets.all_files_tokens, "files")


def is_memory_file(path: str) -> bool:
    """Whether a path is an instruction or memory file."""
    return PurePosixPath(path).name in MEMORY_NAMES or any(folder in path for folder in _MEMORY_FOLDERS)


def _turn_away(known: TouchedFile, visible: frozenset[str], session_ids: set[str]) -> RestoredItem | None:
    name = PurePosixPath(known.path).name
    if name.endswith(".jsonl") and name.removesuffix(".jsonl") in session_ids:
        code, reason = "transcript", "It is the transcript itself."
    elif PLAN_FOLDER in known.path:
        code, reason = "plan_file", "It is the plan, which comes back on its own."
    elif is_memory_file(known.path):
        code, reason = "memory_file", "It is an instruction file, which the system prompt brings."
    elif known.path in visible:
        code, reason = "still_visible", "Its content stands in the messages that were kept."
    else:
        return None
    return skip(RestoredKind.FILE, known.path, reason, code=code, tokens=_count(known))


def _restore_file(
    known: TouchedFile, budgets: RestoreBudgets, source: FileSource | None, now: datetime
) -> RestoredItem:
    content = _read_fresh(known, source) or _read_known(known, now)
    if content is None:
        reason = "Not restored: the transcript names it but does not hold its content."
        return skip(RestoredKind.FILE, known.path, reason, code="content_unknown")
    path = clean_name(known.path)
    mark = "[cut here: the file is longer than what comes back of one file; read it for the rest]"
    text, is_cut = fit_text(content.text, f"{path} ({content.label})", budgets.file_tokens, mark)
    if not text:
        reason = f"{budgets.file_tokens:,} tokens do not hold even its name."
        return skip(RestoredKind.FILE, known.path, reason, code="no_room", tokens=_count(known))
    shown = text.split("\n", 1)[1].removesuffix("\n" + mark)
    lines = shown.count("\n") + 1
    total = lines + 1 if is_cut or content.is_part else lines
    file = {
        "filePath": known.path,
        "content": shown,
        "numLines": lines,
        "startLine": content.first_line,
        "totalLines": total,
    }
    attachment: dict[str, object] = {
        "filename": known.path,
        "content": {"type": "text", "file": file},
        "displayPath": path,
    }
    attachment |= {"contentAt": content.at.isoformat()} if content.at else {}
    cut = f"Cut to {budgets.file_tokens:,} tokens." if is_cut else ""
    return restore(RestoredKind.FILE, known.path, make_attachment_entry(AttachmentKind.FILE, text, attachment), cut=cut)


def _read_fresh(known: TouchedFile, source: FileSource | None) -> _Content | None:
    if source is None:
        return None
    fresh = source.read_file(known.path, limit_bytes=_LARGEST_READ_BYTES)
    return None if fresh is None else _Content(fresh.text, 1, is_part=False, label="read again now", at=None)


def _read_known(known: TouchedFile, now: datetime) -> _Content | None:
    age = _tell_age(known.content_at, now)
    if known.whole is not None:
        label = f"as the transcript shows it, {age}; it may have changed since"
        return _Content(known.whole, 1, is_part=False, label=label, at=known.content_at)
    if known.extract is None:
        return None
    first = known.extract.first_line
    where = "the lines that were changed last"
    if first is not None:
        where = f"lines {first} to {first + known.extract.text.count(chr(10))}"
    label = f"{where}, as the transcript shows them, {age}; they may have changed since"
    return _Content(known.extract.text, first or 1, is_part=True, label=label, at=known.content_at)


def _tell_age(at: datetime | None, now: datetime) -> str:
    if at is None:
        return "of unknown age"
    minutes = max(0, int((now - at).total_seconds() // 60))
    if minutes < 1:
        return "less than a minute old"
    if minutes < 120:
        return f"{minutes} minute{'s' if minutes > 1 else ''} old"
    return f"{minutes // 60} hours old" if minutes < 48 * 60 else f"{minutes // 1_440} days old"


def _list_attached_paths(entries: Sequence[Entry]) -> frozenset[str]:
    paths = set()
    for entry in entries:
        if isinstance(entry.payload, Attachment) and entry.payload.kind == AttachmentKind.FILE:
            attachment = get_fields(entry.fields, "attachment")
            file = get_fields(get_fields(attachment, "content"), "file")
            if get_text(file, "content") is not None:
                paths.add(get_text(file, "filePath") or get_text(attachment, "filename") or "")
    return frozenset(paths)


def _count(known: TouchedFile) -> int:
    content = known.content
    return count_text_tokens(content) if content is not None else 0

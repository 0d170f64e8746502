"""Restores the most recently read or edited files, with the content the transcript showed last.

A path in a transcript is untrusted: it is only a name here and is never opened. Fresh content comes only from a
FileSource that the operator configured.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import PurePosixPath

from compaction.activity.files import TouchedFile, list_shown_paths, read_touched_files
from compaction.activity.plans import PLAN_FOLDER
from compaction.activity.tool_calls import Activity, read_activity
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
from compaction.ports import FileSource
from compaction.transcripts.client_protocol import AttachmentKind
from compaction.transcripts.entries import Entry
from compaction.transcripts.json_fields import get_fields, get_text
from compaction.transcripts.payloads import Attachment

# Instruction and memory files reach the model through the system prompt.
MEMORY_NAMES = frozenset({"CLAUDE.md", "CLAUDE.local.md", "AGENTS.md", "MEMORY.md", "GEMINI.md"})
_MEMORY_FOLDERS = ("/.claude/rules/", "/.claude/memory/", "/session-memory/")

_MAX_READ_BYTES = 256 * 1024  # the client's own limit for reading a file into the context


@dataclass(frozen=True, slots=True, kw_only=True)
class _FileContent:
    text: str
    first_line: int
    is_part: bool
    label: str
    at: datetime | None


def restore_files(
    entries: Sequence[Entry],
    kept: Sequence[Entry],
    activity: Activity,
    *,
    budgets: RestoreBudgets,
    source: FileSource | None,
    now: datetime,
) -> list[RestoredItem]:
    """Return the newest files within the budgets, and every other touched file as skipped with its reason."""
    session_ids = {entry.session_id for entry in entries if entry.session_id}
    visible = list_shown_paths(read_activity(kept).tool_calls) | _list_attached_paths(kept)
    items: list[RestoredItem] = []
    restored_count = 0
    for file in read_touched_files(entries, activity):
        if excluded := _exclude_file(file, visible, session_ids):
            items.append(excluded)
        elif restored_count >= budgets.max_files:
            reason = f"Only the {budgets.max_files} most recent files are restored."
            items.append(_skip_file(file, reason, code="older_file"))
        else:
            item = _restore_file(file, budgets, source, now)
            restored_count += item.entry is not None
            items.append(item)
    return apply_total(items, budgets.all_files_tokens, "files")


def is_memory_file(path: str) -> bool:
    """Return whether a path is an instruction or memory file."""
    return PurePosixPath(path).name in MEMORY_NAMES or any(folder in path for folder in _MEMORY_FOLDERS)


def _exclude_file(file: TouchedFile, visible: frozenset[str], session_ids: set[str]) -> RestoredItem | None:
    """Return a skipped item for a file that reaches the model in another way; None for any other file."""
    name = PurePosixPath(file.path).name
    if name.endswith(".jsonl") and name.removesuffix(".jsonl") in session_ids:
        code, reason = "transcript", "It is the transcript itself."
    elif PLAN_FOLDER in file.path:
        code, reason = "plan_file", "It is the plan, which is restored separately."
    elif is_memory_file(file.path):
        code, reason = "memory_file", "It is an instruction file, which is part of the system prompt."
    elif file.path in visible:
        code, reason = "still_visible", "Its content is still visible in the messages that were kept."
    else:
        return None
    return _skip_file(file, reason, code=code)


def _skip_file(file: TouchedFile, reason: str, *, code: str) -> RestoredItem:
    tokens = count_text_tokens(file.content) if file.content is not None else 0
    return build_skipped_item(RestoredKind.FILE, file.path, reason, code=code, tokens=tokens)


def _restore_file(file: TouchedFile, budgets: RestoreBudgets, source: FileSource | None, now: datetime) -> RestoredItem:
    content = _read_fresh(file, source) or _get_transcript_content(file, now)
    if content is None:
        reason = "Not restored: the transcript names it but does not hold its content."
        return build_skipped_item(RestoredKind.FILE, file.path, reason, code="content_unknown")
    path = clean_name(file.path)
    mark = "[cut here: the file is longer than what comes back of one file; read it for the rest]"
    text, is_cut = fit_text(content.text, f"{path} ({content.label})", budgets.file_tokens, mark)
    if not text:
        return _skip_file(file, f"Its name alone exceeds {budgets.file_tokens:,} tokens.", code="no_room")
    shown = text.split("\n", 1)[1].removesuffix("\n" + mark)
    lines = shown.count("\n") + 1
    total = lines + 1 if is_cut or content.is_part else lines
    file_fields = {
        "filePath": file.path,
        "content": shown,
        "numLines": lines,
        "startLine": content.first_line,
        "totalLines": total,
    }
    attachment: dict[str, object] = {
        "filename": file.path,
        "content": {"type": "text", "file": file_fields},
        "displayPath": path,
    }
    attachment |= {"contentAt": content.at.isoformat()} if content.at else {}
    cut = f"Cut to {budgets.file_tokens:,} tokens." if is_cut else ""
    entry = build_attachment_entry(AttachmentKind.FILE, text, attachment)
    return build_restored_item(RestoredKind.FILE, file.path, entry, cut=cut)


def _read_fresh(file: TouchedFile, source: FileSource | None) -> _FileContent | None:
    if source is None:
        return None
    fresh = source.read_file(file.path, limit_bytes=_MAX_READ_BYTES)
    if fresh is None:
        return None
    return _FileContent(text=fresh.text, first_line=1, is_part=False, label="read again now", at=None)


def _get_transcript_content(file: TouchedFile, now: datetime) -> _FileContent | None:
    age = _format_age(file.content_at, now)
    if file.whole is not None:
        label = f"as the transcript shows it, {age}; it may have changed since"
        return _FileContent(text=file.whole, first_line=1, is_part=False, label=label, at=file.content_at)
    if file.extract is None:
        return None
    first = file.extract.first_line
    lines = "the lines that were changed last"
    if first is not None:
        lines = f"lines {first} to {first + file.extract.text.count(chr(10))}"
    label = f"{lines}, as the transcript shows them, {age}; they may have changed since"
    return _FileContent(text=file.extract.text, first_line=first or 1, is_part=True, label=label, at=file.content_at)


def _format_age(at: datetime | None, now: datetime) -> str:
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

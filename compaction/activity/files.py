"""Files as a transcript shows them: who touched which path when, and the newest content that can be told from it.

Nothing is opened: content comes from Read results, Write inputs, Edits applied to what was known, and restored copies.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from compaction.activity.tool_calls import Activity, ToolCall
from compaction.transcripts.client_protocol import (
    CLEARED_RESULT,
    FILE_ATTACHMENTS,
    FILE_EDITORS,
    FILE_READERS,
    FILE_WRITERS,
    UNCHANGED_FILE,
)
from compaction.transcripts.entries import Entry
from compaction.transcripts.json_fields import get_count, get_fields, get_items, get_text, get_time
from compaction.transcripts.payloads import Attachment

_NUMBERED = re.compile(r"^ {0,8}(\d{1,7})(?:→|\t)(.*)$")


@dataclass(frozen=True, slots=True)
class Extract:
    """A part of a file: its text and the number of its first line, where that is known."""

    text: str
    first_line: int | None = 1


@dataclass(slots=True)
class KnownFile:
    """One path. `whole` is the newest full content known; `extract` the newest part, when that is all there is."""

    path: str
    whole: str | None = None
    extract: Extract | None = None
    seen_at: datetime | None = None
    content_at: datetime | None = None
    last_place: int = -1
    entry_uuid: str | None = None
    actions: list[ToolCall] = field(default_factory=list)
    reads: int = 0
    edits: int = 0
    writes: int = 0

    @property
    def is_changed(self) -> bool:
        """Written or edited here, not only read."""
        return bool(self.edits or self.writes)

    @property
    def content(self) -> str | None:
        """The best content known."""
        return self.whole if self.whole is not None else (self.extract.text if self.extract else None)


def read_known_files(entries: Sequence[Entry], work: Activity) -> tuple[KnownFile, ...]:
    """Every file touched, the most recent first. Requests that were refused touch nothing."""
    files: dict[str, KnownFile] = {}
    steps: list[tuple[int, ToolCall | Entry]] = [(action.place, action) for action in work.actions if action.path]
    steps += [(place, entry) for place, entry in enumerate(entries) if _shows_file(entry)]
    for place, step in sorted(steps, key=lambda item: item[0]):
        if isinstance(step, ToolCall):
            if not step.is_refused and step.path:
                _note_action(files.setdefault(step.path, KnownFile(step.path)), step)
        else:
            _note_attachment(files, step, place)
    return tuple(sorted(files.values(), key=lambda known: -known.last_place))


def find_shown_paths(actions: Iterable[ToolCall]) -> frozenset[str]:
    """Paths whose content stands in these actions: real reads and writes; a stub or a cleared result shows nothing."""
    shown = set()
    for action in actions:
        if action.path is None or action.is_refused or action.name in FILE_EDITORS:
            continue
        if action.name in FILE_WRITERS or (action.output and not action.output.startswith(UNCHANGED_FILE)):
            shown.add(action.path)
    return frozenset(shown)


def strip_line_numbers(text: str) -> Extract:
    """The lines of a Read result without their numbers; what is not numbered (reminders at the end) is left out."""
    numbered = [match for line in text.split("\n") if (match := _NUMBERED.match(line))]
    if not numbered:
        return Extract(text)
    return Extract("\n".join(match[2] for match in numbered), int(numbered[0][1]))


def _shows_file(entry: Entry) -> bool:
    return isinstance(entry.payload, Attachment) and entry.payload.kind in FILE_ATTACHMENTS


def _note_attachment(files: dict[str, KnownFile], entry: Entry, place: int) -> None:
    attachment = get_fields(entry.fields, "attachment")
    file = get_fields(get_fields(attachment, "content"), "file")
    path = get_text(file, "filePath") or get_text(attachment, "filename")
    if path is None:
        return
    known = files.setdefault(path, KnownFile(path))
    _mark_seen(known, entry, place)
    content = get_text(file, "content")
    if content is not None:
        _take_read(known, file, content)
        # A copy that was brought back is as old as what it was made from.
        known.content_at = get_time(attachment, "contentAt") or entry.at


def _note_action(known: KnownFile, action: ToolCall) -> None:
    known.actions.append(action)
    entry = action.result_entry or action.entry
    _mark_seen(known, entry, action.place)
    details = action.details
    if action.name in FILE_READERS:
        known.reads += 1
        if not action.output.startswith(UNCHANGED_FILE) and _note_read(known, action, details):
            known.content_at = entry.at
        return
    if action.name in FILE_WRITERS:
        known.writes += 1
        known.whole, known.extract = get_text(action.use.input, "content") or "", None
    else:
        known.edits += 1
        _note_edit(known, action, details)
    known.content_at = entry.at


def _mark_seen(known: KnownFile, entry: Entry, place: int) -> None:
    known.seen_at = entry.at or known.seen_at
    known.last_place = place
    known.entry_uuid = entry.uuid or known.entry_uuid


def _note_read(known: KnownFile, action: ToolCall, details: Mapping[str, object]) -> bool:
    file = get_fields(details, "file")
    content = get_text(file, "content")
    if content is not None:
        _take_read(known, file, content)
        return True
    text = action.output
    if not text or text == CLEARED_RESULT:
        return False
    part = strip_line_numbers(text)
    if part.first_line == 1 and not {"offset", "limit"} & action.use.input.keys():
        known.whole, known.extract = part.text, None
    else:
        known.extract = part
    return True


def _take_read(known: KnownFile, file: Mapping[str, object], content: str) -> None:
    first, shown = get_count(file, "startLine") or 1, get_count(file, "numLines")
    total = get_count(file, "totalLines")
    if first == 1 and (shown is None or total is None or shown >= total):
        known.whole, known.extract = content, None
    else:
        known.extract = Extract(content, first)


def _note_edit(known: KnownFile, action: ToolCall, details: Mapping[str, object]) -> None:
    before = get_text(details, "originalFile") or get_text(details, "originalFileContents")
    text = known.whole if before is None else before
    changes = _list_changes(action)
    for old, new, is_everywhere in changes:
        if text is not None:
            text = _replace(text, old, new, is_everywhere=is_everywhere)
    known.whole = text
    known.extract = None if text is not None else (Extract(changes[-1][1], None) if changes else known.extract)


def _list_changes(action: ToolCall) -> list[tuple[str, str, bool]]:
    arguments = action.use.input
    items = [item for item in get_items(arguments, "edits") if isinstance(item, Mapping)] or [arguments]
    return [
        (
            get_text(item, "old_string") or "",
            get_text(item, "new_string") or get_text(item, "new_source") or "",
            item.get("replace_all") is True,
        )
        for item in items
    ]


def _replace(text: str, old: str, new: str, *, is_everywhere: bool) -> str | None:
    """The text after one replacement; None when it does not hold what was replaced, so nothing is known any more."""
    if not old:
        return new if not text else None
    if old not in text:
        return None
    return text.replace(old, new) if is_everywhere else text.replace(old, new, 1)

"""Files in a transcript: which path was touched when, its newest content, and what the changes did to its names.

No file is opened. Content comes from Read results, Write inputs, Edits applied to earlier content, and restored copies.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from compaction.activity.excerpts import join_with_gaps
from compaction.activity.tool_calls import Activity, ToolCall, find_definition_before, list_definitions, replay
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

MOST_NAMES = 10
_NUMBERED = re.compile(r"^ {0,8}(\d{1,7})(?:→|\t)(.*)$")
_MOST_CHANGES = 40
_LARGEST_TEXT = 200_000
# Names worth a mention: with an underscore, a capital inside or at the start of a longer word.
_NAME = re.compile(r"(?<![\w.\"'/-])(?:[a-z]+(?:_[a-z0-9]+)+[?!]?|[a-z]+[A-Z]\w+|[A-Z][a-z0-9]+[A-Z]\w+|_[a-z]\w{3,})")
_COMMENT = re.compile(r"^\s*(?://|#(?!\[)|\*|--|\"\"\"|@doc|@moduledoc).*$", re.MULTILINE)
_IMPORT = re.compile(r"^\s*(?:import|from|use|using|alias|require|#include|export \{|\w* ?\"[\w./@-]+\"$|[()]\s*$)")
_STRING = re.compile(r"\"[^\"\n]{0,200}\"|'[^'\n]{0,200}'")


@dataclass(frozen=True, slots=True)
class FileExtract:
    """A part of a file: its text and the number of its first line, where the transcript shows it."""

    text: str
    first_line: int | None = 1


@dataclass(slots=True)
class TouchedFile:
    """One path. `whole` is the newest full content; `extract` the newest part, when that is all there is."""

    path: str
    whole: str | None = None
    extract: FileExtract | None = None
    seen_at: datetime | None = None
    content_at: datetime | None = None
    last_index: int = -1  # of the entry that touched it last
    entry_uuid: str | None = None
    tool_calls: list[ToolCall] = field(default_factory=list)
    reads: int = 0
    edits: int = 0
    writes: int = 0

    @property
    def is_changed(self) -> bool:
        """Return whether the file was written or edited here, not only read."""
        return bool(self.edits or self.writes)

    @property
    def content(self) -> str | None:
        """The full content, else the newest part."""
        return self.whole if self.whole is not None else (self.extract.text if self.extract else None)

    @property
    def changes(self) -> list[ToolCall]:
        """The requests that changed the file, in order."""
        return [tool_call for tool_call in self.tool_calls if tool_call.is_file_change]


@dataclass(frozen=True, slots=True)
class NameChanges:
    """The names that the changes to a file touched, added and removed, each in order and without repeats."""

    touched: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()


def read_touched_files(entries: Sequence[Entry], activity: Activity) -> tuple[TouchedFile, ...]:
    """Return every file touched, the most recent first. Requests that failed touch nothing."""
    files: dict[str, TouchedFile] = {}
    for index, step in replay(entries, activity):
        if isinstance(step, ToolCall):
            if step.path and not step.is_error:
                _apply_tool_call(files.setdefault(step.path, TouchedFile(step.path)), step)
        elif isinstance(step.payload, Attachment) and step.payload.kind in FILE_ATTACHMENTS:
            _apply_attachment(files, step, index)
    return tuple(sorted(files.values(), key=lambda file: -file.last_index))


def list_shown_paths(tool_calls: Iterable[ToolCall]) -> frozenset[str]:
    """Return the paths whose content these calls show: reads and writes, but no stub and no cleared result."""
    shown = set()
    for tool_call in tool_calls:
        if tool_call.path is None or tool_call.is_error or tool_call.name in FILE_EDITORS:
            continue
        output = tool_call.output
        if tool_call.name in FILE_WRITERS or (output and not output.startswith(UNCHANGED_FILE)):
            shown.add(tool_call.path)
    return frozenset(shown)


def strip_line_numbers(text: str) -> FileExtract:
    """Return the lines of a Read result without their numbers; lines without one (reminders at the end) are dropped."""
    numbered = [match for line in text.split("\n") if (match := _NUMBERED.match(line))]
    if not numbered:
        return FileExtract(text)
    return FileExtract("\n".join(match[2] for match in numbered), int(numbered[0][1]))


def compare_names(file: TouchedFile) -> NameChanges:
    """Return what the changes in this stretch did to the names of a file."""
    changes = file.changes[-_MOST_CHANGES:]
    if not changes:
        return NameChanges()
    new_texts = [text[:_LARGEST_TEXT] for change in changes for text in change.list_new_texts()]
    old_texts = [text[:_LARGEST_TEXT] for change in changes for text in _list_old_texts(change)]
    if changes[0].name in FILE_WRITERS and not _get_original(changes[0].details):
        return NameChanges(added=tuple(list_definitions(file.content or "")[:MOST_NAMES]))
    final = (file.whole or "")[:_LARGEST_TEXT] or "\n".join(new_texts)
    original = (_get_original(changes[0].details) or "")[:_LARGEST_TEXT] or "\n".join(old_texts)
    old_names, new_names = _list_names("\n".join(old_texts)), _list_names("\n".join(new_texts))
    added = [
        name for name in new_names if name not in old_names and not _has_word(original, name) and _has_word(final, name)
    ]
    removed = [name for name in old_names if name not in new_names and not _has_word(final, name)]
    definitions = [list_definitions(text) for text in new_texts]
    defined = [name for names in definitions for name in names if name in added]
    return NameChanges(
        touched=tuple(_list_scopes(file.whole or "", new_texts, definitions))[:MOST_NAMES],
        added=tuple(dict.fromkeys([*defined, *added]))[:MOST_NAMES],
        removed=tuple(dict.fromkeys(removed))[:MOST_NAMES],
    )


def list_new_code(change: ToolCall) -> list[str]:
    """Return what a change put into its file: new lines with one line around them; imports alone are left out."""
    old_texts = _list_old_texts(change)
    shown = []
    for number, text in enumerate(change.list_new_texts()):
        before = {line.strip() for line in old_texts[number].splitlines()} if number < len(old_texts) else set()
        lines = text.strip("\n").splitlines()
        new = [bool(line.strip()) and line.strip() not in before for line in lines]
        added = [line for line, is_new in zip(lines, new, strict=True) if is_new]
        if added and not all(_IMPORT.match(line) for line in added):
            near = {index for index in range(len(lines)) if any(new[max(0, index - 1) : index + 2])}
            shown.append(join_with_gaps(lines, near))
    return shown


def _apply_attachment(files: dict[str, TouchedFile], entry: Entry, index: int) -> None:
    attachment = get_fields(entry.fields, "attachment")
    result = get_fields(get_fields(attachment, "content"), "file")
    path = get_text(result, "filePath") or get_text(attachment, "filename")
    if path is None:
        return
    file = files.setdefault(path, TouchedFile(path))
    _mark_seen(file, entry, index)
    content = get_text(result, "content")
    if content is not None:
        _apply_content(file, result, content)
        # A copy that was brought back is as old as what it was made from.
        file.content_at = get_time(attachment, "contentAt") or entry.at


def _apply_tool_call(file: TouchedFile, tool_call: ToolCall) -> None:
    file.tool_calls.append(tool_call)
    entry = tool_call.result_entry or tool_call.entry
    _mark_seen(file, entry, tool_call.entry_index)
    if tool_call.name in FILE_READERS:
        file.reads += 1
        if not tool_call.output.startswith(UNCHANGED_FILE) and _apply_read(file, tool_call):
            file.content_at = entry.at
        return
    if tool_call.name in FILE_WRITERS:
        file.writes += 1
        file.whole, file.extract = get_text(tool_call.use.input, "content") or "", None
    else:
        file.edits += 1
        _apply_edit(file, tool_call)
    file.content_at = entry.at


def _mark_seen(file: TouchedFile, entry: Entry, index: int) -> None:
    file.seen_at = entry.at or file.seen_at
    file.last_index = index
    file.entry_uuid = entry.uuid or file.entry_uuid


def _apply_read(file: TouchedFile, tool_call: ToolCall) -> bool:
    """Apply a Read result; return False when it shows no content."""
    result = get_fields(tool_call.details, "file")
    content = get_text(result, "content")
    if content is not None:
        _apply_content(file, result, content)
        return True
    text = tool_call.output
    if not text or text == CLEARED_RESULT:
        return False
    part = strip_line_numbers(text)
    if part.first_line == 1 and not {"offset", "limit"} & tool_call.use.input.keys():
        file.whole, file.extract = part.text, None
    else:
        file.extract = part
    return True


def _apply_content(file: TouchedFile, result: Mapping[str, object], content: str) -> None:
    first, shown = get_count(result, "startLine") or 1, get_count(result, "numLines")
    total = get_count(result, "totalLines")
    if first == 1 and (shown is None or total is None or shown >= total):
        file.whole, file.extract = content, None
    else:
        file.extract = FileExtract(content, first)


def _apply_edit(file: TouchedFile, tool_call: ToolCall) -> None:
    original = _get_original(tool_call.details)
    text = file.whole if original is None else original
    replacements = _list_replacements(tool_call)
    for old, new, is_everywhere in replacements:
        if text is not None:
            text = _replace(text, old, new, is_everywhere=is_everywhere)
    file.whole = text
    file.extract = None if text is not None else FileExtract(replacements[-1][1], None)


def _get_original(details: Mapping[str, object]) -> str | None:
    """Return the content before an edit, where the client recorded it."""
    return get_text(details, "originalFile") or get_text(details, "originalFileContents")


def _list_edits(tool_call: ToolCall) -> list[Mapping[str, object]]:
    """Return the edits of a request; the request itself where it makes only one."""
    arguments = tool_call.use.input
    return [item for item in get_items(arguments, "edits") if isinstance(item, Mapping)] or [arguments]


def _list_old_texts(change: ToolCall) -> list[str]:
    return [text for edit in _list_edits(change) if (text := get_text(edit, "old_string"))]


def _list_replacements(tool_call: ToolCall) -> list[tuple[str, str, bool]]:
    return [
        (
            get_text(edit, "old_string") or "",
            get_text(edit, "new_string") or get_text(edit, "new_source") or "",
            edit.get("replace_all") is True,
        )
        for edit in _list_edits(tool_call)
    ]


def _replace(text: str, old: str, new: str, *, is_everywhere: bool) -> str | None:
    """Return the text after one replacement; None when it does not hold what was replaced: the content is unknown."""
    if not old:
        return new if not text else None
    if old not in text:
        return None
    return text.replace(old, new) if is_everywhere else text.replace(old, new, 1)


def _list_names(code: str) -> dict[str, None]:
    """Return the names in code, in order; words of comments and strings are not names."""
    return dict.fromkeys(_NAME.findall(_STRING.sub(" ", _COMMENT.sub("", code))))


def _has_word(text: str, name: str) -> bool:
    """Return whether the text holds the name as a word of its own."""
    position = text.find(name)
    while position >= 0:
        around = text[position - 1 : position] + text[position + len(name) : position + len(name) + 1]
        if not any(character.isalnum() or character == "_" for character in around):
            return True
        position = text.find(name, position + 1)
    return False


def _list_scopes(content: str, new_texts: Sequence[str], definitions: Sequence[Sequence[str]]) -> Iterable[str]:
    """Return the definitions that hold the changed positions of the final content, in the order of the changes."""
    scopes: dict[str, None] = {}
    for text, defined in zip(new_texts, definitions, strict=True):
        scopes.update(dict.fromkeys(defined[:4]))
        start = content.find(text) if text else -1
        if start >= 0 and not text.lstrip().startswith(("import", "alias", "use ", "require")):
            name = find_definition_before(content, start)
            scopes.update({name: None} if name else {})
    return [name for name in scopes if not content or name in content]

"""What the changes to one file did, by its names: definitions they lie in, names that are new, names that are gone."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from compaction.activity.definitions import find_definition_before, find_definitions, list_new_texts
from compaction.activity.excerpts import is_change
from compaction.activity.files import KnownFile
from compaction.activity.tool_calls import ToolCall
from compaction.transcripts.client_protocol import FILE_WRITERS
from compaction.transcripts.json_fields import get_items, get_text

MOST_NAMES = 10
_MOST_CHANGES = 40
_LARGEST_TEXT = 200_000
# Names that are worth a word: with an underscore, a capital inside or at the start of a longer word.
_NAME = re.compile(r"(?<![\w.\"'/-])(?:[a-z]+(?:_[a-z0-9]+)+[?!]?|[a-z]+[A-Z]\w+|[A-Z][a-z0-9]+[A-Z]\w+|_[a-z]\w{3,})")
_COMMENT = re.compile(r"^\s*(?://|#(?!\[)|\*|--|\"\"\"|@doc|@moduledoc).*$", re.MULTILINE)
_IMPORT = re.compile(r"^\s*(?:import|from|use|using|alias|require|#include|export \{|\w* ?\"[\w./@-]+\"$|[()]\s*$)")
_STRING = re.compile(r"\"[^\"\n]{0,200}\"|'[^'\n]{0,200}'")


@dataclass(frozen=True, slots=True)
class FileChange:
    """The names that the changes to a file touched, added and removed, each in order and without repeats."""

    touched: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()


def list_changes(known: KnownFile) -> list[ToolCall]:
    """Return the requests that changed the file, in order."""
    return [action for action in known.actions if is_change(action)]


def describe_names(known: KnownFile) -> FileChange:
    """Return what the changes in this stretch did to the names of a file."""
    changes = list_changes(known)[-_MOST_CHANGES:]
    if not changes:
        return FileChange()
    new_texts = [text[:_LARGEST_TEXT] for change in changes for text in list_new_texts(change)]
    old_texts = [text[:_LARGEST_TEXT] for change in changes for text in _list_old_texts(change)]
    if changes[0].name in FILE_WRITERS and not _find_original(changes[0]):
        defined = find_definitions(known.content or "")
        return FileChange(added=tuple(defined[:MOST_NAMES]))
    final = (known.whole or "")[:_LARGEST_TEXT] or "\n".join(new_texts)
    original = _find_original(changes[0])[:_LARGEST_TEXT] or "\n".join(old_texts)
    old_names, new_names = _list_names("\n".join(old_texts)), _list_names("\n".join(new_texts))
    added = [name for name in new_names if name not in old_names and not _holds(original, name) and _holds(final, name)]
    removed = [name for name in old_names if name not in new_names and not _holds(final, name)]
    definitions = [find_definitions(text) for text in new_texts]
    defined = [name for names in definitions for name in names if name in added]
    return FileChange(
        touched=tuple(_find_scopes(known.whole or "", new_texts, definitions))[:MOST_NAMES],
        added=tuple(dict.fromkeys([*defined, *added]))[:MOST_NAMES],
        removed=tuple(dict.fromkeys(removed))[:MOST_NAMES],
    )


def list_new_code(change: ToolCall) -> list[str]:
    """Return what a change put into its file: new lines with one line around them; imports alone are left out."""
    old_texts = _list_old_texts(change)
    shown = []
    for number, text in enumerate(list_new_texts(change)):
        before = {line.strip() for line in old_texts[number].splitlines()} if number < len(old_texts) else set()
        lines = text.strip("\n").splitlines()
        new = [bool(line.strip()) and line.strip() not in before for line in lines]
        added = [line for line, is_new in zip(lines, new, strict=True) if is_new]
        if added and not all(_IMPORT.match(line) for line in added):
            shown.append("\n".join(_keep_near(lines, new)))
    return shown


def _keep_near(lines: Sequence[str], new: Sequence[bool]) -> list[str]:
    """Return new lines and their neighbours, each gap as one mark."""
    kept: list[str] = []
    for index, line in enumerate(lines):
        if any(new[max(0, index - 1) : index + 2]):
            kept.append(line)
        elif not kept or kept[-1] != "[...]":
            kept.append("[...]")
    return kept[1:] if kept and kept[0] == "[...]" else kept


def _list_old_texts(change: ToolCall) -> list[str]:
    items = [item for item in get_items(change.use.input, "edits") if isinstance(item, Mapping)] or [change.use.input]
    return [text for item in items if (text := get_text(item, "old_string"))]


def _find_original(change: ToolCall) -> str:
    details = change.details
    return get_text(details, "originalFile") or get_text(details, "originalFileContents") or ""


def _list_names(text: str) -> dict[str, None]:
    """Return the names in code, in order; words of comments and strings are not names."""
    code = _STRING.sub(" ", _COMMENT.sub("", text))
    return dict.fromkeys(_NAME.findall(code))


def _holds(text: str, name: str) -> bool:
    """Return whether the text holds the name as a word of its own."""
    place = text.find(name)
    while place >= 0:
        around = text[place - 1 : place] + text[place + len(name) : place + len(name) + 1]
        if not any(character.isalnum() or character == "_" for character in around):
            return True
        place = text.find(name, place + 1)
    return False


def _find_scopes(content: str, new_texts: Sequence[str], definitions: Sequence[Sequence[str]]) -> Iterable[str]:
    """Return the definitions that hold the changed places of the final content, in the order of the changes."""
    scopes: dict[str, None] = {}
    for text, defined in zip(new_texts, definitions, strict=True):
        scopes.update(dict.fromkeys(defined[:4]))
        start = content.find(text) if text else -1
        if start >= 0 and not text.lstrip().startswith(("import", "alias", "use ", "require")):
            name = find_definition_before(content, start)
            scopes.update({name: None} if name else {})
    return [name for name in scopes if not content or name in content]

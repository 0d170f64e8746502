"""Section 3: what was done to each file, what was said about it, and the code that is not committed yet."""

import re
from collections.abc import Sequence
from pathlib import PurePosixPath

from compaction.activity.excerpts import cut_lines, cut_text, shorten_path
from compaction.activity.file_changes import FileChange, describe_names, list_changes, list_new_code
from compaction.activity.files import KnownFile
from compaction.activity.statements import choose_sentences
from compaction.activity.tool_calls import ToolCall
from compaction.compactors.extractive.material import Material
from compaction.compactors.extractive.sections import CutRank, Section, SummaryItem, quote_in_line
from compaction.transcripts.client_protocol import FILE_WRITERS

SNIPPET_FILES = 6  # ours: files whose last changes are shown as code
MOST_FILES = 250
_CHANGES_SHOWN = 3  # of the file that was changed last; of others the last one
_SNIPPET_LINES = 14
_SNIPPET_CHARACTERS = 700
_LONG_LINES, _LONG_CHARACTERS = 56, 2_200
_SAID_CHARACTERS = 260
_PATHS_A_LINE = 8
_CHANGES_SEARCHED = 6
_SHORTEST_NAME = 3  # characters: shorter ones are words of any sentence
_WORD = re.compile(r"\w+")


def list_file_items(material: Material, *, has_snippets: bool = True) -> list[SummaryItem]:
    """Return changed files, those the instructions name first, then the newest; then paths that were only read."""
    changed = [known for known in material.files if known.is_changed]
    changed.sort(key=lambda known: not material.priorities.matches(known.path))
    items: list[SummaryItem] = []
    shown = 0
    for age, known in enumerate(changed[:MOST_FILES]):
        is_named = material.priorities.matches(known.path)
        items.append(_describe_file(known, material, age=age, is_named=is_named))
        wants_code = is_named or list_changes(known)[-1].place > material.last_commit_place
        if has_snippets and wants_code and shown < SNIPPET_FILES:
            snippets = _show_changes(known, material, is_newest=shown == 0, is_named=is_named)
            items += [
                SummaryItem(Section.FILES, text, CutRank.SNIPPET, age * 10 + number, is_named=is_named)
                for number, text in enumerate(snippets)
            ]
            shown += bool(snippets)
    items += _list_read_files(material, most=MOST_FILES - min(len(changed), MOST_FILES))
    left_out = len(material.files) - MOST_FILES
    if left_out > 0:
        items.append(SummaryItem(Section.FILES, f"[cut: {left_out:,} more files, not touched lately]"))
    return items


def _describe_file(known: KnownFile, material: Material, *, age: int, is_named: bool) -> SummaryItem:
    path = shorten_path(known.path, material.cwd)
    changes = list_changes(known)
    notes = [_count_uses(known)]
    if material.is_tracking_commits:
        commit = next((commit for commit in material.commits if commit.place > changes[-1].place), None)
        notes.append(f"committed in {commit.revision}" if commit else "NOT committed since its last change")
    names = describe_names(known)
    text = f"- **{path}**: {'; '.join(notes)}.{_write_names(names, is_new=known.edits == 0)}"
    if said := _find_words_about(known, changes, names, material):
        text += f" Said with a change: {quote_in_line(said)}"
    return SummaryItem(Section.FILES, text, CutRank.FILE_NOTE, age, f"- {path} [note cut]", is_named=is_named)


def _write_names(names: FileChange, *, is_new: bool) -> str:
    parts = []
    touched = [name for name in names.touched if name not in names.added]
    for title, listed in (
        ("Changed", touched),
        ("Defines" if is_new else "New names", names.added),
        ("Names gone", names.removed),
    ):
        if listed:
            parts.append(f" {title}: {', '.join(f'`{name}`' for name in listed)}.")
    return "".join(parts)


def _find_words_about(known: KnownFile, changes: Sequence[ToolCall], names: FileChange, material: Material) -> str:
    """Return what the agent said before a change, if the sentences name the file, its folder or one of its names."""
    names_sought = _list_words(known.path, (*names.touched, *names.added, *names.removed))
    base = PurePosixPath(known.path).name
    for change in reversed(changes[-_CHANGES_SEARCHED:]):
        remark = material.find_remark_before(change)
        if remark is None:
            continue
        sentences = [
            sentence
            for sentence in material.list_prose(remark)
            if base in sentence or not names_sought.isdisjoint(_WORD.findall(sentence))
        ]
        chosen = choose_sentences(sentences, priorities=material.priorities, limit=_SAID_CHARACTERS)
        if chosen:
            return cut_text(chosen[0], _SAID_CHARACTERS)
    return ""


def _list_words(path: str, names: Sequence[str]) -> frozenset[str]:
    """Return the words by which a sentence names a file: its stem, its folder, and the last parts of its names."""
    parts = PurePosixPath(path)
    own = (part for part in (parts.stem, parts.parent.name) if len(part) > _SHORTEST_NAME)
    return frozenset([*own, *(name.rpartition(".")[2].rstrip("?!") for name in names)])


def _list_read_files(material: Material, *, most: int) -> list[SummaryItem]:
    read = [known for known in material.files if not known.is_changed][:most]
    items = []
    for start in range(0, len(read), _PATHS_A_LINE):
        part = read[start : start + _PATHS_A_LINE]
        paths = ", ".join(shorten_path(known.path, material.cwd) for known in part)
        title = "- Only read, newest first" if start == 0 else "- Only read, earlier"
        is_named = any(material.priorities.matches(known.path) for known in part)
        text, rank = f"{title}: {paths}", CutRank.READ_FILE
        items.append(SummaryItem(Section.FILES, text, rank, start, is_named=is_named, count=len(part)))
    return items


def _count_uses(known: KnownFile) -> str:
    counts = {"written": known.writes, "edited": known.edits, "read": known.reads}
    used = [f"{verb} {times} times" if times > 1 else verb for verb, times in counts.items() if times]
    when = f", last at {known.seen_at:%H:%M}" if known.seen_at else ""
    return (", ".join(used) or "shown") + when


def _show_changes(known: KnownFile, material: Material, *, is_newest: bool, is_named: bool) -> list[str]:
    """Return the last changes as code, the newest last; more of it where nothing was tested since."""
    suffix = PurePosixPath(known.path).suffix.lstrip(".")
    is_untested = is_newest and not any(check.place > list_changes(known)[-1].place for check in material.checks)
    is_long = is_named or is_untested
    shown: list[str] = []
    for change in reversed(list_changes(known)):
        texts = list_new_code(change)
        if not texts:
            continue
        title = "As written" if change.name in FILE_WRITERS else "Changed to"
        lines, characters = (_LONG_LINES, _LONG_CHARACTERS) if is_long else (_SNIPPET_LINES, _SNIPPET_CHARACTERS)
        code = cut_lines(texts[-1].strip("\n"), lines, characters)
        body = "\n".join(f"  | {line}".rstrip() for line in code.splitlines())
        shown.append(f"  {title}{f' ({suffix})' if suffix else ''}:\n{body}")
        if len(shown) >= (_CHANGES_SHOWN if is_newest or is_named else 1):
            break
    return shown[::-1]

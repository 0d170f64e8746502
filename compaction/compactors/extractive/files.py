"""Sections 2 and 3: the folder, programs and recurring terms of the work; then files, their changes, recent code."""

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import PurePosixPath

from compaction.activity.excerpts import cut_line, cut_text, is_read_only, shorten_path, trim_command
from compaction.activity.files import NameChanges, TouchedFile, compare_names, list_new_code
from compaction.activity.sentences import TERM
from compaction.activity.statements import choose_sentences
from compaction.activity.tool_calls import ToolCall
from compaction.compactors.extractive.material import Material
from compaction.compactors.extractive.sections import CutRank, SummaryItem, describe_time, quote_in_line
from compaction.compactors.summary.prompt import Section
from compaction.transcripts.client_protocol import FILE_WRITERS

SNIPPET_FILES = 6  # the product's: files whose last changes are shown as code
MOST_FILES = 250
_MOST_PROGRAMS = 10
_MOST_TERMS = 14
_LONGEST_TERM = 60
_CHANGES_SHOWN = 3  # of the file that was changed last; of others the last one
_SNIPPET_LINES = 14
_SNIPPET_CHARACTERS = 700
_LONG_LINES, _LONG_CHARACTERS = 56, 2_200
_QUOTATION_CHARACTERS = 260
_PATHS_A_LINE = 8
_CHANGES_SEARCHED = 6
_SHORTEST_NAME = 3  # characters: shorter ones are words of any sentence
_WORD = re.compile(r"\w+")


def list_concept_items(material: Material) -> list[SummaryItem]:
    """Return the working directory, the commands and the recurring terms, most used first."""
    lines = []
    if material.cwd:
        branch = f", branch {cut_line(material.branch)}" if material.branch else ""
        lines.append(f"- Working directory: {cut_line(material.cwd)}{branch}")
    programs = Counter(
        " ".join(trim_command(tool_call.command).split()[:2])
        for tool_call in material.activity.tool_calls
        if tool_call.command and not is_read_only(tool_call.command)
    )
    lines.append(_rank("Commands in use", programs, _MOST_PROGRAMS))
    terms = Counter(
        term
        for text in material.activity.assistant_texts
        for term in TERM.findall(text.text)
        if len(term) <= _LONGEST_TERM
    )
    recurring = Counter({term: count for term, count in terms.items() if count > 1})
    lines.append(_rank("Recurring terms", recurring, _MOST_TERMS))
    return [SummaryItem(Section.CONCEPTS, line) for line in lines if line]


def list_file_items(material: Material, *, has_snippets: bool = True) -> list[SummaryItem]:
    """Return changed files, those the instructions name first, then the newest; then paths that were only read."""
    changed = [file for file in material.files if file.is_changed]
    changed.sort(key=lambda file: not material.priorities.matches(file.path))
    items: list[SummaryItem] = []
    shown = 0
    for age, file in enumerate(changed[:MOST_FILES]):
        is_named = material.priorities.matches(file.path)
        items.append(_describe_file(file, material, age=age, is_named=is_named))
        is_shown = is_named or file.changes[-1].entry_index > material.last_commit_index
        if has_snippets and is_shown and shown < SNIPPET_FILES:
            snippets = _list_snippets(file, material, is_newest=shown == 0, is_named=is_named)
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


def _rank(title: str, counts: Counter[str], most: int) -> str:
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:most]
    return f"- {title}: {', '.join(f'{name} ({times})' for name, times in ranked)}" if ranked else ""


def _describe_file(file: TouchedFile, material: Material, *, age: int, is_named: bool) -> SummaryItem:
    path = shorten_path(file.path, material.cwd)
    changes = file.changes
    notes = [_describe_uses(file)]
    if material.is_tracking_commits:
        commit = next((commit for commit in material.commits if commit.entry_index > changes[-1].entry_index), None)
        notes.append(f"committed in {commit.revision}" if commit else "NOT committed since its last change")
    names = compare_names(file)
    text = f"- **{path}**: {'; '.join(notes)}.{_describe_names(names, is_new=file.edits == 0)}"
    if quotation := _find_quotation(file, changes, names, material):
        text += f" Said with a change: {quote_in_line(quotation)}"
    return SummaryItem(Section.FILES, text, CutRank.FILE_NOTE, age, f"- {path} [note cut]", is_named=is_named)


def _describe_names(names: NameChanges, *, is_new: bool) -> str:
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


def _find_quotation(file: TouchedFile, changes: Sequence[ToolCall], names: NameChanges, material: Material) -> str:
    """Return what the agent wrote before a change, if the sentences name the file, its folder or one of its names."""
    words = _list_words(file.path, (*names.touched, *names.added, *names.removed))
    base = PurePosixPath(file.path).name
    for change in reversed(changes[-_CHANGES_SEARCHED:]):
        assistant_text = material.find_text_before(change)
        if assistant_text is None:
            continue
        sentences = [
            sentence
            for sentence in material.list_prose(assistant_text)
            if base in sentence or not words.isdisjoint(_WORD.findall(sentence))
        ]
        chosen = choose_sentences(sentences, priorities=material.priorities, limit=_QUOTATION_CHARACTERS)
        if chosen:
            return cut_text(chosen[0], _QUOTATION_CHARACTERS)
    return ""


def _list_words(path: str, names: Sequence[str]) -> frozenset[str]:
    """Return the words by which a sentence names a file: its stem, its folder, and the last parts of its names."""
    parts = PurePosixPath(path)
    path_words = (part for part in (parts.stem, parts.parent.name) if len(part) > _SHORTEST_NAME)
    return frozenset([*path_words, *(name.rpartition(".")[2].rstrip("?!") for name in names)])


def _list_read_files(material: Material, *, most: int) -> list[SummaryItem]:
    read = [file for file in material.files if not file.is_changed][:most]
    items = []
    for start in range(0, len(read), _PATHS_A_LINE):
        part = read[start : start + _PATHS_A_LINE]
        paths = ", ".join(shorten_path(file.path, material.cwd) for file in part)
        title = "- Only read, newest first" if start == 0 else "- Only read, earlier"
        is_named = any(material.priorities.matches(file.path) for file in part)
        text, rank = f"{title}: {paths}", CutRank.READ_FILE
        items.append(SummaryItem(Section.FILES, text, rank, start, is_named=is_named, count=len(part)))
    return items


def _describe_uses(file: TouchedFile) -> str:
    counts = {"written": file.writes, "edited": file.edits, "read": file.reads}
    uses = [f"{verb} {times} times" if times > 1 else verb for verb, times in counts.items() if times]
    return (", ".join(uses) or "shown") + describe_time(file.seen_at, ", last at ")


def _list_snippets(file: TouchedFile, material: Material, *, is_newest: bool, is_named: bool) -> list[str]:
    """Return the last changes as code, the newest last; more of it where nothing was tested since."""
    suffix = PurePosixPath(file.path).suffix.lstrip(".")
    changes = file.changes
    last = changes[-1].entry_index
    is_untested = is_newest and not any(check.tool_call.entry_index > last for check in material.checks)
    is_long = is_named or is_untested
    shown: list[str] = []
    for change in reversed(changes):
        texts = list_new_code(change)
        if not texts:
            continue
        title = "As written" if change.name in FILE_WRITERS else "Changed to"
        lines, characters = (_LONG_LINES, _LONG_CHARACTERS) if is_long else (_SNIPPET_LINES, _SNIPPET_CHARACTERS)
        code = cut_text(texts[-1].strip("\n"), characters, lines=lines)
        body = "\n".join(f"  | {line}".rstrip() for line in code.splitlines())
        shown.append(f"  {title}{f' ({suffix})' if suffix else ''}:\n{body}")
        if len(shown) >= (_CHANGES_SHOWN if is_newest or is_named else 1):
            break
    return shown[::-1]

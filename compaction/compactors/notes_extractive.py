"""Session notes without a model: the template's sections filled with quotations, the same for the same input."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from compaction.compactors.commits import Commit, list_commits
from compaction.compactors.digest import cut_text, shows_only, take_line, trim_command
from compaction.compactors.extract_earlier import list_earlier_pieces
from compaction.compactors.extract_files import list_file_pieces
from compaction.compactors.extract_pieces import CutRank, Piece, quote, quote_in_line
from compaction.compactors.extract_state import list_current_pieces, list_next_pieces, list_pending_pieces
from compaction.compactors.extract_story import list_concept_pieces, list_failure_pieces, list_step_pieces
from compaction.compactors.failures import Failure, find_failures
from compaction.compactors.known_files import KnownFile, read_known_files
from compaction.compactors.notes import (
    ALL_NOTES_TOKENS,
    DEFAULT_TEMPLATE,
    SECTION_TOKENS,
    NotesSection,
    split_notes,
)
from compaction.compactors.spoken import SaidKind
from compaction.compactors.todos import Todo, read_todos
from compaction.compactors.wishes import list_constraints
from compaction.compactors.work import Work, read_work
from compaction.context.tokens import CHARACTERS_PER_TOKEN, count_text_tokens
from compaction.transcripts.entries import Entry

CURRENT_STATE = "Current State"  # always told anew, whoever wrote it last
_TITLE_WORDS = 10
_REQUEST_CHARACTERS = 1_500
_STEP_CHARACTERS = 160
_MOST_COMMANDS = 60
_MOST_CONSTRAINTS = 30
_OLDER_GONE = "[older lines were left out to stay within the limit]"
_MORE_GONE = "[more was left out to stay within the limit]"


@dataclass(frozen=True, slots=True)
class _Material:
    """What was said and done, read once for all sections."""

    work: Work
    files: tuple[KnownFile, ...]
    todos: tuple[Todo, ...]
    failures: tuple[Failure, ...]
    commits: tuple[Commit, ...]
    cwd: str | None
    branch: str | None


@dataclass(frozen=True, slots=True)
class _Filler:
    """What a section is filled with, known by its name. `keeps_end`: of a list in order of time the newest stays."""

    name: re.Pattern[str]
    list_blocks: Callable[[_Material], list[str]]
    keeps_end: bool = False


def write_extractive_notes(
    entries: Sequence[Entry], *, template: str = DEFAULT_TEMPLATE, own_words: Mapping[str, str] | None = None
) -> str:
    """Notes on these entries, which are what the model sees, within the limits of notes.

    `own_words` are sections that a person wrote: they stay, but for the current state. A section whose name says
    nothing to us stays empty; if that holds for all of them, the first one takes the current state.
    """
    material = _read_material(entries)
    sections = split_notes(template)
    bodies = [_choose_blocks(section, material, own_words or {}) for section in sections]
    if sections and not any(blocks for blocks, _ in bodies):
        bodies[0] = (_list_state(material), False)
    limit_tokens = _share_out(sections, bodies)
    return "\n\n".join(
        section.write(_fit(blocks, limit_tokens, keeps_end=keeps_end))
        for section, (blocks, keeps_end) in zip(sections, bodies, strict=True)
    )


def find_own_words(history: Sequence[tuple[bool, str]]) -> dict[str, str]:
    """Sections of the newest notes as a person wrote them. `history` is oldest first, each with whether by a person."""
    written: dict[str, str] = {}
    before: dict[str, str] = {}
    for is_by_person, text in history:
        now = {section.name: section.body for section in split_notes(text)}
        if is_by_person:
            written |= {name: body for name, body in now.items() if body != before.get(name)}
        before = now
    return {name: body for name, body in written.items() if body and before.get(name) == body}


def _read_material(entries: Sequence[Entry]) -> _Material:
    work = read_work(entries)
    return _Material(
        work=work,
        files=read_known_files(entries, work),
        todos=read_todos(entries, work),
        failures=find_failures(work),
        commits=list_commits(work),
        cwd=next((entry.cwd for entry in reversed(entries) if entry.cwd), None),
        branch=next((entry.git_branch for entry in reversed(entries) if entry.git_branch), None),
    )


def _choose_blocks(section: NotesSection, material: _Material, own_words: Mapping[str, str]) -> tuple[list[str], bool]:
    own = own_words.get(section.name)
    if own and section.name.casefold() != CURRENT_STATE.casefold():
        return [own], False
    filler = next((each for each in _FILLERS if each.name.search(section.name)), None)
    return (filler.list_blocks(material), filler.keeps_end) if filler else ([], False)


def _list_title(material: _Material) -> list[str]:
    said = next((said.text for said in material.work.said if said.kind is not SaidKind.ANSWER), "")
    words = take_line(said, 200).split()
    return (
        [quote_in_line(" ".join(words[:_TITLE_WORDS]) + (" …" if len(words) > _TITLE_WORDS else ""))] if words else []
    )


def _list_state(material: _Material) -> list[str]:
    work = material.work
    pieces = [
        *list_next_pieces(work, material.todos, material.failures),
        *list_pending_pieces(material.todos, work),
        *list_current_pieces(work, cwd=material.cwd),
    ]
    return [piece.text for piece in pieces]


def _list_task(material: _Material) -> list[str]:
    requests = [said for said in material.work.said if said.kind is not SaidKind.ANSWER]
    blocks = []
    if requests:
        blocks.append("- The first request:\n" + quote(cut_text(requests[0].text, _REQUEST_CHARACTERS)))
    constraints = list_constraints(material.work.said)[-_MOST_CONSTRAINTS:]
    if constraints:
        told = "\n".join(f"  - {quote_in_line(constraint.text)}" for constraint in constraints)
        blocks.append(f"- Limits and wishes, in the user's words:\n{told}")
    if len(requests) > 1:
        blocks.append("- The newest request:\n" + quote(cut_text(requests[-1].text, _REQUEST_CHARACTERS)))
    return blocks + _list_earlier(material, 1, 7)


def _list_files(material: _Material) -> list[str]:
    pieces = list_file_pieces(material.files, material.work, cwd=material.cwd, commits=material.commits)
    notes = [piece.text for piece in pieces if piece.rank is not CutRank.SNIPPET]
    return notes + _list_earlier(material, 3)


def _list_commands(material: _Material) -> list[str]:
    """Commands that did something, each where it was last run."""
    found: dict[str, None] = {}
    for action in material.work.actions:
        if action.command and not shows_only(action.command):
            command = take_line(trim_command(action.command))
            found.pop(command, None)
            found[command] = None
    return [f"- `{command}`" for command in list(found)[-_MOST_COMMANDS:]]


def _list_errors(material: _Material) -> list[str]:
    pieces = list_failure_pieces(material.failures, cwd=material.cwd)
    return _list_earlier(material, 4) + [piece.text for piece in pieces]


def _list_system(material: _Material) -> list[str]:
    pieces = list_concept_pieces(material.work, material.files, cwd=material.cwd, branch=material.branch)
    return [piece.text for piece in pieces] + _list_earlier(material, 2)


def _list_findings(material: _Material) -> list[str]:
    pieces = list_step_pieces(material.work, (), material.failures)
    return _list_earlier(material, 5) + [piece.text for piece in pieces]


def _list_steps(material: _Material) -> list[str]:
    """What was asked for and what was committed, in the order of time."""
    steps = [
        (said.place, f"- {f'{said.at:%H:%M} ' if said.at else ''}asked: {_quote_step(said.text)}")
        for said in material.work.said
        if said.kind is not SaidKind.ANSWER
    ]
    steps += [
        (commit.place, f"- committed {commit.revision}: {_quote_step(commit.subject)}") for commit in material.commits
    ]
    return [text for _, text in sorted(steps, key=lambda step: step[0])]


def _quote_step(text: str) -> str:
    return quote_in_line(take_line(text, _STEP_CHARACTERS))


def _list_earlier(material: _Material, *numbers: int) -> list[str]:
    """What the summary before the last compaction said in these of its sections."""
    pieces: Sequence[Piece] = list_earlier_pieces(material.work.earlier_summary)
    return [piece.text for piece in pieces if piece.section in numbers]


_FILLERS = tuple(
    _Filler(re.compile(words, re.IGNORECASE), list_blocks, keeps_end)
    for words, list_blocks, keeps_end in (
        (r"\btitle\b", _list_title, False),
        (r"\b(?:state|status)\b", _list_state, False),
        (r"\b(?:task|goal|request|specification)s?\b", _list_task, False),
        (r"\b(?:files?|functions?)\b", _list_files, False),
        (r"\b(?:workflow|commands?)\b", _list_commands, True),
        (r"\b(?:errors?|corrections?|problems?)\b", _list_errors, True),
        (r"\b(?:codebase|system|architecture)\b", _list_system, False),
        (r"\b(?:learnings?|lessons?|findings?|decisions?)\b", _list_findings, True),
        (r"\b(?:work ?log|log|history|steps)\b", _list_steps, True),
    )
)


def _share_out(sections: Sequence[NotesSection], bodies: Sequence[tuple[list[str], bool]]) -> int:
    """The largest limit for one section with which all of them stay within the limit of the whole."""
    left_tokens = ALL_NOTES_TOKENS - sum(count_text_tokens(section.write("")) + 2 for section in sections)
    limit_tokens = SECTION_TOKENS
    sizes = sorted(count_text_tokens("\n".join(blocks)) for blocks, _ in bodies)
    for index, size in enumerate(sizes):
        share_tokens = max(0, left_tokens) // (len(sizes) - index)
        if size > share_tokens:
            return min(limit_tokens, share_tokens)
        left_tokens -= size
    return limit_tokens


def _fit(blocks: Sequence[str], limit_tokens: int, *, keeps_end: bool) -> str:
    """The blocks that have room, from the end or from the beginning, with a mark where some are missing."""
    limit = limit_tokens * CHARACTERS_PER_TOKEN - CHARACTERS_PER_TOKEN
    if len(text := "\n".join(blocks)) <= limit:
        return text
    kept: list[str] = []
    room = limit - len(_OLDER_GONE) - 1
    for block in reversed(blocks) if keeps_end else blocks:
        if len(block) + 1 > room:
            break
        kept.append(block)
        room -= len(block) + 1
    if not kept:
        return cut_text((blocks[-1] if keeps_end else blocks[0]), max(0, room - 50))
    return "\n".join([_OLDER_GONE, *reversed(kept)] if keeps_end else [*kept, _MORE_GONE])

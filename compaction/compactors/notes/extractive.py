"""Session notes without a model: the template's sections filled with quotations, the same for the same input."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from compaction.activity.constraints import list_constraints
from compaction.activity.excerpts import cut_text, shows_only, take_line, trim_command
from compaction.activity.user_messages import UserMessageKind
from compaction.compactors.extractive.concepts import list_concept_items
from compaction.compactors.extractive.current_state import list_current_items, list_next_items
from compaction.compactors.extractive.errors import list_error_items
from compaction.compactors.extractive.files import list_file_items
from compaction.compactors.extractive.history import list_history_items
from compaction.compactors.extractive.material import Material, read_material
from compaction.compactors.extractive.pending import list_pending_items
from compaction.compactors.extractive.previous_summary import list_earlier_items
from compaction.compactors.extractive.sections import SummaryItem, quote, quote_in_line
from compaction.compactors.notes.template import (
    ALL_NOTES_TOKENS,
    DEFAULT_TEMPLATE,
    SECTION_TOKENS,
    NotesSection,
    parse_notes,
)
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
class _Filler:
    """What a section is filled with, known by its name. `keeps_end`: of a list in order of time the newest stays."""

    name: re.Pattern[str]
    list_blocks: Callable[[Material], list[str]]
    keeps_end: bool = False


def write_extractive_notes(
    entries: Sequence[Entry], *, template: str = DEFAULT_TEMPLATE, own_words: Mapping[str, str] | None = None
) -> str:
    """Notes on these entries, which are what the model sees, within the limits of notes.

    `own_words` are sections that a person wrote: they stay, but for the current state. A section whose name says
    nothing to us stays empty; if that holds for all of them, the first one takes the current state.
    """
    material = read_material(entries)
    sections = parse_notes(template)
    bodies = [_choose_blocks(section, material, own_words or {}) for section in sections]
    if sections and not any(blocks for blocks, _ in bodies):
        bodies[0] = (_list_state(material), False)
    limit_tokens = _share_out(sections, bodies)
    return "\n\n".join(
        section.format(_fit(blocks, limit_tokens, keeps_end=keeps_end))
        for section, (blocks, keeps_end) in zip(sections, bodies, strict=True)
    )


def find_own_words(history: Sequence[tuple[bool, str]]) -> dict[str, str]:
    """Sections of the newest notes as a person wrote them. `history` is oldest first, each with whether by a person."""
    written: dict[str, str] = {}
    before: dict[str, str] = {}
    for is_by_person, text in history:
        now = {section.name: section.body for section in parse_notes(text)}
        if is_by_person:
            written |= {name: body for name, body in now.items() if body != before.get(name)}
        before = now
    return {name: body for name, body in written.items() if body and before.get(name) == body}


def _choose_blocks(section: NotesSection, material: Material, own_words: Mapping[str, str]) -> tuple[list[str], bool]:
    own = own_words.get(section.name)
    if own and section.name.casefold() != CURRENT_STATE.casefold():
        return [own], False
    filler = next((each for each in _FILLERS if each.name.search(section.name)), None)
    return (filler.list_blocks(material), filler.keeps_end) if filler else ([], False)


def _list_title(material: Material) -> list[str]:
    said = next((said.text for said in material.work.said if said.kind is not UserMessageKind.ANSWER), "")
    words = take_line(said, 200).split()
    return (
        [quote_in_line(" ".join(words[:_TITLE_WORDS]) + (" …" if len(words) > _TITLE_WORDS else ""))] if words else []
    )


def _list_state(material: Material) -> list[str]:
    items = [*list_next_items(material), *list_pending_items(material), *list_current_items(material)]
    return [item.text for item in items]


def _list_task(material: Material) -> list[str]:
    requests = [said for said in material.work.said if said.kind is not UserMessageKind.ANSWER]
    blocks = []
    if requests:
        blocks.append("- The first request:\n" + quote(cut_text(requests[0].text, _REQUEST_CHARACTERS)))
    constraints = list_constraints(material.work.said)[-_MOST_CONSTRAINTS:]
    if constraints:
        quoted = "\n".join(f"  - {quote_in_line(constraint.text)}" for constraint in constraints)
        blocks.append(f"- Constraints in the user's words:\n{quoted}")
    if len(requests) > 1:
        blocks.append("- The newest request:\n" + quote(cut_text(requests[-1].text, _REQUEST_CHARACTERS)))
    return blocks + _list_earlier(material, 1, 7)


def _list_files(material: Material) -> list[str]:
    return [item.text for item in list_file_items(material, has_snippets=False)] + _list_earlier(material, 3)


def _list_commands(material: Material) -> list[str]:
    """Commands that did something, each where it was last run."""
    found: dict[str, None] = {}
    for action in material.work.actions:
        if action.command and not shows_only(action.command):
            command = take_line(trim_command(action.command))
            found.pop(command, None)
            found[command] = None
    return [f"- `{command}`" for command in list(found)[-_MOST_COMMANDS:]]


def _list_errors(material: Material) -> list[str]:
    return _list_earlier(material, 4) + [item.text for item in list_error_items(material)]


def _list_system(material: Material) -> list[str]:
    return [item.text for item in list_concept_items(material)] + _list_earlier(material, 2)


def _list_findings(material: Material) -> list[str]:
    # The section keeps its end where it is cut, so that the newest come last.
    items = reversed(list_history_items(material, has_commits=False))
    return _list_earlier(material, 5) + [item.text for item in items]


def _list_steps(material: Material) -> list[str]:
    """What was asked for and what was committed, in the order of time."""
    steps = [
        (said.place, f"- {f'{said.at:%H:%M} ' if said.at else ''}asked: {_quote_step(said.text)}")
        for said in material.work.said
        if said.kind is not UserMessageKind.ANSWER
    ]
    steps += [
        (commit.place, f"- committed {commit.revision}: {_quote_step(commit.subject)}") for commit in material.commits
    ]
    return [text for _, text in sorted(steps, key=lambda step: step[0])]


def _quote_step(text: str) -> str:
    return quote_in_line(take_line(text, _STEP_CHARACTERS))


def _list_earlier(material: Material, *numbers: int) -> list[str]:
    """What the summary before the last compaction said in these of its sections."""
    items: Sequence[SummaryItem] = list_earlier_items(material.work.earlier_summary)
    return [item.text for item in items if item.section in numbers]


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
    left_tokens = ALL_NOTES_TOKENS - sum(count_text_tokens(section.format("")) + 2 for section in sections)
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

"""Session notes without a model: the template's sections filled with quotations, the same for the same input."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from compaction.activity.constraints import list_constraints
from compaction.activity.excerpts import cut_line, cut_text, is_read_only, trim_command
from compaction.compactors.extractive.current_state import list_current_items, list_next_items
from compaction.compactors.extractive.errors import list_error_items
from compaction.compactors.extractive.files import list_concept_items, list_file_items
from compaction.compactors.extractive.history import list_history_items
from compaction.compactors.extractive.material import Material, read_material
from compaction.compactors.extractive.pending import list_pending_items
from compaction.compactors.extractive.previous_summary import list_previous_items
from compaction.compactors.extractive.sections import describe_time, quote, quote_in_line
from compaction.compactors.notes.template import (
    ALL_NOTES_TOKENS,
    DEFAULT_TEMPLATE,
    SECTION_TOKENS,
    NotesSection,
    parse_notes,
)
from compaction.compactors.summary.prompt import Section
from compaction.context.tokens import CHARACTERS_PER_TOKEN, count_text_tokens
from compaction.transcripts.entries import Entry

CURRENT_STATE = "Current State"  # always written again, even where a person edited it
_TITLE_WORDS = 10
_REQUEST_CHARACTERS = 1_500
_STEP_CHARACTERS = 160
_MOST_COMMANDS = 60
_MOST_CONSTRAINTS = 30
_OLDER_CUT = "[older lines were left out to stay within the limit]"
_REST_CUT = "[more was left out to stay within the limit]"


@dataclass(frozen=True, slots=True)
class _Filling:
    """The content of sections whose name matches. `keeps_end`: a list in order of time is cut at its beginning."""

    name: re.Pattern[str]
    list_blocks: Callable[[Material], list[str]]
    keeps_end: bool = False


def build_extractive_notes(
    entries: Sequence[Entry], *, template: str = DEFAULT_TEMPLATE, edited_sections: Mapping[str, str] | None = None
) -> str:
    """Return notes on these entries, which are what the model sees, within the limits of notes.

    `edited_sections` were written by a person and stay, except for the current state. A section with an unknown name
    stays empty; if all names are unknown, the first section receives the current state.
    """
    material = read_material(entries)
    sections = parse_notes(template)
    bodies = [_list_blocks(section, material, edited_sections or {}) for section in sections]
    if sections and not any(blocks for blocks, _ in bodies):
        bodies[0] = (_list_state(material), False)
    limit_tokens = _compute_section_limit(sections, bodies)
    return "\n\n".join(
        section.format(_join_blocks(blocks, limit_tokens, keeps_end=keeps_end))
        for section, (blocks, keeps_end) in zip(sections, bodies, strict=True)
    )


def find_edited_sections(history: Sequence[tuple[bool, str]]) -> dict[str, str]:
    """Return the sections of the newest notes that a person wrote.

    `history` has each version of the notes, oldest first, with whether a person wrote it.
    """
    edited: dict[str, str] = {}
    before: dict[str, str] = {}
    for is_by_person, text in history:
        bodies = {section.name: section.body for section in parse_notes(text)}
        if is_by_person:
            edited |= {name: body for name, body in bodies.items() if body != before.get(name)}
        before = bodies
    return {name: body for name, body in edited.items() if body and before.get(name) == body}


def _list_blocks(
    section: NotesSection, material: Material, edited_sections: Mapping[str, str]
) -> tuple[list[str], bool]:
    """Return the blocks of a section, and whether it is cut at its beginning."""
    edited = edited_sections.get(section.name)
    if edited and section.name.casefold() != CURRENT_STATE.casefold():
        return [edited], False
    filling = next((filling for filling in _FILLINGS if filling.name.search(section.name)), None)
    return (filling.list_blocks(material), filling.keeps_end) if filling else ([], False)


def _list_title(material: Material) -> list[str]:
    words = cut_line(material.requests[0].text, 200).split() if material.requests else []
    return (
        [quote_in_line(" ".join(words[:_TITLE_WORDS]) + (" …" if len(words) > _TITLE_WORDS else ""))] if words else []
    )


def _list_state(material: Material) -> list[str]:
    items = [*list_next_items(material), *list_pending_items(material), *list_current_items(material)]
    return [item.text for item in items]


def _list_task(material: Material) -> list[str]:
    requests = material.requests
    blocks = []
    if requests:
        blocks.append("- The first request:\n" + quote(cut_text(requests[0].text, _REQUEST_CHARACTERS)))
    constraints = list_constraints(material.activity.user_messages)[-_MOST_CONSTRAINTS:]
    if constraints:
        quoted = "\n".join(f"  - {quote_in_line(constraint.text)}" for constraint in constraints)
        blocks.append(f"- Constraints in the user's words:\n{quoted}")
    if len(requests) > 1:
        blocks.append("- The newest request:\n" + quote(cut_text(requests[-1].text, _REQUEST_CHARACTERS)))
    return blocks + _list_previous(material, Section.REQUEST, Section.PENDING)


def _list_files(material: Material) -> list[str]:
    items = list_file_items(material, has_snippets=False)
    return [item.text for item in items] + _list_previous(material, Section.FILES)


def _list_commands(material: Material) -> list[str]:
    """Return commands that did something, each at its last run."""
    commands: dict[str, None] = {}
    for tool_call in material.activity.tool_calls:
        if tool_call.command and not is_read_only(tool_call.command):
            command = cut_line(trim_command(tool_call.command))
            commands.pop(command, None)
            commands[command] = None
    return [f"- `{command}`" for command in list(commands)[-_MOST_COMMANDS:]]


def _list_errors(material: Material) -> list[str]:
    return _list_previous(material, Section.ERRORS) + [item.text for item in list_error_items(material)]


def _list_system(material: Material) -> list[str]:
    return [item.text for item in list_concept_items(material)] + _list_previous(material, Section.CONCEPTS)


def _list_findings(material: Material) -> list[str]:
    # The section is cut at its beginning, so the newest come last.
    items = reversed(list_history_items(material, has_commits=False))
    return _list_previous(material, Section.PROBLEM_SOLVING) + [item.text for item in items]


def _list_steps(material: Material) -> list[str]:
    """Return what was asked for and what was committed, in the order of time."""
    steps = [
        (message.entry_index, f"-{describe_time(message.at, ' ')} asked: {_quote_step(message.text)}")
        for message in material.requests
    ]
    steps += [
        (commit.entry_index, f"- committed {commit.revision}: {_quote_step(commit.subject)}")
        for commit in material.commits
    ]
    return [text for _, text in sorted(steps, key=lambda step: step[0])]


def _quote_step(text: str) -> str:
    return quote_in_line(cut_line(text, _STEP_CHARACTERS))


def _list_previous(material: Material, *sections: Section) -> list[str]:
    """Return these sections of the summary of the last compaction."""
    items = list_previous_items(material.activity.previous_summary)
    return [item.text for item in items if item.section in sections]


_FILLINGS = tuple(
    _Filling(re.compile(name, re.IGNORECASE), list_blocks, keeps_end)
    for name, list_blocks, keeps_end in (
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


def _compute_section_limit(sections: Sequence[NotesSection], bodies: Sequence[tuple[list[str], bool]]) -> int:
    """Return the largest limit of one section, in tokens, with which all of them stay within the limit of the whole."""
    left_tokens = ALL_NOTES_TOKENS - sum(count_text_tokens(section.format("")) + 2 for section in sections)
    sizes = sorted(count_text_tokens("\n".join(blocks)) for blocks, _ in bodies)
    for index, size in enumerate(sizes):
        share_tokens = max(0, left_tokens) // (len(sizes) - index)
        if size > share_tokens:
            return min(SECTION_TOKENS, share_tokens)
        left_tokens -= size
    return SECTION_TOKENS


def _join_blocks(blocks: Sequence[str], limit_tokens: int, *, keeps_end: bool) -> str:
    """Return the blocks within the limit, from the end or from the beginning, with a mark where some are cut."""
    limit = limit_tokens * CHARACTERS_PER_TOKEN - CHARACTERS_PER_TOKEN
    if len(text := "\n".join(blocks)) <= limit:
        return text
    shown: list[str] = []
    room = limit - len(_OLDER_CUT) - 1
    for block in reversed(blocks) if keeps_end else blocks:
        if len(block) + 1 > room:
            break
        shown.append(block)
        room -= len(block) + 1
    if not shown:
        return cut_text((blocks[-1] if keeps_end else blocks[0]), max(0, room - 50))
    return "\n".join([_OLDER_CUT, *reversed(shown)] if keeps_end else [*shown, _REST_CUT])

"""Session notes: the ten-section template, its limits, and the prompt with which a model fills it.

When notes are due is decided in schedule.
"""

import re
from dataclasses import dataclass
from datetime import datetime

from compaction.context.tokens import CHARACTERS_PER_TOKEN, count_text_tokens
from compaction.errors import BadNotesTemplate, SummaryWithoutSections

SECTION_TOKENS = 2_000  # the client's limit for one section
ALL_NOTES_TOKENS = 12_000  # the client's limit for the whole file
CUT_SECTION_CHARACTERS = SECTION_TOKENS * CHARACTERS_PER_TOKEN  # 8,000: what a compaction takes of one section
CUT_MARK = "[cut here: the section goes on in the session notes]"

# The names of the sections are the client's, the descriptions are ours.
DEFAULT_TEMPLATE = """\
# Session Title
_Five to ten words that tell this session from every other._

# Current State
_What is being worked on, what is not finished, and what comes next._

# Task Specification
_What the user wants built, with the decisions and the reasons behind them._

# Files and Functions
_The files and functions that matter, what each holds, and why it matters here._

# Workflow
_Commands in the order they are run, and how to read their output where it does not speak for itself._

# Errors & Corrections
_What went wrong and what helped, what the user corrected, and which ways need not be tried again._

# Codebase and System Documentation
_The parts of the system and how they fit together._

# Learnings
_What works well here and what does not. Nothing that already stands in another section._

# Key Results
_Results the user asked for by themselves, such as an answer or a table, word for word._

# Worklog
_Step by step what was tried and done, each step in a few words._
"""

_HEADING = re.compile(r"^# +(\S.*)$", re.MULTILINE)
_DESCRIPTION = re.compile(r"\A\s*(_[^\n]+_)[ \t]*(?:\n|\Z)")
_FENCE = re.compile(r"^(?:```|~~~)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class NotesSection:
    """One section: its heading, the description in italics under it, and its notes."""

    name: str
    description: str
    body: str

    @property
    def tokens(self) -> int:
        """Tokens of the notes, without heading and description."""
        return count_text_tokens(self.body)

    def format(self, body: str | None = None) -> str:
        """Return the section as text, optionally with another body."""
        parts = [f"# {self.name}", self.description, self.body if body is None else body]
        return "\n".join(part for part in parts if part)


@dataclass(frozen=True, slots=True)
class SessionNotes:
    """The newest notes, the last entry they cover, and the start of an extraction that is running."""

    text: str
    last_entry_uuid: str | None
    written_at: datetime | None = None
    extraction_started_at: datetime | None = None


def parse_notes(text: str) -> tuple[NotesSection, ...]:
    """Return the sections in order. A `#` line inside a code block is not a heading."""
    starts = _list_headings(text)
    ends = [match.start() for match in starts[1:]] + [len(text)] * bool(starts)
    return tuple(_parse_section(match, text[match.end() : end]) for match, end in zip(starts, ends, strict=True))


def require_valid_template(template: str) -> None:
    """Raise BadNotesTemplate when a template has no sections, two sections of one name, or too many tokens."""
    names = [section.name.casefold() for section in parse_notes(template)]
    if not names:
        raise BadNotesTemplate("it has no line that begins with # and a name.")
    duplicate = next((name for name in names if names.count(name) > 1), None)
    if duplicate is not None:
        raise BadNotesTemplate(f'it has the section "{duplicate}" more than once.')
    if count_text_tokens(template) > ALL_NOTES_TOKENS:
        raise BadNotesTemplate(f"by itself it is longer than the {ALL_NOTES_TOKENS:,} tokens that notes may have.")


def is_template_only(text: str, template: str = DEFAULT_TEMPLATE) -> bool:
    """Return whether every section is empty or equal to the template's."""
    template_bodies = {section.name: section.body for section in parse_notes(template)}
    sections = parse_notes(text)
    if not sections:
        return not text.strip()
    return all(not section.body or section.body == template_bodies.get(section.name) for section in sections)


def list_long_sections(text: str) -> tuple[NotesSection, ...]:
    """Return the sections over their limit, longest first."""
    long = [section for section in parse_notes(text) if section.tokens > SECTION_TOKENS]
    return tuple(sorted(long, key=lambda section: (-section.tokens, section.name)))


def cut_notes(text: str) -> str:
    """Return the notes with every heading and description, and each body within its limit; a mark shows each cut."""
    headings = _list_headings(text)
    opening = text[: headings[0].start() if headings else len(text)].strip()
    parts = [_cut_body(opening, CUT_SECTION_CHARACTERS)] if opening else []
    parts += [section.format(_cut_body(section.body, CUT_SECTION_CHARACTERS)) for section in parse_notes(text)]
    return "\n\n".join(parts)


def build_extraction_prompt(notes: str, *, template: str = DEFAULT_TEMPLATE, instructions: str | None = None) -> str:
    """Return the prompt for a model that updates the notes. It names the sections that have to be condensed."""
    current = notes if parse_notes(notes) else template
    parts = [
        "This message comes from the program around the conversation, not from the user: it is no part of the work, "
        "and the notes must not mention it.",
        "Bring the session notes below up to date with the conversation above. Answer with the whole notes and nothing "
        "else; call no tool.",
        f"<notes>\n{current.strip()}\n</notes>",
        "How to write them:\n"
        "- Keep every heading, and the line in italics under it, exactly as they are; add no section and drop none.\n"
        "- Write below the line in italics. A section without news stays as it is; never fill one up with nothing.\n"
        "- Be specific: paths, names of functions, commands, error messages, exact values.\n"
        "- Leave out what the instruction files of the project already say.\n"
        "- Current State always tells how things are now; whoever goes on reads it first.\n"
        f"- At most {SECTION_TOKENS:,} tokens a section and {ALL_NOTES_TOKENS:,} in all: "
        "condense the oldest and least useful first.",
        *_list_limit_reminders(current),
    ]
    if instructions and instructions.strip():
        parts.append(f"Additional instructions:\n{instructions.strip()}")
    return "\n\n".join(parts)


def parse_extraction(answer: str, notes: str, *, template: str = DEFAULT_TEMPLATE) -> str:
    """Return a model's notes with exactly the sections that existed before, each within its limit.

    Raises SummaryWithoutSections when the answer has none of them.
    """
    bodies = {section.name.casefold(): section.body for section in parse_notes(answer.replace("</notes>", ""))}
    sections = parse_notes(notes) or parse_notes(template)
    if not any(section.name.casefold() in bodies for section in sections):
        raise SummaryWithoutSections
    return cut_notes("\n\n".join(section.format(bodies.get(section.name.casefold())) for section in sections))


def _list_limit_reminders(notes: str) -> list[str]:
    reminders = []
    total = count_text_tokens(notes)
    if total > ALL_NOTES_TOKENS:
        reminders.append(
            f"The notes have {total:,} tokens, {ALL_NOTES_TOKENS:,} are allowed. Shorten them hard now; keep Current "
            "State and Errors & Corrections the longest."
        )
    long = list_long_sections(notes)
    if long:
        names = "\n".join(f'- "{section.name}": {section.tokens:,} tokens' for section in long)
        reminders.append(f"These sections must be condensed to {SECTION_TOKENS:,} tokens each:\n{names}")
    return reminders


def _cut_body(body: str, limit: int) -> str:
    if len(body) <= limit:
        return body
    shown = body[: limit - len(CUT_MARK) - 1]
    line_end = shown.rfind("\n")
    return f"{shown[:line_end] if line_end > limit // 2 else shown}\n{CUT_MARK}"


def _parse_section(match: re.Match[str], rest: str) -> NotesSection:
    description = _DESCRIPTION.match(rest)
    body = rest[description.end() :] if description else rest
    return NotesSection(match[1].strip(), description[1] if description else "", body.strip())


def _list_headings(text: str) -> list[re.Match[str]]:
    return [match for match in _HEADING.finditer(text) if not _is_fenced(text, match.start())]


def _is_fenced(text: str, index: int) -> bool:
    return sum(1 for match in _FENCE.finditer(text, 0, index)) % 2 == 1

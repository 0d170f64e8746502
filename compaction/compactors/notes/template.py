"""Session notes: the ten-section template, its limits, and cutting. When notes are taken lives in extraction."""

import re
from dataclasses import dataclass
from datetime import datetime

from compaction.context.tokens import CHARACTERS_PER_TOKEN, count_text_tokens
from compaction.errors import BadNotesTemplate

SECTION_TOKENS = 2_000  # the client's limit for one section
ALL_NOTES_TOKENS = 12_000  # the client's limit for the whole file
CUT_SECTION_CHARACTERS = SECTION_TOKENS * CHARACTERS_PER_TOKEN  # 8,000: what a compaction takes of one section
CUT_MARK = "[cut here: the section goes on in the session notes]"

# The names of the sections are the client's; what they ask for is said in our words.
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
    """One section: its heading, the description in italics under it, and what was noted."""

    name: str
    description: str
    body: str

    @property
    def tokens(self) -> int:
        """What was noted, in tokens."""
        return count_text_tokens(self.body)

    def write(self, body: str | None = None) -> str:
        """The section as text, with another body where one is given."""
        parts = [f"# {self.name}", self.description, self.body if body is None else body]
        return "\n".join(part for part in parts if part)


@dataclass(frozen=True, slots=True)
class SessionNotes:
    """Notes as they were last written, the last entry they cover, and since when a new extraction is under way."""

    text: str
    last_entry_uuid: str | None
    written_at: datetime | None = None
    extraction_started_at: datetime | None = None


def split_notes(text: str) -> tuple[NotesSection, ...]:
    """The sections in order; a `#` line inside a code block is no heading."""
    starts = _find_headings(text)
    ends = [match.start() for match in starts[1:]] + [len(text)] * bool(starts)
    return tuple(_read_section(match, text[match.end() : end]) for match, end in zip(starts, ends, strict=True))


def check_template(template: str) -> None:
    """Raises BadNotesTemplate with a sentence when a template has no sections, or two of one name, or is too long."""
    names = [section.name.casefold() for section in split_notes(template)]
    if not names:
        raise BadNotesTemplate("it has no line that begins with # and a name.")
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise BadNotesTemplate(f'it has the section "{twice}" more than once.')
    if count_text_tokens(template) > ALL_NOTES_TOKENS:
        raise BadNotesTemplate(f"by itself it is longer than the {ALL_NOTES_TOKENS:,} tokens that notes may have.")


def is_template_only(text: str, template: str = DEFAULT_TEMPLATE) -> bool:
    """Whether nothing was noted: every section is empty, or says what the template says."""
    given = {section.name: section.body for section in split_notes(template)}
    sections = split_notes(text)
    if not sections:
        return not text.strip()
    return all(not section.body or section.body == given.get(section.name) for section in sections)


def list_long_sections(text: str) -> tuple[NotesSection, ...]:
    """Sections over their limit, the longest first."""
    long = [section for section in split_notes(text) if section.tokens > SECTION_TOKENS]
    return tuple(sorted(long, key=lambda section: (-section.tokens, section.name)))


def cut_notes(text: str) -> str:
    """Notes for a summary: every heading and description, each body within its limit with a mark where it was cut."""
    headings = _find_headings(text)
    opening = text[: headings[0].start() if headings else len(text)].strip()
    parts = [_cut_body(opening, CUT_SECTION_CHARACTERS)] if opening else []
    parts += [section.write(_cut_body(section.body, CUT_SECTION_CHARACTERS)) for section in split_notes(text)]
    return "\n\n".join(parts)


def _cut_body(body: str, limit: int) -> str:
    if len(body) <= limit:
        return body
    shown = body[: limit - len(CUT_MARK) - 1]
    line_end = shown.rfind("\n")
    return f"{shown[:line_end] if line_end > limit // 2 else shown}\n{CUT_MARK}"


def _read_section(match: re.Match[str], rest: str) -> NotesSection:
    described = _DESCRIPTION.match(rest)
    body = rest[described.end() :] if described else rest
    return NotesSection(match[1].strip(), described[1] if described else "", body.strip())


def _find_headings(text: str) -> list[re.Match[str]]:
    return [match for match in _HEADING.finditer(text) if not _is_fenced(text, match.start())]


def _is_fenced(text: str, place: int) -> bool:
    return sum(1 for match in _FENCE.finditer(text, 0, place)) % 2 == 1

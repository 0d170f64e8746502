"""A statement that a continuing agent needs, and the splitting of texts into statements.

The rules for sentences and announcements repeat activity/sentences in part, on purpose: what the extractive summary
drops as filler must not drop out of the audit.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from compaction.audit.terms import IDENTIFIER, Term, list_terms

# A sentence of a line ends at its mark and a space, or at a full-width mark, which no space follows.
_SENTENCE_END = re.compile(r"(?<=[.!?;:])\s+(?=[^a-z])|(?<=[\u3002\uff01\uff1f\uff1b])")
_FENCE = re.compile(r"^[ \t]*(```|~~~)[^\n]*\n.*?(?:^[ \t]*\1[ \t]*$|\Z)", re.MULTILINE | re.DOTALL)
_BULLET = re.compile(r"^(?:\s*(?:[-*•>☐☑✅❌✔✗]|\(?\d{1,3}[.)]|\[[ xX]\]|#{1,6}|\|)\s+)+")
# Bold in Markdown; the stars of a pattern of paths such as src/**/*.py stay.
_STRONG = re.compile(r"(?<![\w*/])\*\*(?=[^\s*/])(.+?)(?<=[^\s*/])\*\*(?![\w*/])")
_RULE = re.compile(r"^[\s|:=*_#-]*$")
# Lines that programs print, as people paste them: levels, times, stack frames, file positions, diffs.
_MACHINE_LINE = re.compile(
    r"^\s*(?:at \S+ \(|File \"|\d{4}-\d\d-\d\d[T ]|\[?\d\d:\d\d:\d\d|[+-]{3} |@@ |diff --git|\$ |> ?\S+@|=== |--- "
    r"|[│├└╭╰┌])"
    r"|^\s*\S+:\d+(?::\d+)?:|^(?: {4,}|\t)[^\s\d*\u2022-]"
)
# What an agent writes before it acts: the tool call itself shows what was done.
_OPENING = r"(?:ok(?:ay)?|good|great|perfect|excellent|right|alright|hmm|wait)"
_ANNOUNCEMENT = re.compile(
    rf"^(?:(?:{_OPENING}|now|first|next|then|also|finally)\b[\s,.!:;\u2014-]*)*"
    r"(?:let me|let's|let us|i'll|i will|i need to|i'm going to|i am going to|i should|we need to|time to)\b"
    rf"|^(?:{_OPENING}|you're (?:absolutely )?right|good (?:question|point|catch))[\s,.!\u2014-]*$|:$",
    re.IGNORECASE,
)
LONGEST_STATEMENT = 400  # characters: longer lines are data
# Of the weights of its terms: with less, a statement is filler. What binds may be short: "do not use print".
LEAST_SUBSTANCE, LEAST_BINDING_SUBSTANCE = 3.0, 1.0


class Part(StrEnum):
    """What a continuing agent needs to know."""

    REQUIREMENTS = "requirements"
    DECISIONS = "decisions"
    PROGRESS = "progress"
    BACKGROUND = "background"
    ERRORS = "errors"
    REFERENCES = "references"

    @property
    def label(self) -> str:
        """Return the name for people."""
        return _LABELS[self]


_LABELS = {
    Part.REQUIREMENTS: "Requirements and constraints",
    Part.DECISIONS: "Decisions",
    Part.PROGRESS: "Done and open work",
    Part.BACKGROUND: "Background work",
    Part.ERRORS: "Errors",
    Part.REFERENCES: "Files, symbols and ids",
}


@dataclass(frozen=True, slots=True)
class AuditStatement:
    """A text to search for. `names` are identifiers of which one is enough, anywhere; else `terms` decide."""

    part: Part
    text: str
    entry_uuid: str | None
    weight: float
    terms: tuple[Term, ...] = ()
    names: tuple[str, ...] = field(default=())


def make_statement(
    part: Part, text: str, entry_uuid: str | None, weight: float, *, least_substance: float = LEAST_SUBSTANCE
) -> AuditStatement | None:
    """Return a statement that says enough to be recognised; None for filler."""
    terms = list_terms(text)
    if measure_substance(terms) < least_substance:
        return None
    return AuditStatement(part, text, entry_uuid, weight, terms)


def measure_substance(terms: Sequence[Term]) -> float:
    """Return how much a text says: the weight of its terms."""
    return sum(term.weight for term in terms)


def count_identifiers(terms: Sequence[Term]) -> int:
    """Return how many of the terms are identifiers."""
    return sum(term.weight >= IDENTIFIER for term in terms)


def is_announced_step(text: str) -> bool:
    """Return whether an agent's sentence only announces what it does next."""
    return bool(_ANNOUNCEMENT.search(text.replace("\u2019", "'")))


def split_statements(text: str) -> Iterator[str]:
    """Yield sentences and list items without their marks; code blocks, rules and machine output are left out."""
    for line in _FENCE.sub("\n", text).splitlines():
        if _RULE.match(line) or _MACHINE_LINE.search(line):
            continue
        for sentence in _SENTENCE_END.split(line):
            statement = _STRONG.sub(r"\1", _BULLET.sub("", sentence)).strip().strip("|*").strip()
            if 3 < len(statement) <= LONGEST_STATEMENT:
                yield statement

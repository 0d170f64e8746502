"""What a compaction lost: each thing worth keeping, looked for in what is left, cited by its entry and scored.

100 = nothing lost. A part counts found / present; a part with nothing to find is left out and the others weigh more.
All that is needed to work the score out by hand stands in the report.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from enum import StrEnum

from rapidfuzz import fuzz

from compaction.compactors.failures import find_failures
from compaction.compactors.known_files import read_known_files
from compaction.compactors.last_work import list_commands, list_symbols, take_last_actions
from compaction.compactors.matching import (
    SHORT_WORDS,
    Haystack,
    Manner,
    Match,
    find_name,
    find_path,
    find_words,
    list_endings,
    list_telling_words,
)
from compaction.compactors.todos import read_todos
from compaction.compactors.wishes import list_constraints
from compaction.compactors.work import Work, read_work
from compaction.transcripts.attachments import render_attachment
from compaction.transcripts.entries import Entry, TextBlock, ToolResultBlock, ToolUseBlock

_QUOTE_CHARACTERS = 160
_COMMAND_WORDS = 3  # program, what it is to do, and to what
_LONGEST_COMMAND = 80
# `KeyError`, `BadMapError`, `TS2304`, `E0502`: names that stand for one kind of failure.
_ERROR_NAME = re.compile(r"\b(?:[A-Z]\w{2,60}(?:Error|Exception)|TS\d{3,5}|E\d{4})\b")


class Part(StrEnum):
    """What a continuing agent needs."""

    USER_MESSAGES = "user messages"
    OPEN_TODOS = "open todos"
    CONSTRAINTS = "explicit constraints"
    FILES = "files touched"
    LAST_WORK = "last work"
    ERRORS = "errors"


# The product's weights; they add up to 100.
WEIGHTS: dict[Part, int] = {
    Part.USER_MESSAGES: 30,
    Part.OPEN_TODOS: 15,
    Part.CONSTRAINTS: 15,
    Part.FILES: 15,
    Part.LAST_WORK: 15,
    Part.ERRORS: 10,
}


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was there before: where it stood, and how it is found now."""

    part: Part
    quote: str
    entry_uuid: str | None
    match: Match


@dataclass(frozen=True, slots=True)
class PartScore:
    """One part: found of present, and its weight."""

    part: Part
    weight: int
    found: int
    present: int


@dataclass(frozen=True, slots=True)
class LossReport:
    """The audit of one compaction. `score` is None when there was nothing to lose."""

    findings: tuple[Finding, ...]

    @property
    def parts(self) -> tuple[PartScore, ...]:
        """The parts that had something to find, in the order of their weights."""
        scores = []
        for part, weight in WEIGHTS.items():
            of_part = [finding for finding in self.findings if finding.part is part]
            if of_part:
                scores.append(PartScore(part, weight, sum(item.match.is_found for item in of_part), len(of_part)))
        return tuple(scores)

    @property
    def score(self) -> Decimal | None:
        """Sum of weight x found / present over the sum of the weights that count, times 100, to one decimal."""
        weights = sum(part.weight for part in self.parts)
        if not weights:
            return None
        kept = sum((Decimal(part.weight) * part.found / part.present for part in self.parts), Decimal(0))
        return (kept * 100 / weights).quantize(Decimal("0.1"), ROUND_HALF_UP)

    @property
    def lost(self) -> tuple[Finding, ...]:
        """What cannot be found any more."""
        return tuple(finding for finding in self.findings if not finding.match.is_found)


def find_losses(before: Sequence[Entry], after: Iterable[Entry]) -> LossReport:
    """Audit a compaction: `before` is what was summarised and kept, `after` all that the model sees now."""
    left = tuple(after)
    kept = frozenset(entry.uuid for entry in left if entry.uuid)
    return _audit(before, Haystack("\n".join(_list_texts(left)), _compare), kept)


def find_losses_in_text(before: Sequence[Entry], summary: str) -> LossReport:
    """Audit a summary by itself, with nothing kept or restored beside it."""
    return _audit(before, Haystack(summary, _compare), frozenset())


def _compare(sought: str, passage: str) -> float:
    """How alike two passages read: order and wording, the passage may say more."""
    return max(fuzz.token_set_ratio(sought, passage), fuzz.partial_ratio(sought, passage))


def _audit(before: Sequence[Entry], haystack: Haystack, kept: frozenset[str]) -> LossReport:
    work = read_work(before)
    found = []
    for finding in (*_seek_words(work, before, haystack), *_seek_work(work, before, haystack)):
        is_kept = finding.entry_uuid in kept
        match = Match(Manner.KEPT, 1.0) if is_kept else finding.match
        found.append(Finding(finding.part, finding.quote, finding.entry_uuid, match))
    return LossReport(tuple(found))


def _seek_words(work: Work, before: Sequence[Entry], haystack: Haystack) -> Iterator[Finding]:
    for said in work.said:
        yield _report(Part.USER_MESSAGES, said.text, said.entry_uuid, find_words(said.text, haystack))
    for todo in read_todos(before, work):
        if todo.is_open:
            yield _report(Part.OPEN_TODOS, todo.text, todo.entry_uuid, find_words(todo.text, haystack))
    for constraint in list_constraints(work.said):
        yield _report(Part.CONSTRAINTS, constraint.text, constraint.entry_uuid, find_words(constraint.text, haystack))


def _seek_work(work: Work, before: Sequence[Entry], haystack: Haystack) -> Iterator[Finding]:
    files = read_known_files(before, work)
    endings = Counter(ending for known in files for ending in list_endings(known.path))
    shared = {ending for ending, times in endings.items() if times > 1}
    for known in files:
        match = find_path(known.path, haystack, shared_endings=shared)
        yield _report(Part.FILES, known.path, known.entry_uuid, match)
    actions = take_last_actions(work)
    for command in list_commands(actions):
        yield _report(Part.LAST_WORK, command.text, command.entry_uuid, _seek_command(command.text, haystack))
    for symbol in list_symbols(actions):
        yield _report(Part.LAST_WORK, symbol.text, symbol.entry_uuid, find_name(symbol.text, haystack))
    for failure in find_failures(work):
        if not failure.is_slip:
            yield _report(Part.ERRORS, failure.lines[0], failure.entry_uuid, _seek_failure(failure.lines, haystack))


def _seek_command(command: str, haystack: Haystack) -> Match:
    """A command by its first words: what follows them is mostly data."""
    words = command.split()
    exact = find_name(" ".join(words[:_COMMAND_WORDS]), haystack)
    return exact if exact.is_found or len(words) < _COMMAND_WORDS else find_words(command[:_LONGEST_COMMAND], haystack)


def _seek_failure(lines: Sequence[str], haystack: Haystack) -> Match:
    """A failure by one of its telling lines, or by the name of its error."""
    for name in _ERROR_NAME.findall(" ".join(lines)):
        if find_name(name, haystack).is_found:
            return Match(Manner.VERBATIM, 1.0)
    matches = [find_words(line, haystack) for line in lines if len(list_telling_words(line)) >= SHORT_WORDS]
    matches = matches or [find_words(" ".join(lines), haystack)]
    return max(matches, key=lambda match: (match.is_found, match.coverage))


def _report(part: Part, quote: str, entry_uuid: str | None, match: Match) -> Finding:
    return Finding(part, quote[:_QUOTE_CHARACTERS], entry_uuid, match)


def _list_texts(entries: Iterable[Entry]) -> Iterator[str]:
    """All text that the model sees in these entries."""
    for entry in entries:
        if entry.type == "attachment":
            yield render_attachment(entry)
        for block in entry.message.content if entry.message else ():
            if isinstance(block, TextBlock | ToolResultBlock):
                yield block.text
            elif isinstance(block, ToolUseBlock):
                yield block.input_json

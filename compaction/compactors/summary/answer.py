"""Parses the answer to a request for a summary: whether it is usable, its analysis, and its sections."""

import re
from dataclasses import dataclass
from functools import cache

from compaction.compactors.summary.prompt import list_sections
from compaction.errors import (
    EmptySummary,
    SummaryCalledTools,
    SummaryCutShort,
    SummaryIsApiError,
    SummaryRefused,
    SummaryUnfinished,
    SummaryWithoutSections,
)
from compaction.ports import SummaryAnswer, Variant

API_ERROR_PREFIX = "API Error"  # first words of an error that the client stores as an answer

_FLAGS = re.DOTALL | re.IGNORECASE
_ANALYSIS = re.compile(r"<analysis>(.*?)</analysis>", _FLAGS)
_OPEN_ANALYSIS = re.compile(r"<analysis>(.*?)(?=<summary>|\Z)", _FLAGS)
# To the last closing tag: a summary may quote one.
_SUMMARY = re.compile(r"<summary>(.*)</summary>", _FLAGS)
_OPEN_SUMMARY = re.compile(r"<summary>(.*)", _FLAGS)
_BLANK_LINES = re.compile(r"\n\s*\n+")


@dataclass(frozen=True, slots=True)
class ParsedSummary:
    """A summary without its tags, its analysis, and the names of missing sections."""

    text: str
    analysis: str | None
    missing_sections: tuple[str, ...]
    has_tags: bool


def require_usable_answer(answer: SummaryAnswer) -> None:
    """Raise a BadSummary when the answer is not a usable summary. Sections are not checked."""
    match answer.stop_reason:
        case "end_turn":
            pass
        case "compaction" if answer.is_native:
            pass
        case "max_tokens" | "model_context_window_exceeded":
            raise SummaryCutShort
        case "refusal":
            raise SummaryRefused
        case "tool_use" | "pause_turn":
            raise SummaryCalledTools
        case other:
            raise SummaryUnfinished(other)
    if not answer.text.strip():
        raise EmptySummary
    if answer.text.lstrip().startswith(API_ERROR_PREFIX):
        raise SummaryIsApiError


def parse_answer(answer: SummaryAnswer, variant: Variant) -> ParsedSummary:
    """Return the parts of a usable answer. Text without tags is a summary if it has at least one of the sections."""
    # If the first tag is never closed, no later one is: searching on after it would be quadratic.
    analysis = _OPEN_ANALYSIS.search(answer.text)
    if analysis:
        analysis = _ANALYSIS.match(answer.text, analysis.start()) or analysis
    rest = answer.text if analysis is None else answer.text[: analysis.start()] + answer.text[analysis.end() :]
    summary = _OPEN_SUMMARY.search(rest)
    if summary:
        summary = _SUMMARY.match(rest, summary.start()) or summary
    text = collapse_blank_lines(summary.group(1) if summary else rest)
    if not text:
        raise EmptySummary
    missing = () if answer.is_native else list_missing_sections(text, variant)
    if summary is None and len(missing) == len(list_sections(variant)):
        raise SummaryWithoutSections
    return ParsedSummary(
        text=text,
        analysis=collapse_blank_lines(analysis.group(1)) or None if analysis else None,
        missing_sections=missing,
        has_tags=summary is not None,
    )


def collapse_blank_lines(text: str) -> str:
    """Return the text with at most one empty line in a row and none at the ends."""
    return _BLANK_LINES.sub("\n\n", text).strip()


def list_missing_sections(text: str, variant: Variant) -> tuple[str, ...]:
    """Return the names of sections that have no heading in the text."""
    return tuple(name for name in list_sections(variant) if _match_heading(name).search(text) is None)


def split_sections(text: str, variant: Variant) -> dict[str, str]:
    """Return the text of each section by name, heading included. Text before the first heading is left out."""
    starts = sorted(
        (heading.start(), name)
        for name in list_sections(variant)
        if (heading := _match_heading(name).search(text)) is not None
    )
    if not starts:
        return {}
    ends = [start for start, _ in starts[1:]] + [len(text)]
    return {name: text[start:end].strip() for (start, name), end in zip(starts, ends, strict=True)}


def add_sections(text: str, more: str, variant: Variant) -> str:
    """Return the text with its missing sections inserted in order; existing sections are unchanged."""
    existing, added = split_sections(text, variant), split_sections(more, variant)
    opening = text[: min((text.index(part) for part in existing.values()), default=len(text))].strip()
    sections = [existing.get(name) or added.get(name) for name in list_sections(variant)]
    return collapse_blank_lines("\n\n".join(part for part in (opening, *sections) if part))


@cache
def _match_heading(name: str) -> re.Pattern[str]:
    """Return a pattern for a line that begins with the name, after an optional number, heading mark or bold mark."""
    words = r"\s+".join(re.escape(word) for word in name.split()).replace("and", "(?:and|&)")
    marks = r"^[ \t]*+(?:#++[ \t]*+)?(?:\*\*)?(?:\d++[.)][ \t]*+)?(?:\*\*)?[ \t]*+"
    return re.compile(rf"{marks}{words}\b", re.IGNORECASE | re.MULTILINE)

"""Reading an answer: is it a summary, what is analysis, which sections are there. What was asked is not known here."""

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

API_ERROR_PREFIX = "API Error"  # how the client begins the text of an error it wrote down as an answer

_FLAGS = re.DOTALL | re.IGNORECASE
_ANALYSIS = re.compile(r"<analysis>(.*?)</analysis>", _FLAGS)
_OPEN_ANALYSIS = re.compile(r"<analysis>(.*?)(?=<summary>|\Z)", _FLAGS)
# To the last closing tag: a summary may quote one.
_SUMMARY = re.compile(r"<summary>(.*)</summary>", _FLAGS)
_OPEN_SUMMARY = re.compile(r"<summary>(.*)", _FLAGS)
_BLANK_LINES = re.compile(r"\n\s*\n+")


@dataclass(frozen=True, slots=True)
class ParsedSummary:
    """The summary without tags, the analysis beside it, and the sections that are not there."""

    text: str
    analysis: str | None
    missing_sections: tuple[str, ...]
    has_tags: bool


def check_answer(answer: SummaryAnswer) -> None:
    """Raises the named error when this answer is no usable summary; says nothing about its sections."""
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
    """What a checked answer says. Without tags it counts as a summary as soon as it has one of the sections."""
    # Where the first tag is never closed, no later one is: searching on behind it would be quadratic.
    analysis = _OPEN_ANALYSIS.search(answer.text)
    if analysis:
        analysis = _ANALYSIS.match(answer.text, analysis.start()) or analysis
    rest = answer.text if analysis is None else answer.text[: analysis.start()] + answer.text[analysis.end() :]
    found = _OPEN_SUMMARY.search(rest)
    if found:
        found = _SUMMARY.match(rest, found.start()) or found
    text = collapse_blank_lines(found.group(1) if found else rest)
    if not text:
        raise EmptySummary
    missing = () if answer.is_native else find_missing_sections(text, variant)
    if found is None and len(missing) == len(list_sections(variant)):
        raise SummaryWithoutSections
    return ParsedSummary(
        text=text,
        analysis=collapse_blank_lines(analysis.group(1)) or None if analysis else None,
        missing_sections=missing,
        has_tags=found is not None,
    )


def collapse_blank_lines(text: str) -> str:
    """At most one empty line in a row, none at the ends."""
    return _BLANK_LINES.sub("\n\n", text).strip()


def find_missing_sections(text: str, variant: Variant) -> tuple[str, ...]:
    """The sections without a heading of their own."""
    return tuple(name for name in list_sections(variant) if _match_heading(name).search(text) is None)


def split_sections(text: str, variant: Variant) -> dict[str, str]:
    """The text below each heading that is there, heading line included; text before the first one is left out."""
    starts = sorted(
        (found.start(), name)
        for name in list_sections(variant)
        if (found := _match_heading(name).search(text)) is not None
    )
    if not starts:
        return {}
    ends = [start for start, _ in starts[1:]] + [len(text)]
    return {name: text[start:end].strip() for (start, name), end in zip(starts, ends, strict=True)}


def add_sections(text: str, more: str, variant: Variant) -> str:
    """The text with the sections it lacked put in their places; sections it already has stay as they are."""
    here, added = split_sections(text, variant), split_sections(more, variant)
    opening = text[: min((text.index(part) for part in here.values()), default=len(text))].strip()
    both = [here.get(name) or added.get(name) for name in list_sections(variant)]
    return collapse_blank_lines("\n\n".join(part for part in (opening, *both) if part))


@cache
def _match_heading(name: str) -> re.Pattern[str]:
    """A line that begins with the name, with or without number, marks of a heading or bold."""
    words = r"\s+".join(re.escape(word) for word in name.split()).replace("and", "(?:and|&)")
    marks = r"^[ \t]*+(?:#++[ \t]*+)?(?:\*\*)?(?:\d++[.)][ \t]*+)?(?:\*\*)?[ \t]*+"
    return re.compile(rf"{marks}{words}\b", re.IGNORECASE | re.MULTILINE)

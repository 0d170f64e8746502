"""The items of an extractive summary, the order in which they are cut, and the text of its sections.

Code is cut first, then files that were only read, notes on files, statements and errors; messages of people last.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import IntEnum

from compaction.activity.excerpts import cut_text
from compaction.compactors.summary.prompt import Section
from compaction.context.tokens import CHARACTERS_PER_TOKEN, add_margin, count_text_tokens

_TAGS = re.compile(r"<(/?)(analysis|summary)>", re.IGNORECASE)


class CutRank(IntEnum):
    """The order in which items are cut. Items of rank ALWAYS are never cut."""

    SNIPPET = 1
    READ_FILE = 2
    FILE_NOTE = 3
    STATEMENT = 4
    ERROR = 5
    USER_MESSAGE = 6
    ALWAYS = 9


_CUT_NAMES = {
    CutRank.SNIPPET: "code snippets",
    CutRank.READ_FILE: "files that were only read",
    CutRank.FILE_NOTE: "notes on files",
    CutRank.STATEMENT: "older statements",
    CutRank.ERROR: "errors",
    CutRank.USER_MESSAGE: "of the oldest messages",
}


@dataclass(frozen=True, slots=True)
class SummaryItem:
    """A few lines of one section. `short` replaces the text when the item is cut; `age` is 0 for the newest.

    `is_named`: the instructions name something in it, so that it is cut after the others of its rank. `count`: how
    many files, errors or messages it lists, for the mark that replaces it.
    """

    section: Section
    text: str
    rank: CutRank = CutRank.ALWAYS
    age: int = 0
    short: str = ""
    is_named: bool = False
    is_cut: bool = False
    count: int = 1

    @property
    def shown(self) -> str:
        """The text that is part of the summary."""
        return self.short if self.is_cut else self.text


def quote(text: str, indent: str = "  ") -> str:
    """Return the text as a quotation, so that no line of it can pass for a heading or a tag of the summary."""
    safe = _TAGS.sub(r"<\1 \2>", text)
    return "\n".join(f"{indent}> {line}".rstrip() for line in safe.splitlines())


def quote_in_line(text: str) -> str:
    """Return the text in quotation marks on one line."""
    return '"' + _TAGS.sub(r"<\1 \2>", " ".join(text.split())) + '"'


def describe_time(at: datetime | None, lead: str = " at ") -> str:
    """Return the time of day after its lead; "" where it is unknown."""
    return f"{lead}{at:%H:%M}" if at else ""


def count_summary_tokens(text: str) -> int:
    """Return the summary's tokens, margin included, so that the cap holds for code as well."""
    return add_margin(count_text_tokens(text))


def build_sections(items: Sequence[SummaryItem], names: Sequence[str], *, cap_tokens: int, aim_tokens: int) -> str:
    """Return all sections in order, within the cap; every cut leaves a mark.

    Above the aim, code, notes, statements and errors are shortened as well.
    """
    items = list(items)
    text = _cut_down(items, names, limit_tokens=min(aim_tokens, cap_tokens), last_rank=CutRank.STATEMENT)
    if count_summary_tokens(text) > cap_tokens:
        text = _cut_down(items, names, limit_tokens=cap_tokens, last_rank=CutRank.USER_MESSAGE)
    if count_summary_tokens(text) <= cap_tokens:
        return text
    return cut_text(text, max(0, cap_tokens * CHARACTERS_PER_TOKEN * 3 // 4 - 60))


def _cut_down(items: list[SummaryItem], names: Sequence[str], *, limit_tokens: int, last_rank: CutRank) -> str:
    """Return the text after cutting items up to this rank for as long as it is over the limit."""
    text = _join_sections(items, names)
    while (excess := count_summary_tokens(text) - limit_tokens) > 0:
        if not _cut_some(items, excess * CHARACTERS_PER_TOKEN * 3 // 4, last_rank):
            break
        text = _join_sections(items, names)
    return text


def _cut_some(items: list[SummaryItem], excess_characters: int, last_rank: CutRank) -> bool:
    """Cut items of the lowest rank left, oldest first, until enough is saved; return False when nothing is left.

    Short forms (bare paths, first lines of errors) are dropped after all items were shortened, but before messages
    of people.
    """
    may_drop = last_rank is CutRank.USER_MESSAGE
    open_items = [
        index
        for index, item in enumerate(items)
        if item.rank <= last_rank and item.shown and (may_drop or not item.is_cut)
    ]
    if not open_items:
        return False
    first = min(_cut_order(items[index]) for index in open_items)
    chosen = [index for index in open_items if _cut_order(items[index]) == first]
    saved = 0
    for index in sorted(chosen, key=lambda index: -items[index].age):
        before = len(items[index].shown)
        items[index] = replace(items[index], is_cut=True, short="" if items[index].is_cut else items[index].short)
        saved += before - len(items[index].shown)
        if saved >= excess_characters:
            break
    return True


def _cut_order(item: SummaryItem) -> tuple[bool, bool, bool, int]:
    return item.rank is CutRank.USER_MESSAGE, item.is_named, item.is_cut, item.rank


def _join_sections(items: Iterable[SummaryItem], names: Sequence[str]) -> str:
    by_section: dict[Section, list[SummaryItem]] = {section: [] for section in Section}
    for item in items:
        by_section[item.section].append(item)
    sections = []
    for (section, listed), name in zip(by_section.items(), names, strict=True):
        lines = [*_list_marks(listed), *(item.shown for item in listed if item.shown)]
        sections.append(f"{section}. {name}:\n" + ("\n".join(lines) or "- Nothing to report."))
    return "\n\n".join(sections)


def _list_marks(items: Sequence[SummaryItem]) -> list[str]:
    marks = []
    for rank, name in _CUT_NAMES.items():
        dropped = sum(item.count for item in items if item.rank is rank and item.is_cut and not item.shown)
        if dropped:
            marks.append(f"[cut to stay within the limit: {dropped:,} {name}]")
    return marks

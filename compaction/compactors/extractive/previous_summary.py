"""Carries the previous summary over: its sections go, shortened, into the same sections of the next one."""

import re

from compaction.activity.excerpts import cut_text
from compaction.activity.priorities import NO_PRIORITIES, Priorities
from compaction.compactors.extractive.sections import CutRank, SummaryItem, quote
from compaction.compactors.summary.answer import list_missing_sections, split_sections
from compaction.compactors.summary.prompt import Section, list_sections
from compaction.ports import Variant
from compaction.transcripts.entries import Entry, TextBlock

# Characters that are carried over, by section: what was pending or under way is outdated soonest.
_ROOM = {
    Section.REQUEST: 2_000,
    Section.CONCEPTS: 600,
    Section.FILES: 3_500,
    Section.ERRORS: 1_500,
    Section.PROBLEM_SOLVING: 2_500,
    Section.PENDING: 1_500,
    Section.CURRENT_WORK: 1_200,
    Section.NEXT_STEP: 500,
}
_RANKS = {
    Section.FILES: CutRank.FILE_NOTE,
    Section.ERRORS: CutRank.ERROR,
    Section.PROBLEM_SOLVING: CutRank.STATEMENT,
}
# What was pending or under way may be done since.
_MAYBE_DONE = frozenset({Section.PENDING, Section.CURRENT_WORK, Section.NEXT_STEP})
_NAMED_CHARACTERS = 2_000  # of the lines after a cut that the instructions name
_WHOLE_CHARACTERS, _SHORT_CHARACTERS = 8_000, 1_000  # of a summary that has no sections: at most, and when it is cut
_OLDEST = 1_000_000  # everything carried over is older than everything since
_CODE_LINES = 3  # of each block of code
_QUOTE = re.compile(r"^[ \t]*>[ \t]?", re.MULTILINE)
_ITEM = re.compile(r"^(?=[ \t]{0,6}(?:[-*•]|\d{1,4}[.)])[ \t])", re.MULTILINE)
_FENCE = re.compile(r"^[ \t]*```.*?^[ \t]*```[ \t]*$", re.DOTALL | re.MULTILINE)
_LABEL = re.compile(r"^\[This summary was [^\n]*\]\n?", re.MULTILINE)
# What the client writes below a summary about how to go on.
_CONTINUATION = re.compile(
    r"\n+(?:If you need specific details from before compaction"
    r"|Please continue the conversation from where)[^\n]*(?:\n.*)?\Z",
    re.DOTALL,
)


def list_previous_items(summary: Entry | None, priorities: Priorities = NO_PRIORITIES) -> list[SummaryItem]:
    """Return the previous summary section by section, messages of people whole."""
    text = read_previous_summary(summary)
    if not text:
        return []
    up_to_title = list_sections(Variant.UP_TO)[Section.CURRENT_WORK - 1]
    is_up_to = up_to_title in text and Section.CURRENT_WORK.title not in text
    variant = Variant.UP_TO if is_up_to else Variant.FULL
    names = list_sections(variant)
    if len(list_missing_sections(text, variant)) == len(names):
        whole, short = (
            "- An earlier summary said:\n" + quote(_cut_unnamed(text, characters, priorities))
            for characters in (_WHOLE_CHARACTERS, _SHORT_CHARACTERS)
        )
        is_named = priorities.matches(whole)
        return [SummaryItem(Section.PROBLEM_SOLVING, whole, CutRank.STATEMENT, _OLDEST, short, is_named=is_named)]
    sections = split_sections(text, variant)
    items: list[SummaryItem] = []
    for section, name in zip(Section, names, strict=True):
        body = sections.get(name, "").partition("\n")[2].strip("\n")
        # A heading with its text on the same line.
        body = body or sections.get(name, "").partition(":")[2].strip()
        body = _LABEL.sub("", _CONTINUATION.sub("", body))
        if body.strip() and "Nothing to report." not in body[:40]:
            items += (
                _carry_messages(body) if section is Section.MESSAGES else [_carry_section(section, body, priorities)]
            )
    return items


def read_previous_summary(summary: Entry | None) -> str:
    """Return the text of a summary; "" where there is none."""
    blocks = summary.message.content if summary is not None and summary.message else ()
    return "\n".join(block.text for block in blocks if isinstance(block, TextBlock)).strip()


def _carry_section(section: Section, body: str, priorities: Priorities) -> SummaryItem:
    lead = "- From the summary before the last compaction" + (" (may be done since)" if section in _MAYBE_DONE else "")
    target = Section.PROBLEM_SOLVING if section in (Section.CURRENT_WORK, Section.NEXT_STEP) else section
    rank = _RANKS.get(target, CutRank.ALWAYS)
    shown = _cut_unnamed(_shorten_code(_QUOTE.sub("", body)), _ROOM[section], priorities)
    is_named = priorities.matches(shown)
    return SummaryItem(target, f"{lead}:\n{quote(shown)}", rank, _OLDEST - section, is_named=is_named)


def _cut_unnamed(body: str, characters: int, priorities: Priorities) -> str:
    """Return the beginning of a text, and the later lines that mention what the instructions name."""
    shown = cut_text(body, characters)
    if shown == body:
        return shown
    named = [line for line in body[characters:].splitlines() if priorities.matches(line)]
    return "\n".join([shown, cut_text("\n".join(named), _NAMED_CHARACTERS)]) if named else shown


def _shorten_code(body: str) -> str:
    """Return the text with only the first lines of each block of code."""

    def shorten(block: re.Match[str]) -> str:
        lines = block[0].splitlines()
        hidden = len(lines) - 2 - _CODE_LINES
        return "\n".join([*lines[: _CODE_LINES + 1], f"[cut: {hidden} lines]", lines[-1]]) if hidden > 1 else block[0]

    return _FENCE.sub(shorten, body)


def _carry_messages(body: str) -> list[SummaryItem]:
    items = [_quote_item(item.rstrip()) for item in _ITEM.split(body) if item.strip()]
    return [
        SummaryItem(Section.MESSAGES, item, CutRank.USER_MESSAGE, _OLDEST - number, cut_text(item, 160))
        for number, item in enumerate(items)
    ]


def _quote_item(item: str) -> str:
    """Return the item with its further lines quoted, so that none of them reads as a heading."""
    first, *rest = item.splitlines()
    lines = [line if line.lstrip().startswith(">") else f"  > {line}" for line in rest]
    return "\n".join([f"- {first.strip().removeprefix('- ')}", *lines])

"""Two runs of one conversation side by side: numbers, sections with the words that differ, what each one lost."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from enum import StrEnum
from itertools import groupby
from operator import itemgetter

from dashboard.pages.compaction_page import LostView, SummaryView
from dashboard.pages.run_page import RunPage
from dashboard.words import format_retained, say_seconds, say_tokens, say_usd

# Beyond these, words are compared as lines, and lines not at all: the matcher's cost grows with both sides.
MOST_WORDS = 1500
MOST_LINES = 1500
_WORD = re.compile(r"\w+|\s+|[^\w\s]")
_WORDS = re.compile(r"\w")
_OPENING = "Before the sections"
_NONE = "–"  # noqa: RUF001 (the sign for nothing to say)


class Mark(StrEnum):
    SAME = "same"
    OTHER = "other"


MarkedText = tuple[tuple[Mark, str], ...]


@dataclass(frozen=True)
class ComparedNumber:
    """One figure of both; `better` is 1 or 2 where one of them is."""

    label: str
    first: str
    second: str
    better: int = 0


@dataclass(frozen=True)
class ComparedSection:
    """One section as both have it, what differs marked; empty: it has none."""

    name: str
    first: MarkedText
    second: MarkedText

    @property
    def is_same(self) -> bool:
        return all(mark is Mark.SAME for mark, _ in (*self.first, *self.second))


@dataclass(frozen=True)
class Comparison:
    """`sections` is None where the summaries are not stored or must not be shown.

    `is_one_kind`: both summaries quote, or a model wrote both. Only then can what they retained be compared.
    """

    first: RunPage
    second: RunPage
    is_one_kind: bool
    numbers: tuple[ComparedNumber, ...]
    sections: tuple[ComparedSection, ...] | None
    lost_by_first: tuple[LostView, ...]
    lost_by_second: tuple[LostView, ...]
    lost_by_both: tuple[LostView, ...]


def compare_runs(first: RunPage, second: RunPage) -> Comparison:
    """Both finished, of one session."""
    has_words = first.summary is not None and second.summary is not None
    only_first, only_second, both = _split_lost(first, second)
    is_one_kind = first.row.asks_model is second.row.asks_model
    return Comparison(
        first=first,
        second=second,
        is_one_kind=is_one_kind,
        numbers=tuple(_list_numbers(first, second, is_one_kind=is_one_kind)),
        sections=tuple(_compare_sections(first.summary, second.summary)) if has_words else None,
        lost_by_first=only_first,
        lost_by_second=only_second,
        lost_by_both=both,
    )


def _list_numbers(first: RunPage, second: RunPage, *, is_one_kind: bool) -> Iterable[ComparedNumber]:
    one, two = first.row, second.row
    written = [f"~{say_tokens(page.shown_revision.summary_tokens)}" for page in (first, second) if page.shown_revision]
    restored = [f"~{say_tokens(page.restored_tokens)}" for page in (first, second)]
    lost = [page.audit.lost_count if page.audit else None for page in (first, second)]
    yield ComparedNumber("Kind", one.kind_words, two.kind_words)
    yield ComparedNumber("Summariser", _name_summarizer(first), _name_summarizer(second))
    yield ComparedNumber("Before", one.before_words, two.before_words)
    after = _find_better(one.after_tokens, two.after_tokens, is_less_better=True)
    yield ComparedNumber("After", one.after_words, two.after_words, after)
    freed = _find_better(one.saved_tokens, two.saved_tokens)
    yield ComparedNumber("Freed", say_tokens(one.saved_tokens), say_tokens(two.saved_tokens), freed)
    if len(written) == 2:
        yield ComparedNumber("Summary", written[0], written[1])
    yield ComparedNumber("Brought back", restored[0], restored[1])
    retained = format_retained(one.retained_percent), format_retained(two.retained_percent)
    # An estimate: figures that read alike are alike. Summaries that quote have more with the same facts.
    is_comparable = is_one_kind and retained[0] != retained[1]
    better = _find_better(one.retained_percent, two.retained_percent) if is_comparable else 0
    yield ComparedNumber("Retained", *retained, better)
    fewer = _find_better(lost[0], lost[1], is_less_better=True) if is_one_kind else 0
    yield ComparedNumber("Lost items", _say(lost[0]), _say(lost[1]), fewer)
    cost = _find_better(one.spent_usd, two.spent_usd, is_less_better=True)
    yield ComparedNumber("Cost, list price", say_usd(one.spent_usd), say_usd(two.spent_usd), cost)
    yield ComparedNumber("Took", say_seconds(one.duration_seconds), say_seconds(two.duration_seconds))


def _name_summarizer(page: RunPage) -> str:
    return f"{page.row.summarizer}, {page.model}" if page.model else page.row.summarizer


def _say(figure: object) -> str:
    return _NONE if figure is None else str(figure)


def _find_better(one: object, two: object, *, is_less_better: bool = False) -> int:
    """Which of two figures is the better one; 0 where they are equal or one is not known."""
    if one is None or two is None or one == two:
        return 0
    return 1 if (one < two) is is_less_better else 2  # type: ignore[operator]


def _compare_sections(one: SummaryView | None, two: SummaryView | None) -> Iterable[ComparedSection]:
    if one is None or two is None:
        return
    left = {_OPENING: one.opening, **dict(one.sections)}
    right = {_OPENING: two.opening, **dict(two.sections)}
    for name in dict.fromkeys((*left, *right)):
        texts = left.get(name, ""), right.get(name, "")
        if any(texts):
            yield ComparedSection(name, *mark_words(*texts))


def mark_words(first: str, second: str) -> tuple[MarkedText, MarkedText]:
    """Both texts in pieces, each the same as in the other text or not."""
    if not first or not second:
        return tuple(((Mark.OTHER, text),) if text else () for text in (first, second))  # type: ignore[return-value]
    one, two = _cut(first, second)
    if max(len(one), len(two)) > MOST_LINES:
        return ((Mark.OTHER, first),), ((Mark.OTHER, second),)
    marked: tuple[list[tuple[Mark, str]], list[tuple[Mark, str]]] = ([], [])
    for tag, one_from, one_to, two_from, two_to in SequenceMatcher(None, one, two, autojunk=False).get_opcodes():
        mark = Mark.SAME if tag == "equal" else Mark.OTHER
        for side, piece in zip(marked, ("".join(one[one_from:one_to]), "".join(two[two_from:two_to])), strict=True):
            if piece:
                side.append((mark, piece))
    return _smooth(marked[0]), _smooth(marked[1])


def _smooth(pieces: Sequence[tuple[Mark, str]]) -> MarkedText:
    """Spaces and signs between two words that differ belong to them: a sentence is marked as one."""
    joined = _join(pieces)
    last = len(joined) - 1
    return _join(
        [
            (Mark.OTHER if 0 < index < last and _WORDS.search(text) is None else mark, text)
            for index, (mark, text) in enumerate(joined)
        ]
    )


def _join(pieces: Sequence[tuple[Mark, str]]) -> MarkedText:
    """Neighbours of one mark as one piece, so that marks alternate."""
    return tuple((mark, "".join(text for _, text in group)) for mark, group in groupby(pieces, key=itemgetter(0)))


def _cut(first: str, second: str) -> tuple[Sequence[str], Sequence[str]]:
    words = _WORD.findall(first), _WORD.findall(second)
    if max(map(len, words)) <= MOST_WORDS:
        return words
    return first.splitlines(keepends=True), second.splitlines(keepends=True)


def _split_lost(
    first: RunPage, second: RunPage
) -> tuple[tuple[LostView, ...], tuple[LostView, ...], tuple[LostView, ...]]:
    one = {(lost.part, lost.text): lost for lost in (first.audit.lost if first.audit else ())}
    two = {(lost.part, lost.text): lost for lost in (second.audit.lost if second.audit else ())}
    return (
        tuple(lost for key, lost in one.items() if key not in two),
        tuple(lost for key, lost in two.items() if key not in one),
        tuple(lost for key, lost in one.items() if key in two),
    )

"""Line and word differences of one block's text, within fixed bounds so that a huge block cannot stall a page."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from enum import StrEnum

# Beyond these a difference is shown as one replacement: the matcher's cost grows with the product of both sides.
MOST_LINES_MATCHED = 400
MOST_WORDS_MATCHED = 120
MOST_WORD_PAIRS = 4
MOST_LINES_SHOWN = 80
LONGEST_LINE_SHOWN = 400
CONTEXT_LINES = 2
LEAD_CHARACTERS = 100  # shown before the first difference of a long line

_WORD = re.compile(r"\w+|\s+|[^\w\s]")


class Mark(StrEnum):
    """What happened to a line or a word."""

    SAME = " "
    REMOVED = "-"
    ADDED = "+"


@dataclass(frozen=True, slots=True)
class DiffLine:
    """One line with its number on the side it stands on; `words` mark what changed inside it, where that is known."""

    mark: Mark
    number: int
    text: str
    words: tuple[tuple[Mark, str], ...] = ()


@dataclass(frozen=True, slots=True)
class TextDiff:
    """The first differing character and the lines around every difference; `is_cut` when not all are shown."""

    first_character: int | None
    lines: tuple[DiffLine, ...]
    is_cut: bool = False


def find_first_difference(before: str, after: str) -> int | None:
    """The first character that differs; None when the texts are equal."""
    return None if before == after else _count_shared(before, after)


def diff_text(before: str, after: str) -> TextDiff:
    """What changed between two texts, line by line and, in lines that were replaced one for one, word by word."""
    old, new = before.splitlines(), after.splitlines()
    start = _count_shared(old, new)
    end = _count_shared(old[start:][::-1], new[start:][::-1])
    lines: list[DiffLine] = []
    is_cut = False
    for line in _list_lines(old, new, start, end):
        if len(lines) == MOST_LINES_SHOWN:
            is_cut = True
            break
        lines.append(line)
    return TextDiff(find_first_difference(before, after), tuple(lines), is_cut)


def _count_shared(old: Sequence[str], new: Sequence[str]) -> int:
    """How many items both begin with. Halving on slices beats walking."""
    low, high = 0, min(len(old), len(new))
    while low < high:
        middle = (low + high + 1) // 2
        if old[low:middle] == new[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _list_lines(old: list[str], new: list[str], start: int, end: int) -> Iterator[DiffLine]:
    old_middle, new_middle = old[start : len(old) - end], new[start : len(new) - end]
    yield from _show_context(new, max(0, start - CONTEXT_LINES), start)
    for tag, old_from, old_to, new_from, new_to in _match_lines(old_middle, new_middle):
        if tag == "equal":
            yield from _show_equal(new, start + new_from, start + new_to)
            continue
        removed, added = old_middle[old_from:old_to], new_middle[new_from:new_to]
        is_paired = len(removed) == len(added) <= MOST_WORD_PAIRS
        yield from _show_side(Mark.REMOVED, removed, start + old_from, added if is_paired else [])
        yield from _show_side(Mark.ADDED, added, start + new_from, removed if is_paired else [])
    yield from _show_context(new, len(new) - end, min(len(new), len(new) - end + CONTEXT_LINES))


def _show_side(mark: Mark, lines: list[str], start: int, others: list[str]) -> Iterator[DiffLine]:
    """One side of a replacement; against `others`, its counterparts, with words marked and long lines cut around the
    first difference."""
    for index, text in enumerate(lines):
        if not others:
            yield DiffLine(mark, start + index + 1, _cut(text))
            continue
        own, other = _focus(text, others[index])
        before, after = (own, other) if mark is Mark.REMOVED else (other, own)
        words = tuple(part for part in _diff_words(before, after) if part[0] in (Mark.SAME, mark))
        yield DiffLine(mark, start + index + 1, own, words)


def _focus(own: str, other: str) -> tuple[str, str]:
    if max(len(own), len(other)) <= LONGEST_LINE_SHOWN:
        return own, other
    first = max(0, _count_shared(own, other) - LEAD_CHARACTERS)
    lead = "…" if first else ""
    return lead + _cut(own[first:]), lead + _cut(other[first:])


def _match_lines(old: list[str], new: list[str]) -> Sequence[tuple[str, int, int, int, int]]:
    if not old and not new:
        return []
    if not old or not new or len(old) > MOST_LINES_MATCHED or len(new) > MOST_LINES_MATCHED:
        return [("replace", 0, len(old), 0, len(new))]
    if len(old) == len(new) == 1:
        return [("replace", 0, 1, 0, 1)]
    return SequenceMatcher(None, old, new, autojunk=True).get_opcodes()


def _show_context(lines: list[str], first: int, last: int) -> Iterator[DiffLine]:
    for index in range(first, last):
        yield DiffLine(Mark.SAME, index + 1, _cut(lines[index]))


def _show_equal(lines: list[str], first: int, last: int) -> Iterator[DiffLine]:
    if last - first <= 2 * CONTEXT_LINES:
        yield from _show_context(lines, first, last)
        return
    yield from _show_context(lines, first, first + CONTEXT_LINES)
    yield from _show_context(lines, last - CONTEXT_LINES, last)


def _diff_words(before: str, after: str) -> tuple[tuple[Mark, str], ...]:
    """Words of two lines with their marks. Only what lies between the shared ends is taken apart."""
    start = _count_shared(before, after)
    while start and _is_in_word(before[start - 1]):
        start -= 1
    end = _count_shared(before[start:][::-1], after[start:][::-1])
    while end and _is_in_word(before[-end]):
        end -= 1
    old, new = _WORD.findall(before[start : len(before) - end]), _WORD.findall(after[start : len(after) - end])
    parts = [(Mark.SAME, before[:start])]
    if not old or not new or max(len(old), len(new)) > MOST_WORDS_MATCHED:
        parts += [(Mark.REMOVED, "".join(old)), (Mark.ADDED, "".join(new))]
    else:
        for tag, old_from, old_to, new_from, new_to in SequenceMatcher(None, old, new).get_opcodes():
            if tag == "equal":
                parts.append((Mark.SAME, "".join(old[old_from:old_to])))
            else:
                parts.append((Mark.REMOVED, "".join(old[old_from:old_to])))
                parts.append((Mark.ADDED, "".join(new[new_from:new_to])))
    parts.append((Mark.SAME, before[len(before) - end :]))
    return tuple(part for part in parts if part[1])


def _is_in_word(character: str) -> bool:
    return character.isalnum() or character == "_"


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST_LINE_SHOWN else text[:LONGEST_LINE_SHOWN] + "…"

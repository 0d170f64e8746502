"""Compares two texts by line and by word, within fixed limits so that a huge block cannot delay a page."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from enum import StrEnum
from itertools import islice, zip_longest

# Above these limits a difference is shown as one replacement: matching costs the product of both sides.
MOST_LINES_MATCHED = 400
MOST_WORDS_MATCHED = 200  # from the first difference of a line on; spaces and signs count as words
MOST_WORD_PAIRS = 8
MOST_LINES_SHOWN = 80
LONGEST_LINE_SHOWN = 400
CONTEXT_LINES = 2
CONTEXT_CHARACTERS = 80  # of a long line, shown on either side of a difference
LONGEST_WORD = 40  # longer runs are split, and may be marked in the middle
CUT = "…"

_WORD = re.compile(rf"\w{{1,{LONGEST_WORD}}}|\s{{1,{LONGEST_WORD}}}|[^\w\s]")
MarkedText = tuple[tuple["DiffMark", str], ...]


class DiffMark(StrEnum):
    """What happened to a line or a word."""

    SAME = " "
    REMOVED = "-"
    ADDED = "+"


@dataclass(frozen=True, slots=True)
class DiffLine:
    """One line with its number on its side; `parts` mark what changed inside it, where known. A line that both sides
    have has its newer number as `number`."""

    mark: DiffMark
    number: int
    text: str
    parts: MarkedText = ()
    old_number: int | None = None
    is_cut: bool = False  # more of it differs than `parts` hold


@dataclass(frozen=True, slots=True)
class DiffRow:
    """An older line beside the line that replaced it; None where there is none. An unchanged line is on both sides."""

    before: DiffLine | None
    after: DiffLine | None

    @property
    def is_same(self) -> bool:
        return self.before is not None and self.before is self.after


def pair_lines(lines: Sequence[DiffLine]) -> Iterator[DiffRow]:
    """Return the lines for two columns: removed lines beside those that replaced them."""
    removed: list[DiffLine] = []
    added: list[DiffLine] = []
    for line in lines:
        if line.mark is DiffMark.SAME or (added and line.mark is DiffMark.REMOVED):
            yield from (DiffRow(*pair) for pair in zip_longest(removed, added))
            removed, added = [], []
        if line.mark is DiffMark.SAME:
            yield DiffRow(line, line)
        else:
            (removed if line.mark is DiffMark.REMOVED else added).append(line)
    yield from (DiffRow(*pair) for pair in zip_longest(removed, added))


@dataclass(frozen=True, slots=True)
class TextDiff:
    """The first differing character and the lines around every difference; `is_cut` when not all are shown."""

    first_character: int | None
    lines: tuple[DiffLine, ...]
    is_cut: bool = False

    @property
    def rows(self) -> tuple[DiffRow, ...]:
        """Return the lines for two columns."""
        return tuple(pair_lines(self.lines))


def find_first_difference(before: str, after: str) -> int | None:
    """Return the index of the first character that differs; None when the texts are equal."""
    return None if before == after else _count_shared(before, after)


def diff_text(before: str, after: str) -> TextDiff:
    """Return what changed between two texts: by line, and by word in lines that were replaced one for one."""
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
    is_cut = is_cut or any(line.is_cut for line in lines)
    return TextDiff(find_first_difference(before, after), tuple(lines), is_cut)


def _count_shared(old: Sequence[str], new: Sequence[str]) -> int:
    """Return how many items both begin with. Bisecting with slices is faster than a loop."""
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
    yield from _show_context(new, range(max(0, start - CONTEXT_LINES), start), 0)
    for tag, old_from, old_to, new_from, new_to in _match_lines(old_middle, new_middle):
        if tag == "equal":
            yield from _show_equal(new, range(start + new_from, start + new_to), old_from - new_from)
            continue
        replaced = old_middle[old_from:old_to], new_middle[new_from:new_to]
        yield from _show_replaced(*replaced, (start + old_from, start + new_from))
    shared = range(len(new) - end, min(len(new), len(new) - end + CONTEXT_LINES))
    yield from _show_context(new, shared, len(old) - len(new))


def _show_replaced(removed: list[str], added: list[str], starts: tuple[int, int]) -> Iterator[DiffLine]:
    """Return the removed lines, then the added ones; with changed words marked when both have the same number."""
    marked: list[tuple[tuple[MarkedText, bool], tuple[MarkedText, bool]]] = []
    if len(removed) == len(added) <= MOST_WORD_PAIRS:
        marked = [_mark_words(before, after) for before, after in zip(removed, added, strict=True)]
    for side, mark, lines in ((0, DiffMark.REMOVED, removed), (1, DiffMark.ADDED, added)):
        for index, text in enumerate(lines):
            parts, is_cut = marked[index][side] if marked else ((), False)
            shown = "".join(part for _, part in parts) if marked else _cut(text)
            yield DiffLine(mark, starts[side] + index + 1, shown, parts, is_cut=is_cut)


def _match_lines(old: list[str], new: list[str]) -> Sequence[tuple[str, int, int, int, int]]:
    if not old and not new:
        return []
    if not old or not new or len(old) > MOST_LINES_MATCHED or len(new) > MOST_LINES_MATCHED:
        return [("replace", 0, len(old), 0, len(new))]
    if len(old) == len(new) == 1:
        return [("replace", 0, 1, 0, 1)]
    return SequenceMatcher(None, old, new, autojunk=True).get_opcodes()


def _show_context(lines: list[str], indexes: range, old_offset: int) -> Iterator[DiffLine]:
    """`old_offset`: the index in the older text less that in the newer one."""
    for index in indexes:
        yield DiffLine(DiffMark.SAME, index + 1, _cut(lines[index]), old_number=index + 1 + old_offset)


def _show_equal(lines: list[str], indexes: range, old_offset: int) -> Iterator[DiffLine]:
    if len(indexes) <= 2 * CONTEXT_LINES:
        yield from _show_context(lines, indexes, old_offset)
        return
    yield from _show_context(lines, indexes[:CONTEXT_LINES], old_offset)
    yield from _show_context(lines, indexes[-CONTEXT_LINES:], old_offset)


def _mark_words(before: str, after: str) -> tuple[tuple[MarkedText, bool], tuple[MarkedText, bool]]:
    """Return both lines with changes marked, and whether more of each differs than is shown. The shared start and end
    are found in the whole lines first, so that only the rest is split into words and cut."""
    start = _find_start(before, after)
    end = _find_end(before, after, start)
    old, new = before[start : len(before) - end], after[start : len(after) - end]
    parts = _match_words(old, new)
    head, tail = before[:start], before[len(before) - end :]
    if max(len(before), len(after)) > LONGEST_LINE_SHOWN:
        head = head if len(head) <= CONTEXT_CHARACTERS else CUT + head[-CONTEXT_CHARACTERS:]
        tail = tail if len(tail) <= CONTEXT_CHARACTERS else tail[:CONTEXT_CHARACTERS] + CUT
    removed = tuple(part for part in parts if part[0] is not DiffMark.ADDED)
    added = tuple(part for part in parts if part[0] is not DiffMark.REMOVED)
    return _join_parts(head, removed, old, tail), _join_parts(head, added, new, tail)


def _join_parts(head: str, parts: MarkedText, middle: str, tail: str) -> tuple[MarkedText, bool]:
    """Return one line with its shared start and end, and whether it was cut. `parts` are those of `middle`."""
    is_cut = sum(len(text) for _, text in parts) < len(middle)
    shown, remaining = [(DiffMark.SAME, head)], LONGEST_LINE_SHOWN
    for mark, whole in parts:
        text = _squeeze(whole) if mark is DiffMark.SAME and len(middle) > LONGEST_LINE_SHOWN else whole
        shown.append((mark, text[:remaining]))
        is_cut = is_cut or len(text) > remaining
        remaining = max(0, remaining - len(text))
    shown.append((DiffMark.SAME, CUT + tail if is_cut else tail))
    return tuple(part for part in shown if part[1]), is_cut


def _find_start(before: str, after: str) -> int:
    """Return the length of the shared start, which does not end inside a word."""
    start = _count_shared(before, after)
    for back in range(min(start, LONGEST_WORD) + 1):
        if back == start or not _is_in_word(before[start - back - 1]):
            return start - back
    return start


def _find_end(before: str, after: str, start: int) -> int:
    end = _count_shared(before[start:][::-1], after[start:][::-1])
    for back in range(min(end, LONGEST_WORD) + 1):
        if back == end or not _is_in_word(before[back - end]):
            return end - back
    return end


def _match_words(before: str, after: str) -> MarkedText:
    """Return the marked parts between the shared ends. Of long texts only the start: up to the last part that is
    certainly the same, because the other side may continue beyond what was compared."""
    old, new = _split_words(before), _split_words(after)
    is_cut = sum(map(len, old)) < len(before) or sum(map(len, new)) < len(after)
    steps = SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    if is_cut and steps[-1][0] != "equal" and any(tag == "equal" for tag, *_ in steps):
        steps.pop()
    parts: list[tuple[DiffMark, str]] = []
    for tag, old_from, old_to, new_from, new_to in steps:
        if tag == "equal":
            parts.append((DiffMark.SAME, "".join(old[old_from:old_to])))
        else:
            parts.append((DiffMark.REMOVED, "".join(old[old_from:old_to])))
            parts.append((DiffMark.ADDED, "".join(new[new_from:new_to])))
    return tuple(parts)


def _split_words(text: str) -> list[str]:
    return [match.group() for match in islice(_WORD.finditer(text), MOST_WORDS_MATCHED)]


def _squeeze(text: str) -> str:
    """Return the two ends of an unchanged part between two differences."""
    if len(text) <= 2 * CONTEXT_CHARACTERS:
        return text
    return f"{text[:CONTEXT_CHARACTERS]}{CUT}{text[-CONTEXT_CHARACTERS:]}"


def _is_in_word(character: str) -> bool:
    return character.isalnum() or character == "_"


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST_LINE_SHOWN else text[:LONGEST_LINE_SHOWN] + CUT

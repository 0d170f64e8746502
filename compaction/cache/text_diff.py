"""Line and word differences of one block's text, within fixed bounds so that a huge block cannot stall a page."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from enum import StrEnum
from itertools import islice, zip_longest

# Beyond these a difference is shown as one replacement: the matcher's cost grows with the product of both sides.
MOST_LINES_MATCHED = 400
MOST_WORDS_MATCHED = 200  # from the first difference of a line on; spaces and signs count
MOST_WORD_PAIRS = 8
MOST_LINES_SHOWN = 80
LONGEST_LINE_SHOWN = 400
CONTEXT_LINES = 2
CONTEXT_CHARACTERS = 80  # of a long line, shown on either side of a difference
LONGEST_WORD = 40  # what is longer is no word, and may be marked in its middle
CUT = "…"

_WORD = re.compile(rf"\w{{1,{LONGEST_WORD}}}|\s{{1,{LONGEST_WORD}}}|[^\w\s]")
Words = tuple[tuple["DiffMark", str], ...]


class DiffMark(StrEnum):
    """What happened to a line or a word."""

    SAME = " "
    REMOVED = "-"
    ADDED = "+"


@dataclass(frozen=True, slots=True)
class DiffLine:
    """One line with its number on the side it stands on; `words` mark what changed inside it, where that is known.
    A line that both sides have carries its newer number, and its older one apart."""

    mark: DiffMark
    number: int
    text: str
    words: Words = ()
    old_number: int | None = None
    is_cut: bool = False  # more of it differs than `words` hold


@dataclass(frozen=True, slots=True)
class DiffRow:
    """A line as it was beside the line it became; None where there is none. The same line stands on both sides."""

    before: DiffLine | None
    after: DiffLine | None

    @property
    def is_same(self) -> bool:
        return self.before is not None and self.before is self.after


def pair_lines(lines: Sequence[DiffLine]) -> Iterator[DiffRow]:
    """Lines for two columns: what was removed beside what came in its place."""
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
        """For two columns."""
        return tuple(pair_lines(self.lines))


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
    is_cut = is_cut or any(line.is_cut for line in lines)
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
    yield from _show_context(new, range(max(0, start - CONTEXT_LINES), start), 0)
    for tag, old_from, old_to, new_from, new_to in _match_lines(old_middle, new_middle):
        if tag == "equal":
            yield from _show_equal(new, range(start + new_from, start + new_to), old_from - new_from)
            continue
        yield from _show_replaced(old_middle[old_from:old_to], new_middle[new_from:new_to], (old_from, new_from), start)
    shared = range(len(new) - end, min(len(new), len(new) - end + CONTEXT_LINES))
    yield from _show_context(new, shared, len(old) - len(new))


def _show_replaced(removed: list[str], added: list[str], places: tuple[int, int], start: int) -> Iterator[DiffLine]:
    """What was removed, then what was added; where it is line for line, with words marked."""
    marked: list[tuple[tuple[Words, bool], tuple[Words, bool]]] = []
    if len(removed) == len(added) <= MOST_WORD_PAIRS:
        marked = [_mark_words(before, after) for before, after in zip(removed, added, strict=True)]
    for side, mark, lines in ((0, DiffMark.REMOVED, removed), (1, DiffMark.ADDED, added)):
        for index, text in enumerate(lines):
            words, is_cut = marked[index][side] if marked else ((), False)
            shown = "".join(word for _, word in words) if marked else _cut(text)
            yield DiffLine(mark, start + places[side] + index + 1, shown, words, is_cut=is_cut)


def _match_lines(old: list[str], new: list[str]) -> Sequence[tuple[str, int, int, int, int]]:
    if not old and not new:
        return []
    if not old or not new or len(old) > MOST_LINES_MATCHED or len(new) > MOST_LINES_MATCHED:
        return [("replace", 0, len(old), 0, len(new))]
    if len(old) == len(new) == 1:
        return [("replace", 0, 1, 0, 1)]
    return SequenceMatcher(None, old, new, autojunk=True).get_opcodes()


def _show_context(lines: list[str], places: range, older_by: int) -> Iterator[DiffLine]:
    """`older_by`: what to add to a place to have it in the older text."""
    for index in places:
        yield DiffLine(DiffMark.SAME, index + 1, _cut(lines[index]), old_number=index + 1 + older_by)


def _show_equal(lines: list[str], places: range, older_by: int) -> Iterator[DiffLine]:
    if len(places) <= 2 * CONTEXT_LINES:
        yield from _show_context(lines, places, older_by)
        return
    yield from _show_context(lines, places[:CONTEXT_LINES], older_by)
    yield from _show_context(lines, places[-CONTEXT_LINES:], older_by)


def _mark_words(before: str, after: str) -> tuple[tuple[Words, bool], tuple[Words, bool]]:
    """Both lines with what changed marked, and whether more of each differs than is shown. What they begin and end
    with alike is found in the whole lines first, so that only the rest is taken apart and cut."""
    start = _find_start(before, after)
    end = _find_end(before, after, start)
    old, new = before[start : len(before) - end], after[start : len(after) - end]
    parts = _match_words(old, new)
    head, tail = before[:start], before[len(before) - end :]
    if max(len(before), len(after)) > LONGEST_LINE_SHOWN:
        head = head if len(head) <= CONTEXT_CHARACTERS else CUT + head[-CONTEXT_CHARACTERS:]
        tail = tail if len(tail) <= CONTEXT_CHARACTERS else tail[:CONTEXT_CHARACTERS] + CUT
    return _frame(head, _pick(DiffMark.REMOVED, parts), old, tail), _frame(
        head, _pick(DiffMark.ADDED, parts), new, tail
    )


def _pick(mark: DiffMark, parts: Words) -> Words:
    return tuple(part for part in parts if part[0] in (DiffMark.SAME, mark))


def _frame(head: str, parts: Words, middle: str, tail: str) -> tuple[Words, bool]:
    """One line between its shared ends. `middle` is what `parts` are taken from."""
    is_cut = sum(len(text) for _, text in parts) < len(middle)
    shown, room = [(DiffMark.SAME, head)], LONGEST_LINE_SHOWN
    for mark, whole in parts:
        text = _squeeze(whole) if mark is DiffMark.SAME and len(middle) > LONGEST_LINE_SHOWN else whole
        shown.append((mark, text[:room]))
        is_cut = is_cut or len(text) > room
        room = max(0, room - len(text))
    shown.append((DiffMark.SAME, CUT + tail if is_cut else tail))
    return tuple(part for part in shown if part[1]), is_cut


def _find_start(before: str, after: str) -> int:
    """How long the shared beginning is, not ending inside a word."""
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


def _match_words(before: str, after: str) -> Words:
    """Marked parts of what lies between the shared ends. Of much only the beginning: up to the last part that is known
    to be the same, as what follows may only be out of sight on the other side."""
    old, new = _take_words(before), _take_words(after)
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


def _take_words(text: str) -> list[str]:
    return [found.group() for found in islice(_WORD.finditer(text), MOST_WORDS_MATCHED)]


def _squeeze(text: str) -> str:
    """The ends of what did not change between two differences."""
    if len(text) <= 2 * CONTEXT_CHARACTERS:
        return text
    return f"{text[:CONTEXT_CHARACTERS]}{CUT}{text[-CONTEXT_CHARACTERS:]}"


def _is_in_word(character: str) -> bool:
    return character.isalnum() or character == "_"


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST_LINE_SHOWN else text[:LONGEST_LINE_SHOWN] + CUT

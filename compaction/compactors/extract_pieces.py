"""Pieces of a summary made without a model, and the cutting of them: what goes first when there is too much.

Code snippets go first, then notes on files, then problem solving, then errors; people's words last, oldest first.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum

from compaction.compactors.digest import cut_text
from compaction.context.tokens import CHARACTERS_PER_TOKEN, add_margin, count_text_tokens

_TAGS = re.compile(r"<(/?)(analysis|summary)>", re.IGNORECASE)


class CutRank(IntEnum):
    """In which order pieces are cut; what is always needed is not."""

    SNIPPET = 1
    FILE_NOTE = 2
    PROBLEM = 3
    ERROR = 4
    USER_MESSAGE = 5
    ALWAYS = 9


_CUT_NAMES = {
    CutRank.SNIPPET: "code snippets",
    CutRank.FILE_NOTE: "notes on files",
    CutRank.PROBLEM: "steps",
    CutRank.ERROR: "errors",
    CutRank.USER_MESSAGE: "of the oldest messages",
}


@dataclass(frozen=True, slots=True)
class Piece:
    """A few lines of one section (1 to 9). `short` replaces the text when it is cut; `age` is 0 for the newest."""

    section: int
    text: str
    rank: CutRank = CutRank.ALWAYS
    age: int = 0
    short: str = ""
    is_cut: bool = False

    @property
    def shown(self) -> str:
        """What stands in the summary."""
        return self.short if self.is_cut else self.text


def quote(text: str, indent: str = "  ") -> str:
    """The text as a quotation, line by line, so that no line of it can pass for a heading or a tag of the summary."""
    safe = _TAGS.sub(r"<\1 \2>", text)
    return "\n".join(f"{indent}> {line}".rstrip() for line in safe.splitlines())


def quote_in_line(text: str) -> str:
    """The text in quotation marks on one line."""
    return '"' + _TAGS.sub(r"<\1 \2>", " ".join(text.split())) + '"'


def count_summary_tokens(text: str) -> int:
    """The summary's tokens, margin included, so that the cap holds for code as well."""
    return add_margin(count_text_tokens(text))


def write_sections(pieces: Sequence[Piece], names: Sequence[str], *, cap_tokens: int, aim_tokens: int) -> str:
    """All sections in order, within the cap; every cut leaves a mark.

    Above the aim, code, notes and steps are cut as well: a summary of little must not be longer than what it tells.
    """
    kept = list(pieces)
    text = _cut_down(kept, names, limit_tokens=min(aim_tokens, cap_tokens), last_rank=CutRank.PROBLEM)
    if count_summary_tokens(text) > cap_tokens:
        text = _cut_down(kept, names, limit_tokens=cap_tokens, last_rank=CutRank.USER_MESSAGE)
    if count_summary_tokens(text) <= cap_tokens:
        return text
    return cut_text(text, max(0, cap_tokens * CHARACTERS_PER_TOKEN * 3 // 4 - 60))


def _cut_down(pieces: list[Piece], names: Sequence[str], *, limit_tokens: int, last_rank: CutRank) -> str:
    """The text after cutting pieces up to this rank for as long as it is over the limit."""
    text = _join_sections(pieces, names)
    while (excess := count_summary_tokens(text) - limit_tokens) > 0:
        if not _cut_some(pieces, excess * CHARACTERS_PER_TOKEN * 3 // 4, last_rank):
            break
        text = _join_sections(pieces, names)
    return text


def _cut_some(pieces: list[Piece], excess_characters: int, last_rank: CutRank) -> bool:
    """Cut pieces of the lowest rank left, oldest first, until enough is saved; False when nothing is left to cut.

    Short forms (bare paths, first lines of errors) go after everything was shortened, but before people's words.
    """
    may_drop = last_rank is CutRank.USER_MESSAGE
    open_pieces = [
        index
        for index, piece in enumerate(pieces)
        if piece.rank <= last_rank and piece.shown and (may_drop or not piece.is_cut)
    ]
    if not open_pieces:
        return False
    first = min(_find_turn(pieces[index]) for index in open_pieces)
    chosen = [index for index in open_pieces if _find_turn(pieces[index]) == first]
    saved = 0
    for index in sorted(chosen, key=lambda index: -pieces[index].age):
        before = len(pieces[index].shown)
        is_cut_already = pieces[index].is_cut
        pieces[index] = replace(pieces[index], is_cut=True, short="" if is_cut_already else pieces[index].short)
        saved += before - len(pieces[index].shown)
        if saved >= excess_characters:
            break
    return True


def _find_turn(piece: Piece) -> tuple[bool, bool, int]:
    """When it is this piece's turn to be cut."""
    return piece.rank is CutRank.USER_MESSAGE, piece.is_cut, piece.rank


def _join_sections(pieces: Iterable[Piece], names: Sequence[str]) -> str:
    by_section: dict[int, list[Piece]] = {}
    for piece in pieces:
        by_section.setdefault(piece.section, []).append(piece)
    sections = []
    for number, name in enumerate(names, start=1):
        here = by_section.get(number, [])
        lines = [*_list_marks(here), *(piece.shown for piece in here if piece.shown)]
        sections.append(f"{number}. {name}:\n" + ("\n".join(lines) or "- Nothing to report."))
    return "\n\n".join(sections)


def _list_marks(pieces: Sequence[Piece]) -> list[str]:
    marks = []
    for rank, name in _CUT_NAMES.items():
        gone = sum(1 for piece in pieces if piece.rank is rank and piece.is_cut and not piece.shown)
        if gone:
            marks.append(f"[cut to stay within the limit: {gone:,} {name}]")
    return marks

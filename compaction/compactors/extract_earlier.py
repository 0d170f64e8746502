"""Carrying an earlier summary over: its sections go, shortened, into the same sections of the next one."""

import re

from compaction.compactors.digest import cut_text
from compaction.compactors.extract_pieces import CutRank, Piece, quote
from compaction.compactors.summary_answer import find_missing_sections, split_sections
from compaction.compactors.summary_prompt import SECTIONS, UP_TO_SECTIONS
from compaction.ports import Variant
from compaction.transcripts.entries import Entry, TextBlock

# Characters that may come over, by section: what was pending or under way is overtaken soonest.
_ROOM = {1: 2_000, 2: 600, 3: 5_000, 4: 2_000, 5: 3_000, 7: 1_500, 8: 1_200, 9: 500}
_RANKS = {3: CutRank.FILE_NOTE, 4: CutRank.ERROR, 5: CutRank.PROBLEM, 6: CutRank.USER_MESSAGE}
_WHOLE_CHARACTERS = 8_000  # of a summary that has no sections
_OLDEST = 1_000_000  # everything carried over is older than everything since
_QUOTE = re.compile(r"^[ \t]*>[ \t]?", re.MULTILINE)
_ITEM = re.compile(r"^(?=[ \t]{0,6}(?:[-*•]|\d{1,4}[.)])[ \t])", re.MULTILINE)


def list_earlier_pieces(summary: Entry | None) -> list[Piece]:
    """What an earlier summary said, section by section; people's words whole."""
    text = _read_text(summary)
    if not text:
        return []
    variant = Variant.UP_TO if UP_TO_SECTIONS[7] in text and SECTIONS[7] not in text else Variant.FULL
    names = UP_TO_SECTIONS if variant is Variant.UP_TO else SECTIONS
    if len(find_missing_sections(text, variant)) == len(names):
        told = "- An earlier summary said:\n" + quote(cut_text(text, _WHOLE_CHARACTERS))
        return [Piece(5, told, CutRank.PROBLEM, _OLDEST)]
    sections = split_sections(text, variant)
    pieces: list[Piece] = []
    for number, name in enumerate(names, start=1):
        body = sections.get(name, "").partition("\n")[2].strip("\n")
        # A heading with its text on the same line.
        body = body or sections.get(name, "").partition(":")[2].strip()
        if body.strip() and "Nothing to report." not in body[:40]:
            pieces += _carry_words(body) if number == 6 else [_carry_section(number, body)]
    return pieces


def _read_text(summary: Entry | None) -> str:
    blocks = summary.message.content if summary is not None and summary.message else ()
    return "\n".join(block.text for block in blocks if isinstance(block, TextBlock)).strip()


def _carry_section(number: int, body: str) -> Piece:
    lead = "- From the summary before the last compaction" + (" (may be done since)" if number in (7, 8, 9) else "")
    # What was under way then is a step now.
    section = 5 if number in (8, 9) else number
    rank = CutRank.PROBLEM if section == 5 else _RANKS.get(number, CutRank.ALWAYS)
    return Piece(section, f"{lead}:\n{quote(cut_text(_unquote(body), _ROOM[number]))}", rank, _OLDEST - number)


def _carry_words(body: str) -> list[Piece]:
    items = [_keep_quoted(item.rstrip()) for item in _ITEM.split(body) if item.strip()]
    return [
        Piece(6, item, CutRank.USER_MESSAGE, _OLDEST - number, cut_text(item, 160)) for number, item in enumerate(items)
    ]


def _keep_quoted(item: str) -> str:
    """The item as one of a list, its further lines quoted, so that none of them can pass for a heading."""
    first, *rest = item.splitlines()
    lines = [line if line.lstrip().startswith(">") else f"  > {line}" for line in rest]
    return "\n".join([first if first.startswith("-") else f"- {first.strip()}", *lines])


def _unquote(body: str) -> str:
    """Without the quotation marks of the last time, so that they do not pile up."""
    return _QUOTE.sub("", body)

"""Rows of a transcript page: single lines, and runs of tool calls folded into one row."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from dashboard.pages.transcript_entry import CallPart, Part, ResultPart, SaidPart
from dashboard.pages.transcript_page import ShownEntry

FEWEST_CALLS = 2  # a single call is folded already


@dataclass(frozen=True)
class TranscriptRow:
    """One line, or consecutive lines of tool calls; `is_open`: a link or a search match leads inside the fold."""

    entries: tuple[ShownEntry, ...]
    is_group: bool = False
    is_open: bool = False

    @property
    def calls(self) -> tuple[tuple[str, int], ...]:
        """Tools and how often each was called, the most frequent first."""
        return tuple(Counter(part.tool for part in self._parts if isinstance(part, CallPart)).most_common())

    @property
    def tokens(self) -> int:
        """Estimated tokens of calls, results and thinking."""
        results = (part.result for part in self._parts if isinstance(part, CallPart))
        return sum(part.tokens for part in self._parts) + sum(result.tokens for result in results if result)

    @property
    def error_count(self) -> int:
        return sum(result.is_error for part in self._parts if (result := _find_result(part)))

    @property
    def _parts(self) -> Iterator[Part]:
        return (part for entry in self.entries for part in entry.view.parts)


def group_tool_calls(entries: Sequence[ShownEntry], pattern: re.Pattern[str] | None) -> tuple[TranscriptRow, ...]:
    """Fold lines of tool calls, results and thinking that follow one another; `pattern` is what was searched for."""
    rows: list[TranscriptRow] = []
    run: list[ShownEntry] = []
    for entry in entries:
        if _is_foldable(entry):
            run.append(entry)
            continue
        rows += _fold(run, pattern)
        run = []
        rows.append(TranscriptRow((entry,)))
    return (*rows, *_fold(run, pattern))


def _is_foldable(entry: ShownEntry) -> bool:
    parts = entry.view.parts
    return bool(parts) and all(part.kind in ("call", "result", "thinking") for part in parts)


def _fold(run: Sequence[ShownEntry], pattern: re.Pattern[str] | None) -> Iterator[TranscriptRow]:
    calls = sum(isinstance(part, CallPart) for entry in run for part in entry.view.parts)
    if calls < FEWEST_CALLS:
        yield from (TranscriptRow((entry,)) for entry in run)
        return
    is_open = any(entry.is_wanted for entry in run) or (pattern is not None and _has_match(run, pattern))
    yield TranscriptRow(tuple(run), is_group=True, is_open=is_open)


def _has_match(run: Sequence[ShownEntry], pattern: re.Pattern[str]) -> bool:
    return any(pattern.search(text) for entry in run for part in entry.view.parts for text in _list_texts(part))


def _list_texts(part: Part) -> Iterator[str]:
    if isinstance(part, SaidPart):
        yield part.said.text
        return
    if isinstance(part, CallPart):
        yield from (said.text for _, said in part.fields)
    if result := _find_result(part):
        yield result.said.text


def _find_result(part: Part) -> ResultPart | None:
    """Return the part if it is a result, or the result inside a call."""
    if isinstance(part, ResultPart):
        return part
    return part.result if isinstance(part, CallPart) else None


def compile_search(words: str) -> re.Pattern[str] | None:
    """Return a pattern for words as the search finds them, across spaces and line ends; None if there are none."""
    return _build_pattern(words) if words and words.strip() else None


@lru_cache(maxsize=64)
def _build_pattern(words: str) -> re.Pattern[str]:
    spaced = r"\s+".join(map(re.escape, words.split()))
    return re.compile(f"({spaced})", re.IGNORECASE)

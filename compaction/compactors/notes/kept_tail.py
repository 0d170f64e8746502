"""What stays beside session notes: all that the notes do not cover, and enough before it to go on smoothly."""

from collections.abc import Sequence
from dataclasses import dataclass

from compaction.compactors.cuts import find_cuts
from compaction.context.tokens import add_margin, count_entry_tokens
from compaction.transcripts.chain import ContextSlice, is_boundary
from compaction.transcripts.entries import Entry, TextBlock
from compaction.transcripts.user_lines import classify_entry


@dataclass(frozen=True, slots=True)
class KeepSettings:
    """The client's figures: what is at least kept, and where going back for more stops."""

    least_tokens: int = 10_000
    least_text_messages: int = 5
    most_tokens: int = 40_000


DEFAULT_KEEP_SETTINGS = KeepSettings()


def find_keep_start(
    context: ContextSlice, last_entry_uuid: str | None, settings: KeepSettings = DEFAULT_KEEP_SETTINGS
) -> int | None:
    """The index from which on entries are kept; None when the last covered entry is not among them.

    Everything after that entry is kept whatever its size. Going back for more stops at the last boundary and its
    summary, and moves on to a place where no tool pair and no response is parted.
    """
    entries = context.entries
    covered = next((index for index, entry in enumerate(entries) if entry.uuid and entry.uuid == last_entry_uuid), None)
    if covered is None:
        return None
    floor = _find_floor(entries)
    start = max(covered + 1, floor)
    kept = _Kept(entries[start:])
    while start > floor and not kept.is_enough(settings):
        if add_margin(kept.tokens + count_entry_tokens(entries[start - 1])) > settings.most_tokens:
            break
        start -= 1
        kept.add(entries[start])
    cuts = find_cuts(entries)
    return next(place for place in range(start, -1, -1) if cuts[place])


class _Kept:
    """What is kept so far, counted."""

    def __init__(self, entries: Sequence[Entry]) -> None:
        self.tokens = 0
        self._messages: set[str] = set()
        for entry in entries:
            self.add(entry)

    def add(self, entry: Entry) -> None:
        self.tokens += count_entry_tokens(entry)
        if has_text(entry) and entry.message is not None:
            # Lines of one response are one message.
            self._messages.add(entry.message.id or entry.uuid or f"line {entry.line_number}")

    def is_enough(self, settings: KeepSettings) -> bool:
        tokens = add_margin(self.tokens)
        has_both = tokens >= settings.least_tokens and len(self._messages) >= settings.least_text_messages
        return has_both or tokens >= settings.most_tokens


def has_text(entry: Entry) -> bool:
    """Return whether a person or the model says something in it, other than by tools."""
    if entry.type not in ("user", "assistant") or entry.message is None:
        return False
    line = classify_entry(entry)
    if line is not None:
        return bool(line.text)
    return any(isinstance(block, TextBlock) and block.text.strip() for block in entry.message.content)


def _find_floor(entries: Sequence[Entry]) -> int:
    """The first index that may be kept: behind the last boundary and the summary that goes with it."""
    floor = 0
    for index, entry in enumerate(entries):
        if is_boundary(entry) or entry.is_compact_summary:
            floor = index + 1
    return floor

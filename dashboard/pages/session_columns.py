"""The columns of the sessions list and which of them a person wants to see; the session itself is always there."""

from collections.abc import Iterable, Sequence
from typing import Any

# In the order of the table.
COLUMN_WORDS = {
    "developer": "Developer",
    "context": "Context",
    "forecast": "Until auto-compact",
    "compactions": "Compactions",
    "hits": "Hit rate",
    "breaks": "Breaks",
    "spent": "Spent",
    "warm": "Cache warm",
    "active": "Active",
}
# The words of the glossary that explain them.
COLUMN_TERMS = {
    "context": "context",
    "forecast": "forecast",
    "compactions": "compaction",
    "hits": "hit rate",
    "breaks": "cache break",
    "spent": "list price",
    "warm": "cache warm",
    "active": "live",
}
ALL_COLUMNS = tuple(COLUMN_WORDS)


def pick_columns(chosen: Iterable[Any] | None) -> tuple[str, ...]:
    """Those that are chosen, in the order of the table; all where none that exists is."""
    names = set(map(str, chosen or ()))
    return tuple(name for name in ALL_COLUMNS if name in names) or ALL_COLUMNS


def offer_columns(shown: Sequence[str]) -> list[tuple[str, str, bool]]:
    """Name, words, and whether it is shown."""
    return [(name, words, name in shown) for name, words in COLUMN_WORDS.items()]

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
# Shown where nothing was chosen: with these, titles have room on a screen of 1280 px.
DEFAULT_COLUMNS = tuple(name for name in ALL_COLUMNS if name not in ("compactions", "hits"))


def pick_columns(chosen: Iterable[Any] | None) -> tuple[str, ...]:
    """Return the chosen ones in the order of the table; the default where none that exists is."""
    names = set(map(str, chosen or ()))
    return tuple(name for name in ALL_COLUMNS if name in names) or DEFAULT_COLUMNS


def offer_columns(shown: Sequence[str]) -> list[tuple[str, str, bool]]:
    """Name, words, and whether it is shown."""
    return [(name, words, name in shown) for name, words in COLUMN_WORDS.items()]

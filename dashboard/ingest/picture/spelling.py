"""Values as either database takes them: times, dollars and JSON spelt as text, everything else as it is."""

import json
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import msgspec


def spell_rows(rows: Iterable[Iterable[Any]]) -> list[tuple[Any, ...]]:
    """Ready to be written. Column by column: most hold nothing to spell, and then take no look at every value."""
    return list(zip(*map(_spell_column, zip(*rows, strict=True)), strict=True))


def _spell_column(values: tuple[Any, ...]) -> Iterable[Any]:
    if type(values[0]) in _PLAIN:  # a column holds one kind of value, or nothing
        return values
    kinds = set(map(type, values))
    if _SPELLINGS.keys().isdisjoint(kinds):
        return values
    if kinds == {datetime} and {at.tzinfo for at in values} == {UTC}:
        return _spell_times(values)
    if kinds == {dict} and not any(values):
        return [spell_json({})] * len(values)
    return [value if (spell := _SPELLINGS.get(type(value))) is None else spell(value) for value in values]


def spell_time(at: datetime) -> str:
    """In UTC, which is what a connection takes it for."""
    return (at if at.tzinfo is UTC else at.astimezone(UTC)).isoformat(" ")[:_WITHOUT_OFFSET]


def read_time(text: str) -> datetime:
    """From `spell_time`."""
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def _spell_times(times: tuple[datetime, ...]) -> list[str]:
    """The same of many, all in UTC, in a tenth of the time."""
    text = msgspec.json.encode(times).decode()
    return text[len('["') : -len('Z"]')].replace("T", " ").split('Z","')


def spell_json(value: Any) -> str:
    return json.dumps(value) if value else "{}" if isinstance(value, dict) else "[]"


_WITHOUT_OFFSET = -len("+00:00")


def _spell_usd(amount: Decimal) -> str:
    return format(amount, "f")


_PLAIN = frozenset({str, int, bool, float})
_SPELLINGS: dict[type, Callable[[Any], str]] = {
    datetime: spell_time,
    Decimal: _spell_usd,
    dict: spell_json,
    list: spell_json,
}

"""Values as either database takes them: times, dollars and JSON spelt as text, everything else as it is."""

import json
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any


def spell_values(values: Iterable[Any]) -> list[Any]:
    """Ready to be written, in the same order."""
    return [value if (spell := _SPELLINGS.get(type(value))) is None else spell(value) for value in values]


def spell_time(at: datetime) -> str:
    """In UTC, which is what a connection takes it for."""
    return (at if at.tzinfo is UTC else at.astimezone(UTC)).replace(tzinfo=None).isoformat(" ")


def spell_json(value: Any) -> str:
    return json.dumps(value) if value else "{}" if isinstance(value, dict) else "[]"


def _spell_usd(amount: Decimal) -> str:
    return format(amount, "f")


_SPELLINGS: dict[type, Callable[[Any], str]] = {
    datetime: spell_time,
    Decimal: _spell_usd,
    dict: spell_json,
    list: spell_json,
}

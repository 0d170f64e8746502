"""Lenient typed access to decoded JSON: a value of the wrong kind is absent, never an error. No JSON is parsed here."""

from collections.abc import Mapping
from datetime import UTC, datetime

LARGEST_COUNT = 2**53 - 1  # the largest whole number a JavaScript client can write exactly
NOTHING: Mapping[str, object] = {}


def get_text(fields: Mapping[str, object], key: str) -> str | None:
    """The string under this key."""
    value = fields.get(key)
    return value if isinstance(value, str) else None


def get_count(fields: Mapping[str, object], key: str) -> int | None:
    """The non-negative whole number under this key; negative, fractional and absurd numbers are absent."""
    value = fields.get(key)
    if isinstance(value, float) and value.is_integer() and 0 <= value <= LARGEST_COUNT:
        return int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if 0 <= value <= LARGEST_COUNT else None


def get_seconds(fields: Mapping[str, object], key: str) -> float | None:
    """Milliseconds under this key, as seconds."""
    value = fields.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value / 1000 if 0 <= value <= LARGEST_COUNT else None


def get_fields(fields: Mapping[str, object], key: str) -> Mapping[str, object]:
    """The object under this key, or an empty one."""
    value = fields.get(key)
    return value if isinstance(value, Mapping) else NOTHING


def get_items(fields: Mapping[str, object], key: str) -> list[object]:
    """The list under this key, or an empty one."""
    value = fields.get(key)
    return value if isinstance(value, list) else []


def get_texts(fields: Mapping[str, object], key: str) -> tuple[str, ...]:
    """The strings of the list under this key."""
    return tuple(item for item in get_items(fields, key) if isinstance(item, str))


def get_time(fields: Mapping[str, object], key: str) -> datetime | None:
    """The ISO 8601 time under this key, aware; without an offset it is taken as UTC."""
    text = get_text(fields, key)
    if text is None:
        return None
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return None
    return at if at.tzinfo else at.replace(tzinfo=UTC)

"""Typed access to the fields of decoded JSON objects. A value of the wrong type counts as absent."""

from collections.abc import Mapping
from datetime import UTC, datetime

LARGEST_COUNT = 2**53 - 1  # the largest whole number a JavaScript client can write exactly
NOTHING: Mapping[str, object] = {}


def get_text(fields: Mapping[str, object], key: str) -> str | None:
    """Return the string under this key."""
    value = fields.get(key)
    return value if isinstance(value, str) else None


def get_count(fields: Mapping[str, object], key: str) -> int | None:
    """Return the whole number from 0 to LARGEST_COUNT under this key; all others are absent."""
    value = fields.get(key)
    if isinstance(value, float) and value.is_integer() and 0 <= value <= LARGEST_COUNT:
        return int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if 0 <= value <= LARGEST_COUNT else None


def get_seconds(fields: Mapping[str, object], key: str) -> float | None:
    """Return the milliseconds under this key as seconds."""
    value = fields.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value / 1000 if 0 <= value <= LARGEST_COUNT else None


def get_fields(fields: Mapping[str, object], key: str) -> Mapping[str, object]:
    """Return the object under this key, or an empty one."""
    value = fields.get(key)
    return value if isinstance(value, Mapping) else NOTHING


def get_items(fields: Mapping[str, object], key: str) -> list[object]:
    """Return the list under this key, or an empty one."""
    value = fields.get(key)
    return value if isinstance(value, list) else []


def get_texts(fields: Mapping[str, object], key: str) -> tuple[str, ...]:
    """Return the strings of the list under this key."""
    return tuple(item for item in get_items(fields, key) if isinstance(item, str))


def get_time(fields: Mapping[str, object], key: str) -> datetime | None:
    """Return the ISO 8601 time under this key, aware; without an offset it counts as UTC."""
    text = get_text(fields, key)
    if text is None:
        return None
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return None
    return at if at.tzinfo else at.replace(tzinfo=UTC)

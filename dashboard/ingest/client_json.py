"""JSON that clients send of their own making: one object, a list, or one object a line; texts made safe to keep."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from compaction.transcripts.reader import load_json
from dashboard.client.status_values import read_time
from dashboard.ingest.observed import LineProblem, Rules
from dashboard.ingest.transcripts import find_redactor

LARGEST_COUNT = 2_000
_EARLIEST = datetime(2020, 1, 1, tzinfo=UTC)
_CLOCKS_DIFFER = timedelta(days=1)
_TEXT_LENGTH = 200


class TooMany(Exception):
    """More objects than one body may hold."""


def read_objects(data: bytes, name: str) -> tuple[list[dict[str, Any]], list[LineProblem]]:
    """The objects, and the lines that are none. Never raises for what the bytes hold, only for how many they are."""
    found: list[dict[str, Any]] = []
    problems: list[LineProblem] = []
    for number, told in enumerate(_read_values(data), 1):
        if isinstance(told, dict):
            found.append(told)
        else:
            problems.append(LineProblem(name, number, "The body is not a JSON object."))
        if number > LARGEST_COUNT:
            raise TooMany(f"Send at most {LARGEST_COUNT:,} per request.")
    return found, problems


def _read_values(data: bytes) -> Iterator[object]:
    whole = _parse(data)
    if whole is not None:
        yield from whole if isinstance(whole, list) else [whole]
        return
    yield from (_parse(line) for line in data.splitlines() if line.strip())


def _parse(data: bytes) -> object:
    try:
        return load_json(data)
    except (ValueError, RecursionError):
        return None


def read_text(told: object, length: int = _TEXT_LENGTH) -> str | None:
    """A text that any database and any packer takes; None where there is none."""
    if not isinstance(told, str):
        return None
    return told[:length].replace("\x00", "").encode("utf-8", "replace").decode() or None


def read_clean_text(told: object, rules: Rules, length: int = _TEXT_LENGTH) -> str | None:
    """The same of a text that is no id: secrets are taken out of it, and it is cut then."""
    if not isinstance(told, str):
        return None
    return find_redactor(rules).clean_start(told, length) or None


def find_time(told: object, *, arrived_at: datetime) -> datetime:
    """When the client says it happened, else when it arrived: a clock far off is not believed."""
    return read_moment(told, latest=arrived_at + _CLOCKS_DIFFER) or arrived_at


def read_moment(told: object, *, latest: datetime) -> datetime | None:
    seconds = read_time(told)
    if seconds is None or not _EARLIEST.timestamp() <= seconds <= latest.timestamp():
        return None
    return datetime.fromtimestamp(seconds, UTC)

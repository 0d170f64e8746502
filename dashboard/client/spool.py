"""Events on disk until a server has them: one file each, the oldest dropped and counted when there are too many.

A file's ending is the endpoint it goes to. A name that is put again replaces what still waits under it.
"""

import os
import re
from collections.abc import Iterator
from typing import NamedTuple

from dashboard.client.client_folder import make_folder, name_file, write_file

FOLDER = "spool"
LARGEST_EVENT_BYTES = 256 * 1024
LARGEST_SPOOL_BYTES = 16 * 1024 * 1024
LARGEST_COUNT = 5_000
# So few events cannot be too much, whatever their size: no need to look at each.
_SURELY_SMALL = LARGEST_SPOOL_BYTES // LARGEST_EVENT_BYTES
_DROPPED = "dropped"
_TAKEN = ".taken"
_NAME = re.compile(r"[\w-]+\.(hooks|status)(?:\.taken)?\Z", re.ASCII)


class Waiting(NamedTuple):
    """An event that no server has taken yet."""

    path: str
    endpoint: str
    size_bytes: int
    changed_ns: int


class TooLarge(Exception):
    """An event above LARGEST_EVENT_BYTES is not kept."""


def put_event(folder: str, name: str, data: bytes) -> None:
    """Keep one event, `name` being letters, digits and dashes, a dot and the endpoint."""
    if len(data) > LARGEST_EVENT_BYTES:
        raise TooLarge(f"An event of {len(data):,} bytes is too large to keep.")
    spool = name_file(folder, FOLDER)
    make_folder(spool)
    write_file(name_file(spool, name), data)
    if len(os.listdir(spool)) > _SURELY_SMALL:
        _hold_bounds(folder)


def list_events(folder: str) -> list[Waiting]:
    """What waits, the oldest first."""
    return sorted(_read_spool(name_file(folder, FOLDER)), key=lambda event: (event.changed_ns, event.path))


def take_event(event: Waiting) -> Waiting | None:
    """Set one aside for sending: what is put under its name from now on is another. None when it is gone."""
    if event.path.endswith(_TAKEN):
        return event
    taken = event.path + _TAKEN
    try:
        os.rename(event.path, taken)
    except FileNotFoundError:
        return None
    return event._replace(path=taken)


def read_event(event: Waiting) -> bytes:
    with open(event.path, "rb") as file:
        return file.read()


def remove_event(event: Waiting) -> None:
    try:
        os.unlink(event.path)
    except FileNotFoundError:
        return  # dropped meanwhile, because others came


def count_dropped(folder: str) -> int:
    """Each dropped event left one byte."""
    try:
        return os.stat(name_file(folder, _DROPPED)).st_size
    except FileNotFoundError:
        return 0


def note_dropped(folder: str, count: int) -> None:
    descriptor = os.open(name_file(folder, _DROPPED), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        os.write(descriptor, b"." * count)
    finally:
        os.close(descriptor)


def forget_dropped(folder: str, count: int) -> None:
    """What a server was told of; those that came meanwhile stay."""
    os.truncate(name_file(folder, _DROPPED), max(0, count_dropped(folder) - count))


def _read_spool(spool: str) -> Iterator[Waiting]:
    try:
        found = list(os.scandir(spool))
    except FileNotFoundError:
        return
    for entry in found:
        known = _NAME.match(entry.name)
        if known is None:
            continue
        try:
            stat = entry.stat()
        except FileNotFoundError:
            continue
        yield Waiting(entry.path, known[1], stat.st_size, stat.st_mtime_ns)


def _hold_bounds(folder: str) -> None:
    waiting = list_events(folder)
    excess_count = len(waiting) - LARGEST_COUNT
    excess_bytes = sum(event.size_bytes for event in waiting) - LARGEST_SPOOL_BYTES
    dropped = 0
    for event in waiting:
        if excess_count <= 0 and excess_bytes <= 0:
            break
        remove_event(event)
        dropped, excess_count, excess_bytes = dropped + 1, excess_count - 1, excess_bytes - event.size_bytes
    if dropped:
        note_dropped(folder, dropped)

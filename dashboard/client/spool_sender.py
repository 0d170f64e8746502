"""Sends what waits in the spool, in a process of its own that nobody waits for; one of them at a time."""

import fcntl
import http.client
import os
import ssl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

from dashboard.client.client_folder import Connection, make_folder, name_file, note_problem, read_connection
from dashboard.client.spool import (
    Waiting,
    count_dropped,
    forget_dropped,
    list_events,
    note_dropped,
    read_event,
    remove_event,
    take_event,
)

LOCK = "sender.lock"
STATUS_SENT = "status_sent"
DROPPED_HEADER = "X-Plimsoll-Dropped"
TIMEOUT_SECONDS = 10.0
WAITS_SECONDS = (1.0, 3.0, 9.0)  # after a failed try; then the next event's sender tries again
STATUS_EVERY_SECONDS = 3.0
BATCH_COUNT = 200
BATCH_BYTES = 1024 * 1024
# Wrong now, perhaps right later: a key to be renewed, a server to be set up or updated, one that is busy.
_LATER = frozenset({401, 403, 404, 408, 425, 429})


class Away(Exception):
    """The server did not take it; what was to be sent still waits."""


def send_waiting(folder: str) -> None:
    """Send until nothing waits or the server stays away. What is put while another sender holds the lock is seen by
    that one: it looks again after letting go."""
    while list_events(folder):
        with hold_lock(name_file(folder, LOCK)) as is_mine:
            if not is_mine or not _send_patiently(folder):
                return


def _send_patiently(folder: str) -> bool:
    for wait_seconds in (*WAITS_SECONDS, None):
        connection = read_connection(folder)
        if connection is None:
            return False
        try:
            _send_all(folder, connection)
        except (Away, OSError, http.client.HTTPException) as error:
            if wait_seconds is None:
                note_problem(folder, f"not sent, it waits: {type(error).__name__}: {error}")
                return False
            time.sleep(wait_seconds)
        else:
            return True
    return False


def _send_all(folder: str, connection: Connection) -> None:
    while waiting := list_events(folder):
        if all(event.endpoint == "status" for event in waiting):
            _wait_for_status(folder)
            waiting = list_events(folder)
        batch = _cut_batch(waiting)
        if batch:
            _send_batch(folder, connection, batch)


def _cut_batch(waiting: list[Waiting]) -> list[Waiting]:
    """The oldest events that go to one endpoint, within the bounds of a request."""
    batch: list[Waiting] = []
    size_bytes = 0
    for event in waiting:
        if event.endpoint != waiting[0].endpoint:
            continue
        size_bytes += event.size_bytes
        if batch and (size_bytes > BATCH_BYTES or len(batch) == BATCH_COUNT):
            break
        taken = take_event(event)
        if taken is not None:
            batch.append(taken)
    return batch


def _send_batch(folder: str, connection: Connection, batch: list[Waiting]) -> None:
    body = b"\n".join(read_event(event) for event in batch)
    dropped = count_dropped(folder)
    endpoint = batch[0].endpoint
    status, told = _post(connection, f"/api/v1/ingest/{endpoint}", body, {DROPPED_HEADER: str(dropped)})
    if status in _LATER or not (200 <= status < 300 or 400 <= status < 500):
        raise Away(f"HTTP {status} {told}")
    for event in batch:
        remove_event(event)
    if status >= 400:
        note_dropped(folder, len(batch))
        note_problem(folder, f"refused for good, dropped {len(batch)}: HTTP {status} {told}")
        return
    if dropped:
        forget_dropped(folder, dropped)
    if endpoint == "status":
        with open(name_file(folder, STATUS_SENT), "wb"):  # its time is what counts
            pass


def _wait_for_status(folder: str) -> None:
    """A status line is drawn several times a second: the last of a few seconds is enough."""
    try:
        age_seconds = time.time() - os.stat(name_file(folder, STATUS_SENT)).st_mtime
    except FileNotFoundError:
        return
    if 0 <= age_seconds < STATUS_EVERY_SECONDS:
        time.sleep(STATUS_EVERY_SECONDS - age_seconds)


def _post(connection: Connection, path: str, body: bytes, headers: dict[str, str]) -> tuple[int, str]:
    parts = urlsplit(connection.url)
    port = parts.port
    client = (
        http.client.HTTPSConnection(
            parts.hostname or "", port, timeout=TIMEOUT_SECONDS, context=ssl.create_default_context()
        )
        if parts.scheme == "https"
        else http.client.HTTPConnection(parts.hostname or "", port, timeout=TIMEOUT_SECONDS)
    )
    try:
        said = {"Authorization": f"Bearer {connection.key}", "Content-Type": "application/x-ndjson", **headers}
        client.request("POST", parts.path + path, body, said)
        response = client.getresponse()
        return response.status, response.read(300).decode("utf-8", "replace")
    finally:
        client.close()


@contextmanager
def hold_lock(path: str) -> Iterator[bool]:
    """Kept by the kernel as long as this process lives: a killed sender leaves nothing to clean up."""
    make_folder(os.path.dirname(path))
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        yield False
    else:
        yield True
    finally:
        os.close(descriptor)

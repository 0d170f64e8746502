"""The folder on a developer's machine that the programs of a coding agent share: where to send, what waits, what went
wrong. Standard library alone, and little of it: a client waits for whoever imports this.
"""

import json
import os
import time
from typing import Any, NamedTuple

CONNECTION = "connection.json"
PROBLEMS = "problems.log"
_PROBLEMS_BYTES = 64 * 1024


class Connection(NamedTuple):
    """A server, and the key that may send to it."""

    url: str
    key: str


def find_folder() -> str:
    """PLIMSOLL_CLIENT_FOLDER, or the place for a user's state."""
    told = os.environ.get("PLIMSOLL_CLIENT_FOLDER", "").strip()
    if told:
        return os.path.expanduser(told)  # pathlib costs ten milliseconds
    state = os.environ.get("XDG_STATE_HOME", "").strip()
    home = os.path.expanduser("~")
    return os.path.join(state or os.path.join(home, ".local", "state"), "plimsoll")


def name_file(folder: str, name: str) -> str:
    return os.path.join(folder, name)


def make_folder(folder: str) -> None:
    os.makedirs(folder, mode=0o700, exist_ok=True)


def read_json(path: str) -> dict[str, Any]:
    """The object in a file; empty where there is none, or something else."""
    try:
        with open(path, "rb") as file:
            told = json.loads(file.read())
    except (OSError, ValueError, RecursionError):
        return {}
    return told if isinstance(told, dict) else {}


def write_file(path: str, data: bytes) -> None:
    """Whole or not at all, for its owner alone."""
    fresh = f"{path}.new-{os.getpid()}"
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
        os.replace(fresh, path)
    except OSError:
        os.unlink(fresh)
        raise


def read_connection(folder: str) -> Connection | None:
    """What the environment says goes before what `plimsoll connect` wrote; None where nobody said where to send."""
    kept = read_json(name_file(folder, CONNECTION))
    url = os.environ.get("PLIMSOLL_URL", "").strip() or kept.get("url")
    key = os.environ.get("PLIMSOLL_KEY", "").strip() or kept.get("key")
    if not isinstance(url, str) or not isinstance(key, str) or not url or not key:
        return None
    return Connection(url.rstrip("/"), key)


def note_problem(folder: str, what: str) -> None:
    """For the person who wonders why nothing arrives: the client that waits must not hear of it."""
    path = name_file(folder, PROBLEMS)
    line = f"{time.strftime('%Y-%m-%d %H:%M:%S')} {what[:500]}\n".encode("utf-8", "replace")
    try:
        make_folder(folder)
        is_full = os.path.exists(path) and os.path.getsize(path) > _PROBLEMS_BYTES
        flags = os.O_TRUNC if is_full else os.O_APPEND
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | flags, 0o600)
    except OSError:
        return  # no place to write to: nobody is left to tell
    try:
        os.write(descriptor, line)
    finally:
        os.close(descriptor)

"""What a machine has read but no server has taken yet, and how far each file was read: one small file on disk.

A batch and the places behind it are written together, so a kill leaves both or neither.
"""

import os
import sqlite3
from collections.abc import Mapping
from contextlib import contextmanager
from dataclasses import astuple, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING

from dashboard.ingest.file_tail import Place

if TYPE_CHECKING:
    from collections.abc import Iterator

LARGEST_WAITING_BYTES = 64 * 1024 * 1024  # then reading waits: the transcripts themselves are kept by their client
LARGEST_REFUSED_BYTES = 64 * 1024 * 1024  # then the oldest go: they can be read and sent again with --again
_PLACE_COLUMNS = tuple(field.name for field in fields(Place))
_SCHEMA = f"""
CREATE TABLE IF NOT EXISTS place (path BLOB PRIMARY KEY, is_read INTEGER, {", ".join(_PLACE_COLUMNS)}) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS batch (
    id INTEGER PRIMARY KEY AUTOINCREMENT, body BLOB NOT NULL, lines INTEGER NOT NULL, refusal TEXT NOT NULL DEFAULT ''
);
CREATE TABLE IF NOT EXISTS target (store TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS reader (version INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS redaction (version INTEGER NOT NULL);
"""
_REMOVE_OLD_REFUSED = """
DELETE FROM batch WHERE id IN (
    SELECT id FROM (
        SELECT id, sum(length(body)) OVER (ORDER BY id DESC) AS bytes_since FROM batch WHERE refusal <> ''
    ) WHERE bytes_since > ?
) RETURNING lines
"""


@dataclass(frozen=True, slots=True)
class KnownFile:
    place: Place
    is_read: bool = False  # nothing was left to read at `place`


@dataclass(frozen=True, slots=True)
class Waiting:
    """A batch that no server has taken yet; `body` is packed and compressed."""

    number: int
    body: bytes
    line_count: int


@dataclass(frozen=True, slots=True)
class Backlog:
    batch_count: int
    size_bytes: int
    refused_count: int

    @property
    def is_full(self) -> bool:
        return self.size_bytes >= LARGEST_WAITING_BYTES


def _name_team(store: str) -> str:
    """What follows the slash names the backup that a team's database was put back from."""
    return store.partition("/")[0]


class Outbox:
    def __init__(self, path: Path) -> None:
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))  # before SQLite makes it for everybody
        self._connection = sqlite3.connect(path, isolation_level=None)
        # What was sent must not stay on disk, and the file must not stay as large as it once was.
        self._connection.executescript(
            "PRAGMA auto_vacuum=FULL; PRAGMA secure_delete=ON; PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;"
        )
        self._connection.executescript(_SCHEMA)

    def close(self) -> None:
        self._connection.close()

    def aim_at(self, store: str) -> None:
        """For another database than before everything is read again. What waits was meant for the other one, and is
        kept where that one went back to a backup: the transcripts it was read from may be gone."""
        known = self._connection.execute("SELECT store FROM target").fetchone()
        if known is not None and known[0] == store:
            return
        with self._together():
            self._connection.execute("DELETE FROM place")
            if known is not None and _name_team(known[0]) != _name_team(store):
                self._connection.execute("DELETE FROM batch")
            self._connection.execute("DELETE FROM target")
            self._connection.execute("INSERT INTO target VALUES (?)", (store,))

    def use_reader(self, version: int) -> None:
        """What an earlier version of the reader read is read and sent once more."""
        known = self._connection.execute("SELECT max(version) FROM reader").fetchone()[0]
        if known is not None and known >= version:
            return
        with self._together():
            self._connection.execute("DELETE FROM place")
            self._connection.execute("DELETE FROM reader")
            self._connection.execute("INSERT INTO reader VALUES (?)", (version,))

    def use_redaction(self, version: int) -> bool:
        """What was read by other redaction rules is read and sent once more; whether it is."""
        known = self._connection.execute("SELECT max(version) FROM redaction").fetchone()[0] or 0
        if known == version:
            return False
        with self._together():
            self._connection.execute("DELETE FROM place")
            self._connection.execute("DELETE FROM redaction")
            self._connection.execute("INSERT INTO redaction VALUES (?)", (version,))
        return True

    def forget_places(self) -> None:
        """Everything is read and sent once more."""
        self._connection.execute("DELETE FROM place")

    def load_files(self) -> dict[str, KnownFile]:
        rows = self._connection.execute(f"SELECT path, is_read, {', '.join(_PLACE_COLUMNS)} FROM place")  # noqa: S608
        return {os.fsdecode(path): KnownFile(Place(*place), bool(is_read)) for path, is_read, *place in rows}

    def keep(self, body: bytes, line_count: int, files: Mapping[str, KnownFile]) -> None:
        """A batch (empty: there was nothing to send) and the places behind its last lines."""
        columns = ", ".join("?" * (2 + len(_PLACE_COLUMNS)))
        rows = [(os.fsencode(path), known.is_read, *astuple(known.place)) for path, known in files.items()]
        with self._together():
            if body:
                self._connection.execute("INSERT INTO batch (body, lines) VALUES (?, ?)", (body, line_count))
            self._connection.executemany(f"INSERT OR REPLACE INTO place VALUES ({columns})", rows)  # noqa: S608

    def find_next(self) -> Waiting | None:
        row = self._connection.execute(
            "SELECT id, body, lines FROM batch WHERE refusal = '' ORDER BY id LIMIT 1"
        ).fetchone()
        return Waiting(*row) if row else None

    def remove(self, waiting: Waiting) -> None:
        self._connection.execute("DELETE FROM batch WHERE id = ?", (waiting.number,))

    def replace(self, waiting: Waiting, parts: list[tuple[bytes, int]]) -> None:
        """One batch by several smaller ones."""
        with self._together():
            self.remove(waiting)
            self._connection.executemany("INSERT INTO batch (body, lines) VALUES (?, ?)", parts)

    def set_aside(self, waiting: Waiting, reason: str) -> int:
        """Refused for good, and kept: a newer server, or a newer program here, may know what to do with it. The lines
        of older ones that had to go for it."""
        with self._together():
            self._connection.execute("UPDATE batch SET refusal = ? WHERE id = ?", (reason, waiting.number))
            gone = self._connection.execute(_REMOVE_OLD_REFUSED, (LARGEST_REFUSED_BYTES,)).fetchall()
        return sum(line_count for (line_count,) in gone)

    def try_again(self) -> None:
        """What was refused once, once more."""
        self._connection.execute("UPDATE batch SET refusal = ''")

    def measure(self) -> Backlog:
        """`size_bytes` of what waits: what was refused must not keep anything else from being read."""
        counts = "coalesce(sum(refusal = ''), 0), coalesce(sum(length(body) * (refusal = '')), 0), count(*)"
        count, size_bytes, both = self._connection.execute(f"SELECT {counts} FROM batch").fetchone()  # noqa: S608
        return Backlog(count, size_bytes, both - count)

    @contextmanager
    def _together(self) -> "Iterator[None]":
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._connection.execute("ROLLBACK")
            raise
        self._connection.execute("COMMIT")

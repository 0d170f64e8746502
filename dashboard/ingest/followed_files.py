"""How far each followed file was read, kept in the database over restarts."""

import os
from collections.abc import Iterable
from dataclasses import dataclass, replace
from hashlib import sha256

from django.utils import timezone

from compaction.timeline.observations import READING_VERSION
from dashboard.ingest.file_tail import Place
from dashboard.models import FollowedFile, Team

LONGEST_PATH = 4096  # as the model has it
NAMED_AT_ONCE = 500  # SQLite takes some thousand variables in one statement


@dataclass(frozen=True, slots=True)
class OpenLine:
    """The last line of a file where it has no line end. Whether it was read: complete JSON is, once nobody writes."""

    size_bytes: int = 0
    is_read: bool = False


NO_OPEN_LINE = OpenLine()


@dataclass(frozen=True)
class Kept:
    """A file's row."""

    number: int  # its primary key: what log lines call it
    path: str
    place: Place
    problem_count: int = 0
    is_gone: bool = False
    open_line: OpenLine = NO_OPEN_LINE
    is_outdated: bool = False  # read by an earlier version of the reader


def load_files(team: Team) -> dict[str, Kept]:
    """By the digest of the path; a team may have thousands."""
    rows = FollowedFile.objects.filter(team=team)
    return {
        row.path_digest: Kept(
            row.pk,
            row.path,
            _place_of(row),
            row.problem_count,
            is_gone=row.gone_at is not None,
            open_line=OpenLine(row.open_line_bytes, row.is_open_line_read),
            is_outdated=row.reading_version < READING_VERSION,
        )
        for row in rows.iterator()
    }


def _place_of(row: FollowedFile) -> Place:
    return Place(
        device=row.device,
        inode=int(row.inode),
        size_bytes=row.size_bytes,
        modified_ns=row.modified_ns,
        offset=row.offset,
        line_count=row.line_count,
        mark=row.head_digest,
    )


def list_numbers(team: Team) -> set[int]:
    return set(FollowedFile.objects.filter(team=team).values_list("pk", flat=True))


def keep_place(team: Team, path: str, place: Place, *, kept: Kept | None, problem_count: int = 0) -> Kept | None:
    """Called only after everything before the place was taken in: a crash in between means reading twice.

    None: the row was taken away, so that the file is read again from its first byte."""
    columns = {
        "device": place.device,
        "inode": place.inode,
        "size_bytes": place.size_bytes,
        "modified_ns": place.modified_ns,
        "offset": place.offset,
        "line_count": place.line_count,
        "head_digest": place.mark,
        "head_bytes": place.mark_bytes,
        "open_line_bytes": 0,  # `keep_open_line` follows when the end of the file is reached
        "is_open_line_read": False,
        "problem_count": problem_count,
        "reading_version": READING_VERSION,
        "read_at": timezone.now(),
        "gone_at": None,
    }
    if kept:
        is_known = FollowedFile.objects.filter(pk=kept.number).update(**columns)
        return Kept(kept.number, kept.path, place, problem_count) if is_known else None
    # The first time, or another follower or an import made it.
    columns["path"] = show_path(path)[:LONGEST_PATH]
    row, _ = FollowedFile.objects.update_or_create(team=team, path_digest=digest_path(path), defaults=columns)
    return Kept(row.pk, row.path, place, problem_count)


def keep_open_line(kept: Kept, open_line: OpenLine) -> Kept:
    """Store the state of the last line, unless it is stored already. Only the health page uses it."""
    if kept.open_line == open_line:
        return kept
    columns = {"open_line_bytes": open_line.size_bytes, "is_open_line_read": open_line.is_read}
    FollowedFile.objects.filter(pk=kept.number).update(**columns)
    return replace(kept, open_line=open_line)


def note_gone(numbers: Iterable[int]) -> None:
    """Deleted or moved away; what was read of them stays."""
    left = list(numbers)
    while left:
        FollowedFile.objects.filter(pk__in=left[:NAMED_AT_ONCE], gone_at=None).update(gone_at=timezone.now())
        del left[:NAMED_AT_ONCE]


def digest_path(path: str) -> str:
    return sha256(os.fsencode(path)).hexdigest()


def show_path(path: str) -> str:
    """As text any database takes: a name may hold bytes that are no characters."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")

"""How far each followed file was read, kept in the database over restarts."""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256

from django.utils import timezone

from dashboard.ingest.file_tail import Place
from dashboard.models import FollowedFile, Team

LONGEST_PATH = 4096  # as the model has it
NAMED_AT_ONCE = 500  # SQLite takes some thousand variables in one statement


@dataclass(frozen=True)
class Kept:
    """A file's row."""

    number: int  # its primary key: what log lines call it
    path: str
    place: Place
    problem_count: int = 0
    is_gone: bool = False


def load_files(team: Team) -> dict[str, Kept]:
    """By the digest of the path; a team may have thousands."""
    rows = FollowedFile.objects.filter(team=team)
    return {
        row.path_digest: Kept(row.pk, row.path, _place_of(row), row.problem_count, row.gone_at is not None)
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
        "problem_count": problem_count,
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

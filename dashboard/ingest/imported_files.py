"""Which files were read to which end, remembered in bulk: an import of what has not changed reads nothing."""

from collections.abc import Iterable, Sequence

from django.utils import timezone

from dashboard.ingest.file_tail import Place
from dashboard.ingest.followed_files import LONGEST_PATH, NAMED_AT_ONCE, digest_path, show_path
from dashboard.ingest.looks import FileLook, NextLook
from dashboard.ingest.transcript_folders import FoundFile
from dashboard.models import FollowedFile, Team

PLACE_COLUMNS = ("device", "inode", "size_bytes", "modified_ns", "offset", "line_count", "head_digest")


def find_unread(team: Team, files: Sequence[FoundFile]) -> list[NextLook]:
    """A look for every file that is new or was touched since it was read to its very end.

    Rows stay plain values: places of thousands of files that nobody will open would take longer than all the rest.
    """
    digests = [digest_path(file.path) for file in files]
    rows = FollowedFile.objects.filter(team=team)
    if len(digests) <= NAMED_AT_ONCE:
        rows = rows.filter(path_digest__in=digests)
    known = {digest: row for digest, *row in rows.values_list("path_digest", *PLACE_COLUMNS)}
    looks = []
    for digest, file in zip(digests, files, strict=True):
        row = known.get(digest)
        if row is None:
            looks.append(NextLook(file, Place()))
        elif row[1:5] != [file.inode, file.size_bytes, file.modified_ns, file.size_bytes]:
            looks.append(NextLook(file, Place(row[0], int(row[1]), *row[2:])))
    return looks


def keep_looks(team: Team, looks: Iterable[FileLook]) -> None:
    """After their lines were stored: a crash in between means reading twice, which changes nothing."""
    now = timezone.now()
    rows = [
        FollowedFile(
            team=team,
            path_digest=digest_path(look.file.path),
            path=show_path(look.file.path)[:LONGEST_PATH],
            device=look.place.device,
            inode=look.place.inode,
            size_bytes=look.place.size_bytes,
            modified_ns=look.place.modified_ns,
            offset=look.place.offset,
            line_count=look.place.line_count,
            head_digest=look.place.mark,
            head_bytes=look.place.mark_bytes,
            problem_count=look.problem_count,
            read_at=now,
            gone_at=None,
        )
        for look in looks
    ]
    changing = ("problem_count", "read_at", "gone_at", "head_bytes", *PLACE_COLUMNS)
    FollowedFile.objects.bulk_create(
        rows, update_conflicts=True, unique_fields=["team", "path_digest"], update_fields=changing
    )

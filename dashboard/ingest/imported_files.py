"""Which files were read to which end, remembered in bulk: an import of what has not changed reads nothing."""

from collections.abc import Iterable, Sequence

from django.utils import timezone

from dashboard.ingest.decoding import FileLook
from dashboard.ingest.file_tail import Place
from dashboard.ingest.followed_files import LONGEST_PATH, NAMED_AT_ONCE, digest_path, show_path
from dashboard.ingest.transcript_folders import FoundFile
from dashboard.ingest.transcripts import name_session
from dashboard.models import FollowedFile, Team

PLACE_COLUMNS = ("device", "inode", "size_bytes", "modified_ns", "offset", "line_count", "head_digest")


def load_places(team: Team, files: Sequence[FoundFile]) -> dict[str, Place]:
    """How far these files were read, by path. Values alone: rows as objects would take longer than all the rest."""
    paths = {digest_path(file.path): file.path for file in files}
    rows = FollowedFile.objects.filter(team=team)
    if len(paths) <= NAMED_AT_ONCE:
        rows = rows.filter(path_digest__in=list(paths))
    return {
        paths[digest]: Place(device, int(inode), *others)
        for digest, device, inode, *others in rows.values_list("path_digest", *PLACE_COLUMNS)
        if digest in paths
    }


def is_unchanged(file: FoundFile, known: Place) -> bool:
    """Read to the very end, and not touched since."""
    return (
        known.size_bytes == known.offset == file.size_bytes
        and known.modified_ns == file.modified_ns
        and known.inode == file.inode
    )


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
            session_id_hint=name_session(look.file.path)[0] or "",
            read_at=now,
            gone_at=None,
        )
        for look in looks
    ]
    changing = ("problem_count", "session_id_hint", "read_at", "gone_at", "head_bytes", *PLACE_COLUMNS)
    FollowedFile.objects.bulk_create(
        rows, update_conflicts=True, unique_fields=["team", "path_digest"], update_fields=changing
    )

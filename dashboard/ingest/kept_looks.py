"""Remembering in bulk how far files were read."""

from collections.abc import Iterable

from django.db import transaction
from django.utils import timezone

from compaction.timeline.observations import READING_VERSION
from dashboard.ingest.followed_files import LONGEST_PATH, digest_path, show_path
from dashboard.ingest.imported_files import PLACE_COLUMNS
from dashboard.ingest.looks import FileLook
from dashboard.ingest.picture.spelling import spell_rows
from dashboard.ingest.rows import upsert_rows
from dashboard.models import FollowedFile, Team

_PLACE_FIELDS = ("device", "inode", "size_bytes", "modified_ns", "offset", "line_count", "mark", "mark_bytes")
_CHANGING = (
    *PLACE_COLUMNS,
    "head_bytes",
    "open_line_bytes",
    "is_open_line_read",
    "problem_count",
    "reading_version",
    "read_at",
    "gone_at",
)


def keep_looks(team: Team, looks: Iterable[FileLook]) -> None:
    """After their lines were stored: a crash in between means reading twice, which changes nothing."""
    now = timezone.now()
    rows = [
        (
            team.pk,
            digest_path(look.file.path),
            show_path(look.file.path)[:LONGEST_PATH],
            *(getattr(look.place, name) for name in _PLACE_FIELDS),
            look.open_line_bytes,
            look.is_open_line_read,
            look.problem_count,
            READING_VERSION,
            now,
            None,
        )
        for look in looks
    ]
    columns, unique = ("team_id", "path_digest", "path", *_CHANGING), ("team_id", "path_digest")
    with transaction.atomic():  # else SQLite commits every row by itself
        upsert_rows(FollowedFile, columns, spell_rows(rows), unique=unique, updated=_CHANGING)

"""Which files were read to which end: an import of what has not changed reads nothing, and loads little."""

from collections.abc import Sequence

from compaction.timeline.observations import READING_VERSION
from dashboard.ingest.file_tail import Place
from dashboard.ingest.followed_files import NAMED_AT_ONCE, digest_path
from dashboard.ingest.looks import NextLook
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
    rows = rows.filter(reading_version__gte=READING_VERSION)  # what an earlier reader read is read again
    known = {digest: row for digest, *row in rows.values_list("path_digest", *PLACE_COLUMNS)}
    looks = []
    for digest, file in zip(digests, files, strict=True):
        row = known.get(digest)
        if row is None:
            looks.append(NextLook(file, Place()))
        elif row[1:5] != [file.inode, file.size_bytes, file.modified_ns, file.size_bytes]:
            looks.append(NextLook(file, Place(row[0], int(row[1]), *row[2:])))
    return looks

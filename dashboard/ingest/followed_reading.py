"""One look at one followed file: what is new in it is handed on, and only then its place is kept."""

import logging
import os
import time
from dataclasses import dataclass, replace
from enum import Enum, auto

from compaction.errors import AgentMetaUnreadable
from compaction.transcripts.subagents import read_agent_meta
from dashboard.ingest.file_tail import Look, Place, take_look
from dashboard.ingest.follow_delivery import Delivery
from dashboard.ingest.followed_files import Kept, OpenLine, keep_open_line, keep_place, show_path
from dashboard.ingest.intake import Origin, count_drops
from dashboard.ingest.quiet_lines import is_young, read_quiet_line
from dashboard.ingest.transcript_folders import FoundFile, opened_file
from dashboard.ingest.transcripts import TOO_LONG

LARGEST_META_BYTES = 1024 * 1024

log = logging.getLogger(__name__)


class Next(Enum):
    """What a look leaves to do."""

    MORE = auto()  # there is more in the file
    WHEN_QUIET = auto()  # it was written to a moment ago
    NOTHING = auto()


@dataclass
class Followed:
    """One file, as long as this process lives."""

    found: FoundFile
    place: Place
    kept: Kept | None
    is_read: bool  # nothing was left to read at `place`
    refusal: str = ""  # why it cannot be read; counted once
    failure_count: int = 0

    @property
    def number(self) -> int:
        """What log lines call it; 0 before anything of it was read."""
        return self.kept.number if self.kept else 0

    @property
    def name(self) -> str:
        return show_path(self.found.relative)

    @property
    def is_set_aside(self) -> bool:
        return bool(self.refusal or self.failure_count)

    def is_as_read(self) -> bool:
        seen = (self.found.inode, self.found.size_bytes, self.found.modified_ns)
        return self.is_read and seen == (self.place.inode, self.place.size_bytes, self.place.modified_ns)

    def start_again(self) -> None:
        """From its first byte, as a file that nobody knows."""
        self.place, self.kept, self.is_read = Place(), None, False


def start_following(found: FoundFile, kept: Kept | None) -> Followed:
    if kept is None:
        return Followed(found, Place(), None, is_read=False)
    if kept.is_outdated:
        return Followed(found, Place(), replace(kept, problem_count=0), is_read=False)
    return Followed(found, kept.place, kept, is_read=not kept.is_gone and not kept.place.half_line_bytes)


def read_on(followed: Followed, origin: Origin, delivery: Delivery) -> Next:
    """Raises OSError for a file that cannot be read, and whatever the delivery raises."""
    if followed.found.is_meta:
        return _read_meta(followed, origin, delivery)
    with opened_file(followed.found.root, followed.found.relative) as descriptor:
        look = take_look(descriptor, followed.place, now_ns=time.time_ns())
        half_line = b"" if look.has_more else read_quiet_line(descriptor, look.place)
    if not _deliver(followed, look, origin, delivery):
        followed.start_again()
        return Next.MORE
    if half_line:
        # The place stays before it: with its ending, or another object behind it, it is handed on once more.
        delivery.take_lines(followed.name, half_line + b"\n", first_line_number=look.place.line_count + 1)
    if followed.kept and not look.has_more:
        followed.kept = keep_open_line(followed.kept, OpenLine(look.place.half_line_bytes, is_read=bool(half_line)))
    followed.is_read = not look.has_more
    if look.has_more:
        return Next.MORE
    return Next.WHEN_QUIET if is_young(look.place.modified_ns) else Next.NOTHING


def _deliver(followed: Followed, look: Look, origin: Origin, delivery: Delivery) -> bool:
    """False when it was forgotten meanwhile that the file was read."""
    problem_count = followed.kept.problem_count if followed.kept and not look.is_again else 0
    if look.is_again:
        log.info("file is another one now: read from its start", extra={"file": followed.number})
    if look.too_long_bytes:
        count_drops(origin, {TOO_LONG: 1}, detail=f"{followed.name}, line {look.first_line_number}")
        problem_count += 1
    if look.data:
        problem_count += delivery.take_lines(followed.name, look.data, first_line_number=look.first_line_number)
    has_come_back = followed.kept is not None and followed.kept.is_gone
    if look.data or look.too_long_bytes or look.is_again or has_come_back:
        followed.kept = keep_place(
            origin.team, followed.found.path, look.place, kept=followed.kept, problem_count=problem_count
        )
        if followed.kept is None:
            return False
    followed.place = look.place
    return True


def _read_meta(followed: Followed, origin: Origin, delivery: Delivery) -> Next:
    with opened_file(followed.found.root, followed.found.relative) as descriptor:
        status = os.fstat(descriptor)
        data = os.pread(descriptor, LARGEST_META_BYTES, 0)
    try:
        meta = read_agent_meta(data)
    except AgentMetaUnreadable:
        if is_young(status.st_mtime_ns):
            return Next.WHEN_QUIET  # half of it may be on its way
        count_drops(origin, {"sub-agent description unreadable": 1}, detail=followed.name)
    else:
        delivery.take_agent_meta(followed.name, meta)
    size = status.st_size
    place = Place(status.st_dev, status.st_ino, size, status.st_mtime_ns, offset=size)
    followed.kept = keep_place(origin.team, followed.found.path, place, kept=followed.kept)
    if followed.kept is None:
        followed.start_again()
        return Next.MORE
    followed.place, followed.is_read = place, True
    return Next.WHEN_QUIET if is_young(status.st_mtime_ns) else Next.NOTHING


def forget_search(place: Place) -> Place:
    """For a look that takes nothing for granted."""
    return replace(place, searched_to=0)

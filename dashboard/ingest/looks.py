"""A look at a file: which one is next, and what came of it. No Django, and nothing that takes long to load."""

from dataclasses import dataclass

from dashboard.ingest.file_tail import Place
from dashboard.ingest.transcript_folders import FoundFile

# Sessions with larger files are drawn by the one who writes. Memory is this much, times what decoding makes of it,
# times the processes.
PIECE_BYTES = 8 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class NextLook:
    """Which file to read on, and from where."""

    file: FoundFile
    known: Place

    @property
    def waiting_bytes(self) -> int:
        return min(PIECE_BYTES, max(0, self.file.size_bytes - self.known.offset))


@dataclass(frozen=True, slots=True)
class FileLook:
    """What came of a look; `refusal` says why the file could not be read."""

    file: FoundFile
    place: Place
    size_bytes: int = 0
    has_more: bool = False
    is_cut: bool = False  # the file ends in the middle of a line
    is_open_line_read: bool = False  # the last line has no line end, but is complete and among what was read
    problem_count: int = 0
    refusal: str = ""

    @property
    def open_line_bytes(self) -> int:
        return 0 if self.has_more else self.place.half_line_bytes

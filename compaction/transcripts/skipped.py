"""Lines that are no entries: kept, with the reason, so that a transcript can be written back whole."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from compaction.transcripts.entries import Entry


@dataclass(frozen=True, slots=True)
class SkippedLine:
    """A line, or the rest of one, that gave no entry."""

    kind: Literal["blank", "comment", "malformed", "too_long"]
    line_number: int
    offset: int
    raw: bytes
    reason: str = ""
    size_bytes: int = 0

    @property
    def is_problem(self) -> bool:
        """Something was lost that a person may want to know of."""
        return self.kind in ("malformed", "too_long")


Item: TypeAlias = Entry | SkippedLine

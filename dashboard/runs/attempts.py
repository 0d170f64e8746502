"""One request to a model as it is told to whoever keeps the books: answered or not, it may be paid for."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Protocol

from compaction.transcripts.entries import Usage

COUNT_PATH = "count"  # beside compaction.ports.Path: a request that only counts tokens


@dataclass(frozen=True, kw_only=True)
class AttemptReport:
    """`path` is fork, plain or count. Without a failure both its code and its sentence are empty.

    `usage` is what the API reported until the request ended, also when it ended badly.
    """

    path: str
    model: str
    at: datetime
    duration_seconds: float
    usage: Usage = field(default_factory=Usage)
    message_id: str = ""
    request_id: str = ""
    failure_code: str = ""
    failure_sentence: str = ""


NoteAttempt = Callable[[AttemptReport], None]


class Book(Protocol):
    """Whoever keeps the books: at most one request is in flight."""

    def open(self, *, path: str, model: str, most_usd: Decimal) -> None:
        """Before a request is sent. Raises CapReached where the day leaves no room for what it may cost."""

    def note(self, report: AttemptReport) -> None:
        """How the request ended."""

"""Events for the structured log and the store: ids, numbers and codes, never text of a conversation.

Names and fields are logged and stored: they never change.
"""

from dataclasses import dataclass, fields
from typing import ClassVar


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """An event in one thread of one session."""

    name: ClassVar[str] = ""
    session_id: str | None = None
    agent_id: str | None = None

    def to_fields(self) -> dict[str, object]:
        """Return the flat mapping that is logged: the event's name and its known values."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {"event": self.name} | {key: value for key, value in values.items() if value is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionCompleted(Event):
    """A compaction replaced the conversation. Token counts are sums over all requests for the summary."""

    name: ClassVar[str] = "compaction_completed"
    kind: str
    trigger: str
    original_turns: int
    summary_tokens: int
    tokens_saved: int
    files_restored: int
    duration_ms: int
    pre_tokens: int
    post_tokens: int
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_creation_tokens: int = 0
    total_tokens: int = 0
    fork_hit_percent: int | None = None
    is_recompaction: bool = False
    turns_since_previous: int | None = None
    previous_run_id: str | None = None
    line_tokens: int | None = None
    source: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryAnswered(Event):
    """A summariser answered. Unusable answers are billed too; `failure` is the code of their error."""

    name: ClassVar[str] = "summary_answered"
    path: str
    model: str | None = None
    message_id: str | None = None
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_creation_tokens: int = 0
    failure: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionFailed(Event):
    """A compaction ended without an outcome; `reason` is the code of its error."""

    name: ClassVar[str] = "compaction_failed"
    kind: str
    trigger: str
    reason: str
    pre_tokens: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MicroCompacted(Event):
    """Old tool results were cleared without a model call."""

    name: ClassVar[str] = "microcompact"
    kind: str
    tools_compacted: int
    attachments_cleared: int
    total_uncompacted_tokens: int
    tokens_after: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ThresholdExceeded(Event):
    """The result of a compaction still reaches the auto-compact threshold."""

    name: ClassVar[str] = "threshold_exceeded"
    post_tokens: int
    line_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheBreakSeen(Event):
    """A call rebuilt part of its cached prefix."""

    name: ClassVar[str] = "cache_break"
    message_id: str | None = None
    lost_tokens: int
    cause: str
    evidence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakerOpened(Event):
    """Automatic compaction of a thread stopped after several failures in a row."""

    name: ClassVar[str] = "breaker_opened"
    failures: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakerClosed(Event):
    """Automatic compaction of a thread is allowed again after a success."""

    name: ClassVar[str] = "breaker_closed"


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRestored(Event):
    """A file was restored after a compaction. Its path is in the outcome only."""

    name: ClassVar[str] = "file_restored"
    position: int
    tokens: int
    is_truncated: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class FileNotRestored(Event):
    """A file was not restored; `reason` is a code."""

    name: ClassVar[str] = "file_not_restored"
    position: int
    tokens: int
    reason: str

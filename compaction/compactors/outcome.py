"""The outcome of a compaction: what was kept, summarised, dropped and restored. It is put together in assembly."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from compaction.compactors.restore.items import RestoredItem
from compaction.events import Event
from compaction.ports import SummaryRoute
from compaction.transcripts.entries import Entry, Usage


class Trigger(StrEnum):
    """What started a run: a person, the auto-compact threshold (or a refused prompt), or an autonomous agent."""

    MANUAL = "manual"
    AUTO = "auto"
    AUTONOMOUS = "autonomous"

    @property
    def protocol_value(self) -> str:
        """The value in boundaries and hooks, which only have manual and auto."""
        return "manual" if self is Trigger.MANUAL else "auto"


class CompactorKind(StrEnum):
    """Which compactor made an outcome."""

    FULL = "full"
    FROM = "from"
    UP_TO = "up_to"
    SESSION_MEMORY = "session_memory"


@dataclass(frozen=True, slots=True)
class RecompactionInfo:
    """The previous run and the turns since, for the log. The caller, which counts turns, fills it in."""

    is_recompaction: bool = False
    turns_since_previous: int | None = None
    previous_run_id: str | None = None
    source: str | None = None


class EntryFate(StrEnum):
    """What a compaction did with an entry."""

    KEPT = "kept"
    SUMMARISED = "summarised"
    DROPPED = "dropped"
    ADDED = "added"


@dataclass(frozen=True, slots=True)
class EntryRecord:
    """One entry, what the compaction did with it, and its tokens (estimate without margin)."""

    uuid: str
    fate: EntryFate
    tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryCall:
    """One answered request for a summary, with its usage and its error code, if any."""

    route: SummaryRoute
    usage: Usage
    model: str | None = None
    message_id: str | None = None
    duration_seconds: float = 0.0
    failure: str | None = None


@dataclass(frozen=True, slots=True)
class Summary:
    """An accepted summary. The analysis is stored separately; `missing_sections` makes it incomplete.

    `block` is the signed block of a server that wrote the summary itself: it is sent back unchanged or not at all.
    """

    text: str
    analysis: str | None = None
    missing_sections: tuple[str, ...] = ()
    is_native: bool = False
    block: Mapping[str, object] | None = None
    label: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionOutcome:
    """A finished compaction. `entries` is everything the model sees afterwards, ready for a new transcript.

    Full and up_to: boundary, summary, kept, attachments, hook results; from: boundary, kept, summary, attachments,
    hook results. `kept` are the original entries; in `entries` only their parent links may differ.
    """

    kind: CompactorKind
    trigger: Trigger
    boundary: Entry
    summary_entry: Entry
    entries: tuple[Entry, ...]
    kept: tuple[Entry, ...]
    fates: tuple[EntryRecord, ...]
    restored: tuple[RestoredItem, ...]
    summary: Summary
    calls: tuple[SummaryCall, ...] = ()
    pre_tokens: int
    replaced_tokens: int
    prefix_tokens: int = 0
    threshold_tokens: int | None = None
    display_messages: tuple[str, ...] = ()
    events: tuple[Event, ...] = ()

    @property
    def expected_tokens(self) -> int:
        """Expected context of the next call: the new messages, and system and tools as far as they are known."""
        return self.replaced_tokens + self.prefix_tokens

    @property
    def is_above_threshold(self) -> bool:
        """Return whether the next call would reach the auto-compact threshold again."""
        return self.threshold_tokens is not None and self.expected_tokens >= self.threshold_tokens

    @property
    def tokens_saved(self) -> int:
        """Tokens before minus tokens after, at least 0."""
        return max(0, self.pre_tokens - self.expected_tokens)

    def list_uuids(self, fate: EntryFate) -> tuple[str, ...]:
        """Return the uuids of the entries with this fate, in order."""
        return tuple(record.uuid for record in self.fates if record.fate is fate)

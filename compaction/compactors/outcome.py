"""Outcomes: what a compaction kept, summarised, dropped and restored. Values only; they are put together in assembly.

Also the contract with restoration: Restored, RestoredItem and the callable that makes them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from compaction.events import Event
from compaction.ports import SummaryRoute
from compaction.transcripts.entries import Entry, Usage


class Trigger(StrEnum):
    """Who asked: a person, the auto line (a refused prompt included), or an agent that runs without a person."""

    MANUAL = "manual"
    AUTO = "auto"
    AUTONOMOUS = "autonomous"

    @property
    def written(self) -> str:
        """As boundaries and hooks name it: they know only manual and auto."""
        return "manual" if self is Trigger.MANUAL else "auto"


class CompactionKind(StrEnum):
    """Which compaction it was."""

    FULL = "full"
    FROM = "from"
    UP_TO = "up_to"
    SESSION_MEMORY = "session_memory"


class RestoredKind(StrEnum):
    """What came back, in the order in which it is put after the summary."""

    FILE = "file"
    TODOS = "todos"
    PLAN = "plan"
    PLAN_MODE = "plan_mode"
    SKILL = "skill"
    AGENT = "agent"
    TOOLS = "tools"
    AGENT_LISTING = "agent_listing"
    MCP_INSTRUCTIONS = "mcp_instructions"
    HOOK_RESULT = "hook_result"


class RestoredState(StrEnum):
    """How much of it came back."""

    RESTORED = "restored"
    TRUNCATED = "truncated"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class RestoredItem:
    """One thing that came back or did not. `tokens` is what it brings in; for a skipped one what it would have.

    `entry` is the line to append, without uuid and parent: assembly stamps both. `code` is the reason for the log,
    `reason` the same as a sentence for the page.
    """

    kind: RestoredKind
    name: str
    tokens: int
    state: RestoredState
    reason: str = ""
    code: str = ""
    entry: Entry | None = None


@dataclass(frozen=True, slots=True)
class RestoredContext:
    """Everything that was considered, in order."""

    items: tuple[RestoredItem, ...] = ()

    @property
    def entries(self) -> tuple[Entry, ...]:
        """The lines to append."""
        return tuple(item.entry for item in self.items if item.entry is not None)

    @property
    def tokens(self) -> int:
        """What came back in all."""
        return sum(item.tokens for item in self.items if item.state is not RestoredState.SKIPPED)


class Restore(Protocol):
    """Finds what has to come back. Budgets, file source and switches are bound beforehand."""

    def __call__(self, entries: Sequence[Entry], kept: Sequence[Entry], *, now: datetime) -> RestoredContext:
        """`entries` is the whole thread before the compaction, `kept` what stays visible word for word."""


def restore_nothing(entries: Sequence[Entry], kept: Sequence[Entry], *, now: datetime) -> RestoredContext:  # noqa: ARG001
    """A Restore that brings nothing back."""
    return RestoredContext()


@dataclass(frozen=True, slots=True)
class ChainPosition:
    """Where a run stands in a row of compactions, for the log; filled in by whoever counts turns."""

    is_recompaction: bool = False
    turns_since_previous: int | None = None
    previous_run_id: str | None = None
    source: str | None = None


class Fate(StrEnum):
    """What became of an entry."""

    KEPT = "kept"
    SUMMARISED = "summarised"
    DROPPED = "dropped"
    ADDED = "added"


@dataclass(frozen=True, slots=True)
class EntryFate:
    """One entry, what became of it, and the tokens it brought (estimate without margin)."""

    uuid: str
    fate: Fate
    tokens: int


@dataclass(frozen=True, slots=True)
class SummaryCall:
    """One request that was answered: how it was asked, what it used, and the error code it ended with, if any."""

    path: SummaryRoute
    usage: Usage
    model: str | None = None
    message_id: str | None = None
    duration_seconds: float = 0.0
    failure: str | None = None


@dataclass(frozen=True, slots=True)
class Summary:
    """The summary as it was accepted. The analysis is kept apart; `missing_sections` makes it incomplete.

    `block` is the signed block of a server that made the summary itself: it goes back as it came, or not at all.
    """

    text: str
    analysis: str | None = None
    missing_sections: tuple[str, ...] = ()
    is_native: bool = False
    block: Mapping[str, object] | None = None
    label: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionOutcome:
    """A finished compaction. `entries` is all the model sees from here on, ready for a new transcript.

    Full and up_to: boundary, summary, kept, attachments, hook results; from: boundary, kept, summary, attachments,
    hook results. `kept` are the entries as they came in; in `entries` only their parent links may differ.
    """

    kind: CompactionKind
    trigger: Trigger
    boundary: Entry
    summary_entry: Entry
    entries: tuple[Entry, ...]
    kept: tuple[Entry, ...]
    fates: tuple[EntryFate, ...]
    restored: tuple[RestoredItem, ...]
    summary: Summary
    calls: tuple[SummaryCall, ...] = ()
    pre_tokens: int
    replaced_tokens: int
    prefix_tokens: int = 0
    line_tokens: int | None = None
    display_messages: tuple[str, ...] = ()
    events: tuple[Event, ...] = ()

    @property
    def expected_tokens(self) -> int:
        """The context of the next call as far as it is known: what stands now, and system and tools."""
        return self.replaced_tokens + self.prefix_tokens

    @property
    def is_above_line(self) -> bool:
        """Whether the next call would be at or above the auto line again."""
        return self.line_tokens is not None and self.expected_tokens >= self.line_tokens

    @property
    def tokens_saved(self) -> int:
        """Before less after, never below zero."""
        return max(0, self.pre_tokens - self.expected_tokens)

    def list_uuids(self, fate: Fate) -> tuple[str, ...]:
        """The entries with this fate, in order."""
        return tuple(item.uuid for item in self.fates if item.fate is fate)

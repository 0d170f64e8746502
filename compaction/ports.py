"""Ports of the library: a summariser, hooks, a source of files, and a monitor of a run.

Protocols, their values, and implementations that do nothing. No network, no waiting, no files.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from compaction.events import Event
from compaction.transcripts.entries import Entry, Usage

KEEP_ALIVE_SECONDS = 30  # the client's interval between calls of Monitor.keep_alive while a summary is written


class Stage(StrEnum):
    """Stages of a run, in order. The last three are final."""

    QUEUED = "queued"
    PRE_HOOKS = "pre-hooks"
    PREPARING = "preparing"
    SUMMARISING = "summarising"
    VALIDATING = "validating"
    RESTORING = "restoring"
    POST_HOOKS = "post-hooks"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


class Variant(StrEnum):
    """What a summary covers: everything, everything from a message on, or everything up to a message."""

    FULL = "full"
    FROM = "from"
    UP_TO = "up_to"


class SummaryRoute(StrEnum):
    """How a summary is requested: on the parent request's cached prefix, or as a separate request."""

    FORK = "fork"
    PLAIN = "plain"


class Monitor(Protocol):
    """Receives the stages and events of a run, and may cancel it."""

    def enter_stage(self, stage: Stage) -> None:
        """Receive the stage that begins."""

    def keep_alive(self, output_tokens: int) -> None:
        """Receive the number of output tokens while the summary is written, 0 before the first."""

    def record_event(self, event: Event) -> None:
        """Record an event in the structured log."""

    def is_cancelled(self) -> bool:
        """Return whether the run should stop."""


class SilentMonitor:
    """A monitor that records nothing and never cancels."""

    def enter_stage(self, stage: Stage) -> None:
        """Do nothing."""

    def keep_alive(self, output_tokens: int) -> None:
        """Do nothing."""

    def record_event(self, event: Event) -> None:
        """Do nothing."""

    def is_cancelled(self) -> bool:
        """Return False."""
        return False


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryRequest:
    """One request for a summary.

    A summariser with a model sends `body`; one without reads `entries`, the entries to summarise. `missing_sections`
    is set on the second request, which asks only for these. `instructions` are those of the user and of hooks; the
    prompt already contains them.
    """

    variant: Variant
    route: SummaryRoute
    entries: tuple[Entry, ...]
    prompt: str
    body: Mapping[str, object]
    missing_sections: tuple[str, ...] = ()
    instructions: str | None = None

    @property
    def model(self) -> str | None:
        """The model of the request, if it names one."""
        model = self.body.get("model")
        return model if isinstance(model, str) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryAnswer:
    """The answer to a request for a summary.

    `is_native` marks a summary written by the server itself, without the nine sections; `block` is the server's signed
    block, to be sent back unchanged.
    """

    text: str
    stop_reason: str | None
    usage: Usage = field(default_factory=Usage)
    model: str | None = None
    message_id: str | None = None
    duration_seconds: float = 0.0
    is_native: bool = False
    block: Mapping[str, object] | None = None
    label: str | None = None


class Summarizer(Protocol):
    """Writes a summary.

    Raises PromptTooLong when the request does not fit, SummarizerUnavailable when there was no answer, and
    CompactionCancelled when the monitor is cancelled. Calls `monitor.keep_alive` while it waits.
    """

    def summarize(self, request: SummaryRequest, monitor: Monitor) -> SummaryAnswer:
        """Return the answer to one request. Every call is one attempt."""


@dataclass(frozen=True, slots=True)
class PreCompactCall:
    """Input of PreCompact hooks."""

    trigger: str
    custom_instructions: str | None
    session_id: str | None


@dataclass(frozen=True, slots=True)
class PreCompactAnswer:
    """Output of one PreCompact hook. Every part is optional."""

    instructions: str | None = None
    display_message: str | None = None
    is_blocking: bool = False
    block_reason: str | None = None


@dataclass(frozen=True, slots=True)
class PostCompactCall:
    """Input of SessionStart and PostCompact hooks."""

    trigger: str
    session_id: str | None
    summary: str


@dataclass(frozen=True, slots=True)
class HookResult:
    """Text that a hook adds for the model."""

    hook: str
    text: str


class Hooks(Protocol):
    """The hooks around a compaction, in the client's order: PreCompact, SessionStart (compact), PostCompact."""

    def run_pre_compact(self, call: PreCompactCall, /) -> Sequence[PreCompactAnswer]:
        """Return the answers of all PreCompact hooks, in order."""

    def run_session_start(self, call: PostCompactCall, /) -> Sequence[HookResult]:
        """Return the texts of SessionStart hooks for a session that continues from a summary."""

    def run_post_compact(self, call: PostCompactCall, /) -> Sequence[HookResult]:
        """Return the texts of PostCompact hooks."""


class NoHooks:
    """Hooks of a run without any."""

    def run_pre_compact(self, _call: PreCompactCall, /) -> Sequence[PreCompactAnswer]:
        """Return no answers."""
        return ()

    def run_session_start(self, _call: PostCompactCall, /) -> Sequence[HookResult]:
        """Return no texts."""
        return ()

    def run_post_compact(self, _call: PostCompactCall, /) -> Sequence[HookResult]:
        """Return no texts."""
        return ()


@dataclass(frozen=True, slots=True)
class FreshFile:
    """The current content of a file."""

    text: str
    modified_at: datetime | None = None


class FileSource(Protocol):
    """Reads files where the operator allows it. A path from a transcript is untrusted input."""

    def read_file(self, path: str, *, limit_bytes: int) -> FreshFile | None:
        """Return at most `limit_bytes` of the file, or None for any failure. Without a source no file is opened."""

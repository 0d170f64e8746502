"""The outside as this library sees it: a summariser, hooks, a source of files, and who watches a run.

Only protocols, the values that pass through them, and the answers that do nothing. No network, no waiting, no files.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from compaction.events import Event
from compaction.transcripts.entries import Entry, Usage

KEEP_ALIVE_SECONDS = 30  # the client's interval; whoever waits for a summary calls Monitor.keep_alive this often


class Stage(StrEnum):
    """Where a run stands, in order; the last three are ends."""

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
    """What the summary is to cover: everything, everything from a point on, or everything up to a point."""

    FULL = "full"
    FROM = "from"
    UP_TO = "up_to"


class SummaryRoute(StrEnum):
    """How the summary is asked for: on the parent request's cached prefix, or as a request of its own."""

    FORK = "fork"
    PLAIN = "plain"


class Monitor(Protocol):
    """Whoever watches a run: is told of stages and events, and may cancel it."""

    def enter_stage(self, stage: Stage) -> None:
        """The run goes on to this stage."""

    def keep_alive(self, output_tokens: int) -> None:
        """The summary is still being written; so many tokens so far, 0 while nothing has come."""

    def note_event(self, event: Event) -> None:
        """Something happened that belongs in the structured log."""

    def is_cancelled(self) -> bool:
        """Whether the run is to stop at the next chance."""


class SilentMonitor:
    """Nobody watches and nobody cancels."""

    def enter_stage(self, stage: Stage) -> None:
        """Nobody is told."""

    def keep_alive(self, output_tokens: int) -> None:
        """Nobody is told."""

    def note_event(self, event: Event) -> None:
        """Nobody is told."""

    def is_cancelled(self) -> bool:
        """Never."""
        return False


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryRequest:
    """One request for a summary.

    A summariser with a model sends `body`; one without reads `entries`, which are what the summary is to cover.
    `missing_sections` is set on the second ask: only these are wanted. `instructions` are those of the person and of
    hooks; the prompt holds them already.
    """

    variant: Variant
    path: SummaryRoute
    entries: tuple[Entry, ...]
    prompt: str
    body: Mapping[str, object]
    missing_sections: tuple[str, ...] = ()
    instructions: str | None = None

    @property
    def model(self) -> str | None:
        """The model asked for."""
        model = self.body.get("model")
        return model if isinstance(model, str) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryAnswer:
    """What came back. `is_native` marks a summary made by the server itself, free of the nine sections; `block` is
    the server's signed block, to be sent back as it is."""

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
    """Writes the summary.

    Raises PromptTooLong when the request does not fit, SummarizerUnavailable when no answer was had,
    CompactionCancelled once the monitor says so; calls `monitor.keep_alive` while it waits.
    """

    def summarize(self, request: SummaryRequest, monitor: Monitor) -> SummaryAnswer:
        """The answer to one request; every call is one try."""


@dataclass(frozen=True, slots=True)
class PreCompactCall:
    """What PreCompact hooks are told."""

    trigger: str
    custom_instructions: str | None
    session_id: str | None


@dataclass(frozen=True, slots=True)
class PreCompactAnswer:
    """What one PreCompact hook said; any of it may be missing."""

    instructions: str | None = None
    display_message: str | None = None
    is_blocking: bool = False
    block_reason: str | None = None


@dataclass(frozen=True, slots=True)
class PostCompactCall:
    """What SessionStart and PostCompact hooks are told."""

    trigger: str
    session_id: str | None
    summary: str


@dataclass(frozen=True, slots=True)
class HookResult:
    """Text that a hook wants the model to see, and which hook it was."""

    hook: str
    text: str


class Hooks(Protocol):
    """The hooks around a compaction, in the client's order: PreCompact, SessionStart (compact), PostCompact."""

    def run_pre_compact(self, call: PreCompactCall, /) -> Sequence[PreCompactAnswer]:
        """The answers of all PreCompact hooks, in their order."""

    def run_session_start(self, call: PostCompactCall, /) -> Sequence[HookResult]:
        """What the SessionStart hooks add when a session goes on from a summary."""

    def run_post_compact(self, call: PostCompactCall, /) -> Sequence[HookResult]:
        """What the PostCompact hooks add."""


class NoHooks:
    """No hook is configured."""

    def run_pre_compact(self, _call: PreCompactCall, /) -> Sequence[PreCompactAnswer]:
        """Nothing."""
        return ()

    def run_session_start(self, _call: PostCompactCall, /) -> Sequence[HookResult]:
        """Nothing."""
        return ()

    def run_post_compact(self, _call: PostCompactCall, /) -> Sequence[HookResult]:
        """Nothing."""
        return ()


@dataclass(frozen=True, slots=True)
class FreshFile:
    """A file as it is now."""

    text: str
    modified_at: datetime | None = None


class FileSource(Protocol):
    """Fresh reads, where the operator allows them. A path named in a transcript is untrusted input."""

    def read_file(self, path: str, *, limit_bytes: int) -> FreshFile | None:
        """The file, at most so much of it; None whatever the reason. Without a source nothing is opened."""

"""Summarisers, hooks and monitors that do as they are told."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from compaction.compactors.summary.prompt import list_sections
from compaction.events import Event
from compaction.ports import (
    HookResult,
    Monitor,
    PostCompactCall,
    PreCompactAnswer,
    PreCompactCall,
    Stage,
    SummaryAnswer,
    SummaryRequest,
    Variant,
)
from compaction.transcripts.entries import Usage

Step = Exception | SummaryAnswer | Callable[[SummaryRequest], SummaryAnswer]


def write_sections(variant: Variant, *, without: Sequence[str] = ()) -> str:
    """A summary with its sections, but for those left out."""
    return "\n".join(
        f"{number}. {name}:\n   - about {name.lower()}"
        for number, name in enumerate(list_sections(variant), start=1)
        if name not in without
    )


def say(text: str, stop_reason: str | None = "end_turn", **fields: object) -> SummaryAnswer:
    """An answer with a usage."""
    usage = Usage(input_tokens=100, output_tokens=50, cache_read_tokens=900, cache_creation_tokens=0)
    return SummaryAnswer(text=text, stop_reason=stop_reason, usage=usage, duration_seconds=2.0, **fields)  # type: ignore[arg-type]


def summarise_well(request: SummaryRequest) -> SummaryAnswer:
    """A complete answer; on a second ask only what is missing."""
    names = request.missing_sections or list_sections(request.variant)
    without = [name for name in list_sections(request.variant) if name not in names]
    body = write_sections(request.variant, without=without)
    return say(f"<analysis>\nfirst\n\n\n\nthen\n</analysis>\n<summary>\n{body}\n</summary>")


@dataclass
class Script:
    """A summariser that goes through its steps, the last one again and again, and remembers what it was asked."""

    steps: Sequence[Step] = (summarise_well,)
    requests: list[SummaryRequest] = field(default_factory=list)

    def summarize(self, request: SummaryRequest, monitor: Monitor) -> SummaryAnswer:
        step = self.steps[min(len(self.requests), len(self.steps) - 1)]
        self.requests.append(request)
        monitor.keep_alive(0)
        if isinstance(step, Exception):
            raise step
        return step if isinstance(step, SummaryAnswer) else step(request)


@dataclass
class Watcher:
    """A monitor that writes everything down, and cancels once a stage is reached."""

    cancel_at: Stage | None = None
    stages: list[Stage] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    signs_of_life: list[int] = field(default_factory=list)

    def enter_stage(self, stage: Stage) -> None:
        self.stages.append(stage)

    def keep_alive(self, output_tokens: int) -> None:
        self.signs_of_life.append(output_tokens)

    def record_event(self, event: Event) -> None:
        self.events.append(event)

    def is_cancelled(self) -> bool:
        return self.cancel_at is not None and self.cancel_at in self.stages


@dataclass
class ToldHooks:
    """Hooks with fixed answers that remember what they were told."""

    answers: Sequence[PreCompactAnswer] = ()
    results: Sequence[HookResult] = ()
    calls: list[object] = field(default_factory=list)

    def run_pre_compact(self, call: PreCompactCall, /) -> Sequence[PreCompactAnswer]:
        self.calls.append(call)
        return self.answers

    def run_session_start(self, call: PostCompactCall, /) -> Sequence[HookResult]:
        self.calls.append(call)
        return self.results

    def run_post_compact(self, call: PostCompactCall, /) -> Sequence[HookResult]:
        self.calls.append(call)
        return ()

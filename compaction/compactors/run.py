"""One compaction with a summary, from the selection to the outcome: hooks, summary, restoration, assembly, events.

What is selected is decided in full and partial; whether to compact at all in auto.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from compaction.compactors.assembly import Replacement, assemble_outcome
from compaction.compactors.hooks import PreCompactResult, run_post_hooks, run_pre_hooks
from compaction.compactors.outcome import (
    ChainPosition,
    CompactionKind,
    CompactionOutcome,
    Restore,
    RestoredContext,
    Trigger,
    restore_nothing,
)
from compaction.compactors.run_events import list_run_events
from compaction.compactors.summary.ask import SummaryTask, WrittenSummary, write_summary
from compaction.compactors.summary.fork_request import ParentRequest
from compaction.compactors.summary.message import make_summary_entry, write_summary_text
from compaction.compactors.summary.plain_request import SummaryModels
from compaction.compactors.summary.prompt import write_prompt
from compaction.compactors.summary.too_long import SummaryRange, TokenBudget
from compaction.context.tokens import measure_context
from compaction.errors import CompactionCancelled, RunError
from compaction.events import CompactionFailed
from compaction.ports import Hooks, Monitor, NoHooks, SilentMonitor, Stage, Summarizer, Variant
from compaction.transcripts.chain import ContextSlice, slice_context
from compaction.transcripts.entries import Entry


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionRequest:
    """What is asked for. `line_tokens` is the auto line; `prefix_tokens` what system and tools take, if known."""

    trigger: Trigger
    now: datetime
    custom_instructions: str | None = None
    transcript_path: str | None = None
    parent: ParentRequest | None = None
    models: SummaryModels = field(default_factory=SummaryModels)
    line_tokens: int | None = None
    prefix_tokens: int = 0
    position: ChainPosition = field(default_factory=ChainPosition)


@dataclass(frozen=True, slots=True)
class RunPorts:
    """Everything a run reaches through ports."""

    summarizer: Summarizer
    hooks: Hooks = field(default_factory=NoHooks)
    restore: Restore = restore_nothing
    monitor: Monitor = field(default_factory=SilentMonitor)


@dataclass(frozen=True, slots=True)
class Selection:
    """What is sent to be summarised, and what stays as it is before or behind the summary."""

    kind: CompactionKind
    span: SummaryRange
    kept_before: tuple[Entry, ...] = ()
    starts_at: str | None = None

    @property
    def variant(self) -> Variant:
        """The prompt that fits."""
        return Variant(self.kind.value)


def run_compaction(
    entries: Sequence[Entry],
    select: Callable[[ContextSlice], Selection],
    request: CompactionRequest,
    outside: RunPorts,
    *,
    kind: CompactionKind,
) -> CompactionOutcome:
    """The outcome; or a named error, the monitor's last stage being failed or cancelled. The input stays as it is."""
    last_stage, failure = Stage.FAILED, None
    try:
        outcome = _perform(entries, select, request, outside)
        last_stage = Stage.DONE
    except CompactionCancelled as error:
        last_stage, failure = Stage.CANCELLED, error.reason
        raise
    except RunError as error:
        failure = error.reason
        raise
    finally:
        if failure is not None:
            outside.monitor.note_event(_describe_failure(entries, request, failure, kind=kind))
        outside.monitor.enter_stage(last_stage)
    for event in outcome.events:
        outside.monitor.note_event(event)
    return outcome


def _describe_failure(
    entries: Sequence[Entry], request: CompactionRequest, reason: str, *, kind: CompactionKind
) -> CompactionFailed:
    last = entries[-1] if entries else None
    return CompactionFailed(
        session_id=last.session_id if last else None,
        agent_id=last.agent_id if last else None,
        kind=kind,
        trigger=request.trigger,
        reason=reason,
        pre_tokens=measure_context(slice_context(entries)).tokens,
    )


def _perform(
    entries: Sequence[Entry],
    select: Callable[[ContextSlice], Selection],
    request: CompactionRequest,
    outside: RunPorts,
) -> CompactionOutcome:
    context = slice_context(entries)
    selection = select(context)
    session_id = next((entry.session_id for entry in reversed(entries) if entry.session_id), None)
    _enter(outside, Stage.PRE_HOOKS)
    wishes = run_pre_hooks(
        outside.hooks, request.trigger, custom_instructions=request.custom_instructions, session_id=session_id
    )
    written = write_summary(_make_task(selection, request, wishes), outside.summarizer, outside.monitor)
    _enter(outside, Stage.RESTORING)
    kept = selection.kept_before + written.span.kept_after
    restored = outside.restore(entries, kept, now=request.now)
    _enter(outside, Stage.POST_HOOKS)
    hook_items = run_post_hooks(outside.hooks, request.trigger, summary=written.summary.text, session_id=session_id)
    replacement = _make_replacement(context, selection, written, request)
    replacement = replace(
        replacement,
        restored=RestoredContext(restored.items + hook_items),
        display_messages=wishes.display_messages,
    )
    outcome = assemble_outcome(replacement)
    return replace(outcome, events=tuple(list_run_events(outcome, context.entries, request.position)))


def _enter(outside: RunPorts, stage: Stage) -> None:
    if outside.monitor.is_cancelled():
        raise CompactionCancelled
    outside.monitor.enter_stage(stage)


def _make_task(selection: Selection, request: CompactionRequest, wishes: PreCompactResult) -> SummaryTask:
    prompt = write_prompt(selection.variant, custom_instructions=wishes.instructions, starts_at=selection.starts_at)
    return SummaryTask(
        variant=selection.variant,
        span=selection.span,
        prompt=prompt,
        room=TokenBudget(request.line_tokens, request.prefix_tokens),
        parent=request.parent,
        models=request.models,
        instructions=wishes.instructions,
    )


def _make_replacement(
    context: ContextSlice, selection: Selection, written: WrittenSummary, request: CompactionRequest
) -> Replacement:
    kept_after = written.span.kept_after
    kept_before = {id(entry) for entry in selection.kept_before}
    dropped = tuple(entry for entry in written.span.left_out if id(entry) not in kept_before)
    text = write_summary_text(
        written.summary,
        request.trigger,
        transcript_path=request.transcript_path,
        has_kept_before=bool(kept_before),
        has_kept_after=any(entry.message for entry in kept_after),
        left_out_messages=sum(1 for entry in dropped if entry.message),
    )
    return Replacement(
        kind=selection.kind,
        trigger=request.trigger,
        now=request.now,
        context=context,
        kept=selection.kept_before + kept_after,
        dropped=dropped,
        summary=written.summary,
        summary_entry=make_summary_entry(text),
        calls=written.calls,
        user_context=request.custom_instructions,
        prefix_tokens=request.prefix_tokens,
        line_tokens=request.line_tokens,
    )

"""Runs one compaction with a summary: hooks, summary, restoration, assembly, events.

What is summarised is decided in selections, whether to compact at all in auto.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from compaction.compactors.assembly import Replacement, assemble_outcome
from compaction.compactors.hooks import PreCompactResult, run_post_hooks, run_pre_hooks
from compaction.compactors.outcome import CompactionOutcome, CompactorKind, RecompactionInfo, Trigger
from compaction.compactors.restore.items import Restore, RestoredContext, restore_nothing
from compaction.compactors.run_events import list_run_events
from compaction.compactors.summary.ask import SummaryTask, WrittenSummary, request_summary
from compaction.compactors.summary.fork_request import ParentRequest
from compaction.compactors.summary.message import build_summary_entry, build_summary_text
from compaction.compactors.summary.plain_request import SummaryModels
from compaction.compactors.summary.prompt import build_prompt
from compaction.compactors.summary.too_long import SummaryRange, TokenBudget
from compaction.context.tokens import measure_context
from compaction.errors import CompactionCancelled, RunError
from compaction.events import CompactionFailed
from compaction.ports import Hooks, Monitor, NoHooks, SilentMonitor, Stage, Summarizer, Variant
from compaction.transcripts.chain import ContextSlice, slice_context
from compaction.transcripts.entries import Entry


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionRequest:
    """Terms of a compaction. `threshold_tokens` is the auto-compact threshold, `prefix_tokens` system and tools."""

    trigger: Trigger
    now: datetime
    custom_instructions: str | None = None
    transcript_path: str | None = None
    parent: ParentRequest | None = None
    models: SummaryModels = field(default_factory=SummaryModels)
    threshold_tokens: int | None = None
    prefix_tokens: int = 0
    recompaction: RecompactionInfo = field(default_factory=RecompactionInfo)


@dataclass(frozen=True, slots=True)
class RunPorts:
    """The ports a run uses: summariser, hooks, restoration and monitor."""

    summarizer: Summarizer
    hooks: Hooks = field(default_factory=NoHooks)
    restore: Restore = restore_nothing
    monitor: Monitor = field(default_factory=SilentMonitor)


@dataclass(frozen=True, slots=True)
class Selection:
    """The range to summarise, and the entries kept verbatim before the summary."""

    kind: CompactorKind
    span: SummaryRange
    kept_before: tuple[Entry, ...] = ()
    starts_at: str | None = None

    @property
    def variant(self) -> Variant:
        """The prompt for this selection."""
        return Variant(self.kind.value)


def run_compaction(
    entries: Sequence[Entry],
    select: Callable[[ContextSlice], Selection],
    request: CompactionRequest,
    ports: RunPorts,
    *,
    kind: CompactorKind,
) -> CompactionOutcome:
    """Return the outcome, or raise a RunError after the stage failed or cancelled. The input is not modified."""
    last_stage, failure = Stage.FAILED, None
    try:
        outcome = _run_stages(entries, select, request, ports)
        last_stage = Stage.DONE
    except CompactionCancelled as error:
        last_stage, failure = Stage.CANCELLED, error.reason
        raise
    except RunError as error:
        failure = error.reason
        raise
    finally:
        if failure is not None:
            ports.monitor.record_event(_build_failed_event(entries, request, failure, kind=kind))
        ports.monitor.enter_stage(last_stage)
    for event in outcome.events:
        ports.monitor.record_event(event)
    return outcome


def _build_failed_event(
    entries: Sequence[Entry], request: CompactionRequest, reason: str, *, kind: CompactorKind
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


def _run_stages(
    entries: Sequence[Entry],
    select: Callable[[ContextSlice], Selection],
    request: CompactionRequest,
    ports: RunPorts,
) -> CompactionOutcome:
    context = slice_context(entries)
    selection = select(context)
    session_id = next((entry.session_id for entry in reversed(entries) if entry.session_id), None)
    _enter_stage(ports, Stage.PRE_HOOKS)
    pre_compact = run_pre_hooks(
        ports.hooks, request.trigger, custom_instructions=request.custom_instructions, session_id=session_id
    )
    written = request_summary(_build_task(selection, request, pre_compact), ports.summarizer, ports.monitor)
    _enter_stage(ports, Stage.RESTORING)
    kept = selection.kept_before + written.span.kept_after
    restored = ports.restore(entries, kept, now=request.now)
    _enter_stage(ports, Stage.POST_HOOKS)
    hook_items = run_post_hooks(ports.hooks, request.trigger, summary=written.summary.text, session_id=session_id)
    replacement = _build_replacement(context, selection, written, request)
    replacement = replace(
        replacement,
        restored=RestoredContext(restored.items + hook_items),
        display_messages=pre_compact.display_messages,
    )
    outcome = assemble_outcome(replacement)
    return replace(outcome, events=tuple(list_run_events(outcome, context.entries, request.recompaction)))


def _enter_stage(ports: RunPorts, stage: Stage) -> None:
    if ports.monitor.is_cancelled():
        raise CompactionCancelled
    ports.monitor.enter_stage(stage)


def _build_task(selection: Selection, request: CompactionRequest, pre_compact: PreCompactResult) -> SummaryTask:
    instructions = pre_compact.instructions
    prompt = build_prompt(selection.variant, custom_instructions=instructions, starts_at=selection.starts_at)
    return SummaryTask(
        variant=selection.variant,
        span=selection.span,
        prompt=prompt,
        budget=TokenBudget(request.threshold_tokens, request.prefix_tokens),
        parent=request.parent,
        models=request.models,
        instructions=instructions,
    )


def _build_replacement(
    context: ContextSlice, selection: Selection, written: WrittenSummary, request: CompactionRequest
) -> Replacement:
    kept_after = written.span.kept_after
    kept_before = {id(entry) for entry in selection.kept_before}
    dropped = tuple(entry for entry in written.span.left_out if id(entry) not in kept_before)
    text = build_summary_text(
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
        summary_entry=build_summary_entry(text),
        calls=written.calls,
        user_context=request.custom_instructions,
        prefix_tokens=request.prefix_tokens,
        threshold_tokens=request.threshold_tokens,
    )

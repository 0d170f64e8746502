"""Builds the events of a finished compaction: completed, files restored or not, still above the threshold."""

from collections.abc import Iterator, Sequence

from compaction.compactors.outcome import CompactionOutcome, EntryFate, RecompactionInfo
from compaction.compactors.restore.items import RestoredKind, RestoredState
from compaction.context.tokens import count_text_tokens
from compaction.events import CompactionCompleted, Event, FileNotRestored, FileRestored, ThresholdExceeded
from compaction.ports import SummaryRoute
from compaction.transcripts.entries import Entry
from compaction.transcripts.user_lines import classify_entry


def list_run_events(
    outcome: CompactionOutcome, before: Sequence[Entry], recompaction: RecompactionInfo
) -> Iterator[Event]:
    """List the events for the log. `before` are the entries the model saw before the compaction."""
    yield _build_completed_event(outcome, before, recompaction)
    yield from _list_file_events(outcome)
    if outcome.is_above_threshold:
        yield build_threshold_event(outcome)


def build_threshold_event(outcome: CompactionOutcome) -> ThresholdExceeded:
    """Return the event of an outcome that reaches the threshold again."""
    return ThresholdExceeded(
        session_id=outcome.boundary.session_id,
        agent_id=outcome.boundary.agent_id,
        post_tokens=outcome.expected_tokens,
        line_tokens=outcome.threshold_tokens or 0,
    )


def _build_completed_event(
    outcome: CompactionOutcome, before: Sequence[Entry], recompaction: RecompactionInfo
) -> CompactionCompleted:
    usages = [call.usage for call in outcome.calls]
    files = [item for item in outcome.restored if item.kind is RestoredKind.FILE]
    return CompactionCompleted(
        session_id=outcome.boundary.session_id,
        agent_id=outcome.boundary.agent_id,
        kind=outcome.kind,
        trigger=outcome.trigger,
        original_turns=_count_turns(outcome, before),
        summary_tokens=count_text_tokens(outcome.summary.text),
        tokens_saved=outcome.tokens_saved,
        files_restored=sum(1 for item in files if item.state is not RestoredState.SKIPPED),
        duration_ms=round(sum(call.duration_seconds for call in outcome.calls) * 1000),
        pre_tokens=outcome.pre_tokens,
        post_tokens=outcome.replaced_tokens,
        input_tokens=sum(usage.input_tokens for usage in usages),
        output_tokens=sum(usage.output_tokens for usage in usages),
        cache_read_tokens=sum(usage.cache_read_tokens for usage in usages),
        cache_creation_tokens=sum(usage.cache_creation_tokens for usage in usages),
        total_tokens=sum(usage.prompt_tokens + usage.output_tokens for usage in usages),
        fork_hit_percent=_compute_fork_hit_percent(outcome),
        is_recompaction=recompaction.is_recompaction,
        turns_since_previous=recompaction.turns_since_previous,
        previous_run_id=recompaction.previous_run_id,
        line_tokens=outcome.threshold_tokens,
        source=recompaction.source,
    )


def _count_turns(outcome: CompactionOutcome, before: Sequence[Entry]) -> int:
    """Count the user prompts that the summary covers."""
    summarised = set(outcome.list_uuids(EntryFate.SUMMARISED))
    lines = (classify_entry(entry) for entry in before if entry.uuid in summarised)
    return sum(line is not None and line.starts_turn for line in lines)


def _compute_fork_hit_percent(outcome: CompactionOutcome) -> int | None:
    """Return the share of the forks' prompts that was read from the parent's cache; None without a fork."""
    usages = [call.usage for call in outcome.calls if call.route is SummaryRoute.FORK]
    sent_tokens = sum(usage.prompt_tokens for usage in usages)
    return round(sum(usage.cache_read_tokens for usage in usages) * 100 / sent_tokens) if sent_tokens else None


def _list_file_events(outcome: CompactionOutcome) -> Iterator[Event]:
    session_id, agent_id = outcome.boundary.session_id, outcome.boundary.agent_id
    files = (item for item in outcome.restored if item.kind is RestoredKind.FILE)
    for position, item in enumerate(files, start=1):
        if item.state is RestoredState.SKIPPED:
            yield FileNotRestored(
                session_id=session_id,
                agent_id=agent_id,
                position=position,
                tokens=item.tokens,
                reason=item.code or "not_restored",
            )
        else:
            yield FileRestored(
                session_id=session_id,
                agent_id=agent_id,
                position=position,
                tokens=item.tokens,
                is_truncated=item.state is RestoredState.TRUNCATED,
            )

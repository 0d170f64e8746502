"""The kinds of a run put to the engine: which compactor, with which request. Nothing is stored here."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime

from compaction.compactors.micro.by_idle import DEFAULT_IDLE_SETTINGS, clear_by_idle_time
from compaction.compactors.micro.by_size import DEFAULT_SIZE_SETTINGS, clear_by_size
from compaction.compactors.micro.clearing import MicroOutcome, list_clearable
from compaction.compactors.notes.from_notes import compact_from_notes
from compaction.compactors.outcome import CompactionOutcome, RecompactionInfo
from compaction.compactors.run import CompactionRequest, RunPorts
from compaction.compactors.selections import compact_from, compact_full, compact_up_to
from compaction.compactors.summary.plain_request import SummaryModels
from compaction.errors import NothingToCompact
from dashboard.models import RunKind
from dashboard.runs.basis import Basis
from dashboard.runs.choices import RunChoices

# A person who asks does not wait for a line, a pause or a saving that is worth it: the client's other figures hold.
ASKED_SIZE = replace(DEFAULT_SIZE_SETTINGS, min_saved_tokens=1)
ASKED_IDLE = replace(DEFAULT_IDLE_SETTINGS, gap_seconds=0)

KIND_WORDS: Mapping[RunKind, str] = {
    RunKind.FULL: "full compaction",
    RunKind.FROM: "compaction from a message on",
    RunKind.UP_TO: "compaction up to a message",
    RunKind.MICRO_SIZE: "micro-compaction by size",
    RunKind.MICRO_IDLE: "micro-compaction after a pause",
    RunKind.NOTES: "compaction from the session's notes",
}


def make_request(
    basis: Basis, choices: RunChoices, models: SummaryModels, *, now: datetime, position: RecompactionInfo | None = None
) -> CompactionRequest:
    return CompactionRequest(
        trigger=choices.trigger,
        now=now,
        custom_instructions=choices.instructions or None,
        transcript_path=basis.transcript_path,
        parent=basis.parent,
        models=models,
        threshold_tokens=basis.line_tokens,
        prefix_tokens=basis.prefix_tokens,
        recompaction=position or RecompactionInfo(is_recompaction=basis.context.boundary is not None),
    )


def compact(basis: Basis, choices: RunChoices, request: CompactionRequest, outside: RunPorts) -> CompactionOutcome:
    """A kind with a summary. Raises a RunError."""
    if choices.kind is RunKind.FROM:
        return compact_from(basis.entries, choices.pivot_uuid, request, outside)
    if choices.kind is RunKind.UP_TO:
        return compact_up_to(basis.entries, choices.pivot_uuid, request, outside)
    if choices.kind is RunKind.NOTES:
        return compact_from_notes(basis.entries, basis.notes, request, outside, template=basis.notes_template)
    return compact_full(basis.entries, request, outside)


def clear_results(basis: Basis, kind: RunKind, *, now: datetime) -> MicroOutcome:
    """A kind without one. Raises NothingToCompact with what there is, when nothing would be saved."""
    entries = basis.context.entries
    if kind is RunKind.MICRO_SIZE:
        outcome = clear_by_size(
            entries, used_tokens=basis.before_tokens, warning_tokens=0, now=now, settings=ASKED_SIZE
        )
    else:
        outcome = clear_by_idle_time(entries, now=now, cache_ttl_seconds=0, settings=ASKED_IDLE)
    if outcome is None:
        raise NothingToCompact(_tell_why_nothing(basis, kind))
    return outcome


def _tell_why_nothing(basis: Basis, kind: RunKind) -> str:
    results = list_clearable(basis.context.entries)
    tokens = sum(result.tokens for result in results)
    held = f"The context holds {len(results):,} tool results that could be cleared, {tokens:,} tokens in all"
    if kind is RunKind.MICRO_SIZE:
        target, kept = ASKED_SIZE.target_tokens, ASKED_SIZE.kept_results
        return f"{held}. The last {kept}, and {target:,} tokens in all, stay, so nothing would be saved."
    return f"{held}. The last {ASKED_IDLE.kept_results} stay, so nothing would be saved."

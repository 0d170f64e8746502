"""The result of a run as its row stores it: lines of the compacted conversation, every message's fate, the audit."""

import json
from collections.abc import Iterable, Mapping
from datetime import datetime

from compaction.compactors.micro.clearing import MicroOutcome, list_clearable
from compaction.compactors.outcome import CompactionOutcome, EntryFate
from compaction.context.tokens import add_margin, count_text_tokens
from compaction.ports import Stage
from compaction.transcripts.entries import Entry
from compaction.transcripts.writer import write_items
from dashboard.ingest.audit_rows import AUDIT_VERSION, AuditReport, audit_compaction, serialize_report
from dashboard.ingest.segments import compress
from dashboard.models import CompactionRun, RunRevision, RunState
from dashboard.runs.basis import COUNTED, ESTIMATE, Basis
from dashboard.runs.change_notes import tell_pages


def keep_outcome(
    run: CompactionRun,
    outcome: CompactionOutcome,
    report: AuditReport,
    *,
    now: datetime,
    counted_tokens: int | None = None,
) -> None:
    """Row and first revision. To be called inside the transaction that ends the job.

    `counted_tokens` is the size after as the API counted it; revisions keep estimates, which can be compared.
    """
    counts = {fate: len(outcome.list_uuids(fate)) for fate in EntryFate}
    _end_run(
        run,
        now=now,
        outcome=pack_lines(outcome.entries),
        details=pack_details(_describe_outcome(outcome)),
        after_tokens=outcome.expected_tokens if counted_tokens is None else counted_tokens,
        after_origin=ESTIMATE if counted_tokens is None else COUNTED,
        kept_count=counts[EntryFate.KEPT],
        summarised_count=counts[EntryFate.SUMMARISED],
        dropped_count=counts[EntryFate.DROPPED],
    )
    summary = outcome.summary
    RunRevision.objects.create(
        run=run,
        number=1,
        text=_strip_nul(summary.text),
        analysis=_strip_nul(summary.analysis or ""),
        missing_sections=list(summary.missing_sections),
        created_at=now,
        summary_tokens=add_margin(count_text_tokens(summary.text)),
        after_tokens=outcome.expected_tokens,
        retained_percent=report.retained,
        audit=serialize_report(report),
    )


def keep_clearing(run: CompactionRun, basis: Basis, outcome: MicroOutcome, *, now: datetime) -> None:
    """A micro-compaction has no summary, so no revision: its audit is part of the details."""
    lines = (*outcome.entries, outcome.boundary)
    report = audit_compaction(basis.context.entries, outcome.entries)
    _end_run(
        run,
        now=now,
        outcome=pack_lines(lines),
        details=pack_details(_describe_clearing(basis, outcome, report)),
        after_tokens=max(0, basis.before_tokens - outcome.tokens_saved),
        after_origin=ESTIMATE,
        kept_count=sum(1 for entry in outcome.entries if entry.message is not None),
        cleared_count=len(outcome.cleared_tool_ids) + len(outcome.cleared_attachment_uuids),
    )


def _end_run(run: CompactionRun, *, now: datetime, **columns: object) -> None:
    ended = {"state": RunState.DONE, "stage": Stage.DONE, "stage_at": now, "finished_at": now}
    CompactionRun.objects.filter(pk=run.pk).update(**ended, **columns, audit_version=AUDIT_VERSION)
    tell_pages(run.pk)


def pack_lines(entries: Iterable[Entry]) -> bytes:
    return compress(b"".join(write_items(entries)))


def pack_details(details: Mapping[str, object]) -> bytes:
    return compress(json.dumps(details, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "backslashreplace"))


def _describe_outcome(outcome: CompactionOutcome) -> dict[str, object]:
    brought = [item for item in outcome.restored if item.entry is not None]
    stamped = [entry.uuid for entry in outcome.entries[len(outcome.entries) - len(brought) :]]
    uuids = dict(zip((id(item) for item in brought), stamped, strict=True))
    return {
        "fates": [[fate.uuid, fate.fate.value, fate.tokens] for fate in outcome.fates],
        "restored": [
            {
                "kind": item.kind.value,
                "name": item.name,
                "tokens": item.tokens,
                "state": item.state.value,
                "reason": item.reason,
                "code": item.code,
                "entry": uuids.get(id(item)),
            }
            for item in outcome.restored
        ],
        "display_messages": list(outcome.display_messages),
        "native_block": None if outcome.summary.block is None else dict(outcome.summary.block),
        "summary_uuid": outcome.summary_entry.uuid,
        "boundary_uuid": outcome.boundary.uuid,
    }


def _describe_clearing(basis: Basis, outcome: MicroOutcome, report: AuditReport) -> dict[str, object]:
    cleared = set(outcome.cleared_tool_ids)
    results = list_clearable(basis.context.entries)
    return {
        "cleared": [[each.tool_use_id, each.tool, each.tokens] for each in results if each.tool_use_id in cleared],
        "cleared_attachments": list(outcome.cleared_attachment_uuids),
        "saved_tokens": outcome.tokens_saved,
        "boundary_uuid": outcome.boundary.uuid,
        "retained_percent": None if report.retained is None else str(report.retained),
        "audit": serialize_report(report),
    }


def _strip_nul(text: str) -> str:
    """PostgreSQL takes none."""
    return text.replace("\x00", "")

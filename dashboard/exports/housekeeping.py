"""What admins and owners look through, as tables: the audit log, jobs, and what had to be dropped."""

from collections.abc import Iterator
from typing import TypeVar

from django.db.models import Model, QuerySet

from dashboard.exports.tables import Cell, ExportTable
from dashboard.jobs.kinds import label_of
from dashboard.models import AuditEvent, Drop, Job

BATCH = 500
_Row = TypeVar("_Row", bound=Model)
_JOB_COLUMNS = (
    "id", "what", "team", "state", "attempts", "posted_at", "started_at", "finished_at", "progress_done",
    "progress_total", "progress_note", "last_error",
)  # fmt: skip


def export_audit_log(events: QuerySet[AuditEvent]) -> ExportTable:
    rows = (
        (event.pk, event.at, event.actor_name, event.action, event.subject, event.told_details)
        for event in _walk(events)
    )
    return ExportTable("audit-log", ("id", "at", "who", "what", "whom_or_which", "details"), rows)


def export_jobs(jobs: QuerySet[Job]) -> ExportTable:
    rows = (
        (
            job.pk, label_of(job.kind), job.team.slug if job.team else "", job.state, job.attempts, job.created_at,
            job.started_at, job.finished_at, job.progress_done, job.progress_total, job.progress_note, job.last_error,
        )
        for job in _walk(jobs)
    )  # fmt: skip
    return ExportTable("jobs", _JOB_COLUMNS, rows)


def export_drops(drops: QuerySet[Drop]) -> ExportTable:
    rows: Iterator[tuple[Cell, ...]] = (
        (drop.reason, drop.count, drop.source, drop.team.slug if drop.team else "", drop.last_at, drop.last_detail)
        for drop in _walk(drops)
    )
    return ExportTable("drops", ("not_kept", "count", "way_in", "team", "last_at", "where"), rows)


def _walk(found: QuerySet[_Row]) -> Iterator[_Row]:
    """Newest first by id, in short queries: none is open while somebody downloads slowly."""
    last: int | None = None
    while True:
        rows = found if last is None else found.filter(pk__lt=last)
        batch = list(rows.order_by("-pk")[:BATCH])
        yield from batch
        if len(batch) < BATCH:
            return
        last = batch[-1].pk

"""Posting a job: one row, written in the same transaction as its cause."""

from collections.abc import Mapping
from datetime import datetime

from django.db import transaction

from dashboard.jobs.wake import wake_workers_soon
from dashboard.models import Job, Team

URGENT, NORMAL, BACKGROUND = 10, 50, 90

JsonValue = str | int | float | bool | None


def post_job(
    kind: str,
    *,
    key: str,
    team: Team | None = None,
    payload: Mapping[str, JsonValue] | None = None,
    priority: int = NORMAL,
    due_at: datetime | None = None,
) -> Job:
    """Posting the same key again gives the job that is there. The wake-up goes out when the transaction commits."""
    defaults = {"kind": kind, "team": team, "payload": dict(payload or {}), "priority": priority, "due_at": due_at}
    job, is_new = Job.objects.get_or_create(key=key, defaults=defaults)
    if is_new and due_at is None:
        transaction.on_commit(lambda: wake_workers_soon(job.pk))
    return job

"""What a person does to a job: cancel it, try it again."""

from datetime import datetime

from django.db import transaction

from dashboard.jobs.wake import wake_workers_soon
from dashboard.models import Job, JobState


def cancel_job(job: Job, *, now: datetime) -> bool:
    """A waiting job ends here; a running one is asked to stop. False when it had ended already."""
    rows = Job.objects.filter(pk=job.pk)
    if rows.filter(state=JobState.QUEUED).update(state=JobState.CANCELLED, finished_at=now, cancel_requested_at=now):
        return True
    return bool(rows.filter(state=JobState.RUNNING).update(cancel_requested_at=now))


def retry_job(job: Job) -> bool:
    """Back into the queue with all its attempts. False unless it had failed, died or been cancelled."""
    ended = [JobState.FAILED, JobState.DEAD, JobState.CANCELLED]
    with transaction.atomic():
        again = Job.objects.filter(pk=job.pk, state__in=ended).update(
            state=JobState.QUEUED,
            attempts=0,
            due_at=None,
            finished_at=None,
            cancel_requested_at=None,
            woken_at=None,
            last_error="",
        )
        if again:
            transaction.on_commit(lambda: wake_workers_soon(job.pk))
    return bool(again)

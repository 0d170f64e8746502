"""Taking the next job: the most urgent, and among equals that of the team served least and longest ago."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import Count, F, Min, OuterRef, Q, QuerySet, Subquery

from dashboard.jobs.post import BACKGROUND
from dashboard.models import Job, JobState

TRIES = 50
# After that many attempts a job may be the one that kills its workers. Such suspects run one at a time: the one that
# is guilty would otherwise take its neighbours along until they are dead too.
TRUSTED_ATTEMPTS = 2


@dataclass(frozen=True)
class Claim:
    """A job and the fence it was taken with: whoever holds both may write, until somebody takes it anew."""

    job: Job
    fence: int

    def held(self) -> QuerySet[Job]:
        """The row, while this claim still counts. Every write of a worker goes through this."""
        return Job.objects.filter(pk=self.job.pk, fence=self.fence, state=JobState.RUNNING)


def lease_end(now: datetime) -> datetime:
    return now + timedelta(seconds=settings.JOB_LEASE_SECONDS)


def due_jobs(now: datetime) -> QuerySet[Job]:
    return Job.objects.filter(Q(due_at=None) | Q(due_at__lte=now), state=JobState.QUEUED)


def claim_next(*, worker: str, kinds: Iterable[str], now: datetime) -> Claim | None:
    """Jobs of a kind this worker does not know stay where they are, for a newer worker."""
    due = due_jobs(now).filter(kind__in=list(kinds))
    if not _has_background_place(worker):
        due = due.filter(priority__lt=BACKGROUND)
    due = due.filter(Q(attempts__lt=TRUSTED_ATTEMPTS) | Q(pk=_next_suspect(due)))
    for _ in range(TRIES):
        candidate = _fairest(due)
        if candidate is None:
            return None
        # Two workers may see the same candidate; the conditional update gives it to one.
        taken = Job.objects.filter(pk=candidate.pk, state=JobState.QUEUED, fence=candidate.fence).update(
            state=JobState.RUNNING,
            fence=candidate.fence + 1,
            attempts=F("attempts") + 1,
            lease_until=lease_end(now),
            started_at=now,
            worker=worker,
            progress_done=None,
            progress_total=None,
            progress_note="",
        )
        if taken:
            return Claim(Job.objects.select_related("team").get(pk=candidate.pk), candidate.fence + 1)
    return None


def _has_background_place(worker: str) -> bool:
    """Half of a worker's threads are left to jobs that a person waits for: audits of a large import take minutes."""
    process = worker.rpartition(":")[0]
    running = Job.objects.filter(state=JobState.RUNNING, priority__gte=BACKGROUND, worker__startswith=f"{process}:")
    return running.count() < max(1, settings.WORKER_THREADS // 2)


def _next_suspect(due: QuerySet[Job]) -> int | None:
    """Read in one query: with two, a suspect could be taken between them and another one seen as the next."""
    running = Job.objects.filter(state=JobState.RUNNING, attempts__gt=TRUSTED_ATTEMPTS)
    suspects = running | due.filter(attempts__gte=TRUSTED_ATTEMPTS)
    states = dict(suspects.order_by("id").values_list("pk", "state"))
    return None if JobState.RUNNING in states.values() else next(iter(states), None)


def _fairest(due: QuerySet[Job]) -> Job | None:
    top = due.aggregate(top=Min("priority"))["top"]
    if top is None:
        return None
    last_start = Job.objects.filter(team=OuterRef("team"), started_at__isnull=False).order_by("-started_at")
    waiting = (
        due.filter(priority=top)
        .values("team")
        .annotate(first=Min("id"), served_at=Subquery(last_start.values("started_at")[:1]))
    )
    running = dict(
        Job.objects.filter(state=JobState.RUNNING)
        .values_list("team")
        .annotate(Count("id"))
        .values_list("team", "id__count")
    )
    queues = sorted(
        waiting,
        key=lambda row: (
            running.get(row["team"], 0),
            row["served_at"] is not None,
            row["served_at"] or 0,
            row["first"],
        ),
    )
    return Job.objects.filter(pk=queues[0]["first"]).first() if queues else None

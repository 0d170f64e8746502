"""The sweeper's round: leases that ran out, wake-ups that got lost, work that recurs. Safe on many hosts at once.

Every step is a conditional update or a unique key, so two rounds at the same moment do no more than one.
"""

import logging
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import F, Q, QuerySet

from dashboard.jobs.beat import note_beat
from dashboard.jobs.claim import due_jobs
from dashboard.jobs.post import BACKGROUND, post_job
from dashboard.jobs.wake import wake_workers
from dashboard.models import Job, JobState

# A worker that got the first wake-up has claimed the job within this time.
WAKE_AGAIN_SECONDS = 5
WAKES_A_ROUND = 50

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Round:
    returned: int
    died: int
    woken: int


def sweep(now: datetime) -> Round:
    died = returned = 0
    if Job.objects.filter(_lost_leases(now)).exists():  # reading first: an update would take SQLite's lock every second
        died, returned = _take_back(now)
    done = Round(died=died, returned=returned, woken=_wake_waiting(now))
    _post_recurring(now)
    note_beat("sweeper", now)
    if done.died or done.returned:
        log.warning("leases ran out", extra={"returned": done.returned, "died": done.died})
    return done


def _lost_leases(now: datetime) -> Q:
    """Run out, or further ahead than any lease goes: then the clock was set back since it was given."""
    beyond = now + timedelta(seconds=settings.JOB_LEASE_SECONDS * 2 + 60)
    return Q(state=JobState.RUNNING) & (Q(lease_until__lt=now) | Q(lease_until__gt=beyond))


def _take_back(now: datetime) -> tuple[int, int]:
    """How many died, how many go back. Locked rows are passed by: on PostgreSQL a worker that sleeps in a transaction
    would otherwise make every sweeper wait for it.
    """
    with transaction.atomic():
        unlocked = Job.objects.filter(_lost_leases(now)).select_for_update(skip_locked=True)
        lost = Job.objects.filter(pk__in=list(unlocked.values_list("pk", flat=True)))
        return _bury(lost, now), _return_lost(lost)


def _bury(lost: QuerySet[Job], now: datetime) -> int:
    told = f"The worker stopped {settings.JOB_ATTEMPTS} times during this job."
    hopeless = lost.filter(attempts__gte=settings.JOB_ATTEMPTS)
    return hopeless.update(state=JobState.DEAD, finished_at=now, lease_until=None, last_error=told)


def _return_lost(lost: QuerySet[Job]) -> int:
    """The fence rises here already: a worker that comes back from a long sleep is refused at once."""
    others = lost.filter(attempts__lt=settings.JOB_ATTEMPTS)
    return others.update(state=JobState.QUEUED, lease_until=None, worker="", fence=F("fence") + 1, woken_at=None)


def _wake_waiting(now: datetime) -> int:
    stale = now - timedelta(seconds=WAKE_AGAIN_SECONDS)
    unheard = Q(woken_at=None, created_at__lt=now - timedelta(seconds=1)) | Q(woken_at__lt=stale) | Q(woken_at__gt=now)
    waiting = due_jobs(now).filter(unheard).order_by("priority", "id")
    woken = 0
    for pk in list(waiting.values_list("pk", flat=True)[:WAKES_A_ROUND]):
        if waiting.filter(pk=pk).update(woken_at=now) and wake_workers(pk):
            woken += 1
    return woken


def _post_recurring(now: datetime) -> None:
    turns = {
        f"recurring:{kind}:{int(now.timestamp() // every_seconds)}": kind
        for kind, every_seconds in settings.RECURRING_JOBS.items()
    }
    posted = set(Job.objects.filter(key__in=turns).values_list("key", flat=True))
    for key in turns.keys() - posted:
        post_job(turns[key], key=key, priority=BACKGROUND)

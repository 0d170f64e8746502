"""The worker's side: claim the next job, run it, and write how it ended."""

import logging
import os
import socket
import threading
from datetime import timedelta

from django.conf import settings
from django.db.models import F
from django.utils import timezone

from dashboard.jobs.claim import Claim, claim_next
from dashboard.jobs.kinds import known_kinds, load_work
from dashboard.jobs.lease import LeaseKeeper
from dashboard.jobs.run import (
    AttemptFailed,
    JobCancelled,
    JobFailed,
    JobPostponed,
    JobRun,
    LeaseLost,
    WorkerStopping,
)
from dashboard.models import Job, JobState

log = logging.getLogger(__name__)
worker_stopping = threading.Event()  # set once, when this process is told to end


def worker_name() -> str:
    return f"{socket.gethostname()}:{os.getpid()}:{threading.get_native_id()}"[:120]


def perform_due() -> int:
    """Works until nothing is due; how many jobs that were."""
    performed = 0
    while not worker_stopping.is_set():
        claim = claim_next(worker=worker_name(), kinds=known_kinds(), now=timezone.now())
        if claim is None:
            break
        perform(claim)
        performed += 1
    return performed


def perform(claim: Claim) -> None:
    job, run = claim.job, JobRun(claim, worker_stopping)
    facts = {"job": job.pk, "kind": job.kind, "attempt": job.attempts}
    log.info("job started", extra=facts)
    with LeaseKeeper(run):
        outcome = _work(run)
    log.info("job left", extra={**facts, "outcome": outcome})


def _work(run: JobRun) -> str:
    try:
        load_work(known_kinds()[run.claim.job.kind].path)(run)
        if not run.is_finished:
            with run.finishing():
                pass
    except WorkerStopping:
        return _put_off(run.claim, "given back")
    except JobPostponed as postponed:
        due_at = timezone.now() + timedelta(seconds=postponed.wait_seconds)
        return _put_off(run.claim, "postponed", due_at=due_at)
    except LeaseLost:
        return _note_rejection(run.claim)
    except (JobCancelled, JobFailed) as end:
        return _stop(run, end)
    except Exception as error:  # noqa: BLE001 (the edge: whatever a kind of work raises, the worker lives on)
        return _note_crash(run, error)
    return "done"


def _end(run: JobRun, state: JobState, *, error: str = "") -> str:
    return state.value if run.end(state, error=error) else _note_rejection(run.claim)


def _note_rejection(claim: Claim) -> str:
    """Counted where a person can see it; the row belongs to somebody else, so nothing more is written."""
    Job.objects.filter(pk=claim.job.pk).update(fence_rejections=F("fence_rejections") + 1)
    return "lease lost"


def _stop(run: JobRun, end: JobCancelled | JobFailed) -> str:
    if not isinstance(end, AttemptFailed) or run.claim.job.attempts >= settings.JOB_ATTEMPTS:
        state = JobState.CANCELLED if isinstance(end, JobCancelled) else JobState.FAILED
        return _end(run, state, error=str(end))
    _give_back(run.claim, due_at=timezone.now() + end.pause, last_error=str(end)[:500])
    return "failed, to be tried again"


def _note_crash(run: JobRun, error: Exception) -> str:
    """The class alone is stored: messages of errors may quote content. The log has the frames."""
    job = run.claim.job
    log.error("job raised", exc_info=error, extra={"job": job.pk, "kind": job.kind})
    told = f"{type(error).__module__}.{type(error).__qualname__}"
    if job.attempts >= settings.JOB_ATTEMPTS:
        return _end(run, JobState.DEAD, error=told)
    pause = timedelta(seconds=min(2**job.attempts, settings.JOB_BACKOFF_LIMIT_SECONDS))
    _give_back(run.claim, due_at=timezone.now() + pause, last_error=told)
    return "raised"


def _put_off(claim: Claim, outcome: str, **changes: object) -> str:
    """Back to the queue without blame."""
    _give_back(claim, attempts=F("attempts") - 1, **changes)
    return outcome


def _give_back(claim: Claim, **changes: object) -> None:
    claim.held().update(state=JobState.QUEUED, lease_until=None, worker="", **changes)

"""The ends of a run without a result: failed or cancelled, its money settled, and nothing left open behind a dead job.

A run ends once: every end is a conditional update of an open run, and only whoever made it settles.
"""

from datetime import datetime

from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils import timezone

from compaction.ports import Stage
from dashboard.hooks.notices import tell_end
from dashboard.jobs.run import JobRun
from dashboard.models import CompactionRun, JobState, RunState
from dashboard.runs.attempt_rows import close_lost_attempts
from dashboard.runs.change_notes import tell_pages
from dashboard.runs.spend import settle

OPEN_STATES = [RunState.QUEUED, RunState.RUNNING]
WORKER_LOST = "worker_lost"
WORKER_LOST_SENTENCE = "The run was given up: it ended its worker, or failed without a reason it could name, too often."


def close_run(run_id: int, state: RunState, *, now: datetime, code: str = "", sentence: str = "") -> bool:
    """False when it had ended already. To be called inside a transaction."""
    closed = CompactionRun.objects.filter(pk=run_id, state__in=OPEN_STATES).update(
        state=state,
        stage=Stage.CANCELLED if state is RunState.CANCELLED else Stage.FAILED,
        stage_at=now,
        finished_at=now,
        failure_code=code[:40],
        failure_sentence=sentence[:500],
    )
    if closed:
        settle_run(run_id)
        tell_pages(run_id)
    return bool(closed)


def settle_run(run_id: int) -> None:
    """Whatever is still held back for a run that has ended is given back to its day, and whoever waits is told."""
    close_lost_attempts(run_id)
    run = CompactionRun.objects.select_for_update(of=("self",)).select_related("team").get(pk=run_id)
    CompactionRun.objects.filter(pk=run_id).update(reserved_usd=0)
    settle(run.team, now=run.created_at, released_usd=run.reserved_usd)
    tell_end(run)


def list_stranded() -> QuerySet[CompactionRun]:
    """Open runs that nobody will go on with: their job is gone, dead, or was ended on the jobs page."""
    return CompactionRun.objects.filter(Q(job=None) | Q(job__state__in=JobState.finished()), state__in=OPEN_STATES)


def close_stranded(stranded: QuerySet[CompactionRun], *, now: datetime) -> int:
    """How many were closed. Safe at any moment and by anybody: pages and the recurring check do it."""
    closed = 0
    for run_id, job_state in stranded.values_list("pk", "job__state"):
        with transaction.atomic():
            if job_state == JobState.CANCELLED:
                closed += close_run(run_id, RunState.CANCELLED, now=now)
            else:
                closed += close_run(run_id, RunState.FAILED, now=now, code=WORKER_LOST, sentence=WORKER_LOST_SENTENCE)
    return closed


def end_stranded_runs(job: JobRun) -> None:
    """The recurring job: what no page has looked at."""
    with job.finishing() as result:
        result["runs"] = close_stranded(list_stranded(), now=timezone.now())

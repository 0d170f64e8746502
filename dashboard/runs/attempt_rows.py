"""Every request of a run to a model, written down before it is sent and filled in when it ended, with its money.

A row in flight is closed once, by whoever changes it first: the worker that sent it, or whoever finds that worker lost.
"""

from decimal import Decimal

from django.db import transaction
from django.db.models import Max

from compaction.context.call_costs import compute_cost
from compaction.transcripts.entries import Usage
from dashboard.jobs.run import JobRun
from dashboard.models import CompactionRun, RunAttempt
from dashboard.runs.attempts import COUNT_PATH, AttemptReport
from dashboard.runs.spend import NOTHING, reserve, settle
from dashboard.runs.team_settings import SummarizerChoice

IN_FLIGHT = "in_flight"
LOST = "worker_lost"
LOST_SENTENCE = "The worker was lost while the model wrote. What it cost is not known; the most it may cost is counted."


class AttemptBook:
    """The attempts of one run in one worker: at most one is in flight."""

    def __init__(self, job: JobRun, run_id: int, settings: SummarizerChoice) -> None:
        self._job, self._run_id, self._settings = job, run_id, settings
        self._in_flight: int | None = None

    def open(self, *, path: str, model: str, most_usd: Decimal) -> None:
        """Under the fence. Holds back what this request may cost at most; raises CapReached where that is too much."""
        with self._job.writing():
            run = CompactionRun.objects.select_for_update(of=("self",)).select_related("team").get(pk=self._run_id)
            missing_usd = most_usd - run.reserved_usd
            if missing_usd > 0:
                CompactionRun.objects.filter(pk=run.pk).update(reserved_usd=most_usd)
                reserve(run.team, missing_usd, self._settings.daily_cap_usd, now=run.created_at)
            row = RunAttempt(run=run, number=_find_next_number(run.pk), path=path, model=model, failure_code=IN_FLIGHT)
            row.save()
        self._in_flight = row.pk

    def note(self, report: AttemptReport) -> None:
        """How the request in flight ended, told once; or one beside it that only counted tokens."""
        if report.path == COUNT_PATH:
            self._add_count(report)
        elif self._in_flight is not None:
            close_attempt(self._in_flight, report, find_attempt_cost(report, self._settings))
            self._in_flight = None

    def _add_count(self, report: AttemptReport) -> None:
        with self._job.writing():
            row = RunAttempt(run_id=self._run_id, number=_find_next_number(self._run_id))
            for name, value in _list_columns(report).items():
                setattr(row, name, value)
            row.path = report.path
            row.save()


def find_attempt_cost(report: AttemptReport, settings: SummarizerChoice) -> Decimal | None:
    """None where nothing was used, or the model has no known price."""
    if report.usage == Usage():
        return None
    cost = compute_cost(report.usage, report.model, report.at, team_price=settings.find_own_price(report.model))
    return cost.total_usd if cost else None


def close_attempt(pk: int, report: AttemptReport, cost_usd: Decimal | None) -> bool:
    """Not under the fence: a request that was paid for is written down even by a worker that has lost its lease."""
    with transaction.atomic():
        rows = RunAttempt.objects.filter(pk=pk, failure_code=IN_FLIGHT)
        closed = rows.update(**_list_columns(report), cost_usd=cost_usd)
        if closed and cost_usd:
            _pay(RunAttempt.objects.values_list("run_id", flat=True).get(pk=pk), cost_usd)
    return bool(closed)


def close_lost_attempts(run_id: int) -> None:
    """What was in flight when its worker was lost may have been paid for: the most it may cost is counted."""
    for pk in RunAttempt.objects.filter(run_id=run_id, failure_code=IN_FLIGHT).values_list("pk", flat=True):
        with transaction.atomic():
            held_usd = CompactionRun.objects.values_list("reserved_usd", flat=True).get(pk=run_id)
            rows = RunAttempt.objects.filter(pk=pk, failure_code=IN_FLIGHT)
            if rows.update(failure_code=LOST, failure_sentence=LOST_SENTENCE, cost_usd=held_usd):
                _pay(run_id, held_usd)


def _pay(run_id: int, cost_usd: Decimal) -> None:
    """From what is held back for the run, as far as that goes."""
    run = CompactionRun.objects.select_for_update(of=("self",)).select_related("team").get(pk=run_id)
    released_usd = min(run.reserved_usd, cost_usd)
    CompactionRun.objects.filter(pk=run_id).update(
        reserved_usd=max(NOTHING, run.reserved_usd - cost_usd), spent_usd=run.spent_usd + cost_usd
    )
    settle(run.team, now=run.created_at, released_usd=released_usd, spent_usd=cost_usd)


def _find_next_number(run_id: int) -> int:
    last = RunAttempt.objects.filter(run_id=run_id).aggregate(last=Max("number"))["last"]
    return (last or 0) + 1


def _list_columns(report: AttemptReport) -> dict[str, object]:
    usage = report.usage.billed
    return {
        "model": report.model[:200],
        "message_id": report.message_id[:200],
        "request_id": report.request_id[:200],
        "at": report.at,
        "duration_seconds": report.duration_seconds,
        "input_tokens": usage.input_tokens,
        "read_tokens": usage.cache_read_tokens,
        "write_5m_tokens": usage.cache_creation_tokens - usage.cache_creation_1h_tokens,
        "write_1h_tokens": usage.cache_creation_1h_tokens,
        "output_tokens": usage.output_tokens,
        "failure_code": report.failure_code[:40],
        "failure_sentence": report.failure_sentence[:500],
    }

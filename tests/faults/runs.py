"""Compactions that die or wait where their instructions say: "die at restoring" ends the worker there, once."""

import os
import signal
import time
from datetime import datetime
from pathlib import Path

from compaction.compactors.outcome import CompactionOutcome
from compaction.errors import CompactionCancelled
from compaction.ports import Monitor, Stage, SummaryAnswer, SummaryRequest
from dashboard.ingest.audit_rows import AuditReport
from dashboard.jobs.run import JobRun
from dashboard.models import CompactionRun, Team
from dashboard.runs import perform
from dashboard.runs.attempt_rows import AttemptBook
from dashboard.runs.attempts import AttemptReport, NoteAttempt
from dashboard.runs.fork_terms import ForkTerms
from dashboard.runs.monitor import RunMonitor
from dashboard.runs.outcome_rows import keep_outcome
from tests.dashboard.runs.scripted import answer

STEP_SECONDS = 0.05
# Every stage as it is entered, and the moments between them that matter.
DEATHS = (
    "preparing",
    "summarising",
    "while the model writes",
    "after the answer",
    "validating",
    "restoring",
    "post-hooks",
    "in the last transaction",
    "after the last transaction",
)
WAITS = ("pre-hooks", "preparing", "summarising", "while the model writes", "validating", "restoring", "post-hooks")


def meet(run_id: int, place: str) -> None:
    """Dies here if that is what the run is for and it has not been done yet; waits here until it is cancelled."""
    if CompactionRun.objects.values_list("instructions", flat=True).get(pk=run_id) != f"die at {place}":
        return
    mark = Path(os.environ["PLIMSOLL_TEST_DEATHS"]) / f"{run_id}"
    try:
        mark.touch(exist_ok=False)
    except FileExistsError:
        return
    os.kill(os.getpid(), signal.SIGKILL)


class MortalMonitor(RunMonitor):
    def enter_stage(self, stage: Stage) -> None:
        super().enter_stage(stage)
        meet(self._run_id, stage.value)
        told = CompactionRun.objects.values_list("instructions", flat=True).get(pk=self._run_id)
        while told == f"wait at {stage.value}" and not self.is_cancelled():
            time.sleep(STEP_SECONDS)


class MortalSummarizer:
    def summarize(self, request: SummaryRequest, monitor: Monitor) -> SummaryAnswer:
        assert isinstance(monitor, MortalMonitor)
        meet(monitor._run_id, "while the model writes")
        while "wait at while the model writes" in request.prompt:
            monitor.keep_alive(100)
            if monitor.is_cancelled():
                raise CompactionCancelled
            time.sleep(STEP_SECONDS)
        return answer()


def open_summarizer(_team: Team, _note_attempt: NoteAttempt, _terms: ForkTerms) -> MortalSummarizer:
    return MortalSummarizer()


class MortalBook(AttemptBook):
    def note(self, report: AttemptReport) -> None:
        super().note(report)
        meet(self._run_id, "after the answer")


def keep_or_die(
    run: CompactionRun, outcome: CompactionOutcome, report: AuditReport, *, now: datetime, counted_tokens: int | None
) -> None:
    keep_outcome(run, outcome, report, now=now, counted_tokens=counted_tokens)
    meet(run.pk, "in the last transaction")


def perform_run(job: JobRun) -> None:
    for name, mortal in (("RunMonitor", MortalMonitor), ("AttemptBook", MortalBook), ("keep_outcome", keep_or_die)):
        setattr(perform, name, mortal)
    perform.perform_run(job)
    meet(int(str(job.payload["run"])), "after the last transaction")

"""Who watches a run while the engine works: stages and progress go to its row, events to the log, a cancel comes in."""

import logging
import time

from django.db import DatabaseError
from django.utils import timezone

from compaction.events import Event
from compaction.ports import Stage
from dashboard.jobs.run import JobRun
from dashboard.models import CompactionRun, RunState
from dashboard.runs.change_notes import tell_pages

PROGRESS_EVERY_SECONDS = 1.0
_ENDS = frozenset({Stage.DONE, Stage.FAILED, Stage.CANCELLED})

log = logging.getLogger(__name__)


class RunMonitor:
    """Writes under the fence: a worker that has lost its lease changes nothing any more."""

    def __init__(self, job: JobRun, run_id: int) -> None:
        self._job, self._run_id = job, run_id
        self._told_at = 0.0

    def enter_stage(self, stage: Stage) -> None:
        """Ends are written with the result, or with the failure, not here."""
        if stage in _ENDS:
            return
        with self._job.writing():
            CompactionRun.objects.filter(pk=self._run_id).update(
                stage=stage, stage_at=timezone.now(), state=RunState.RUNNING, written_tokens=0
            )
            tell_pages(self._run_id)
        self._job.report(note=stage.value)

    def keep_alive(self, output_tokens: int) -> None:
        """At most once a second; progress that cannot be written is no reason to give up a summary."""
        if time.monotonic() - self._told_at < PROGRESS_EVERY_SECONDS:
            return
        self._told_at = time.monotonic()
        try:
            CompactionRun.objects.filter(pk=self._run_id).update(written_tokens=output_tokens)
        except DatabaseError as error:
            log.warning("progress not written", extra={"run": self._run_id, "error": type(error).__name__})

    def record_event(self, event: Event) -> None:
        log.info(event.name, extra={**event.to_fields(), "run": self._run_id})

    def is_cancelled(self) -> bool:
        """Also when the work may not go on for another reason: what it is, JobRun.check tells."""
        return self._job.cancelled.is_set() or self._job.lost.is_set() or self._job.worker_stopping.is_set()

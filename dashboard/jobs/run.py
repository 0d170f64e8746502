"""What a piece of work is handed: its job, and the ways to report, to be stopped, and to write under the fence."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta

from django.db import transaction
from django.utils import timezone

from dashboard.jobs.claim import Claim, lease_end
from dashboard.models import JobState


class JobStopped(Exception):
    """The work must not go on; raised by JobRun.check and by writes under the fence."""


class LeaseLost(JobStopped):
    """Another worker has the job, or may have: nothing of this run was written."""


class JobCancelled(JobStopped):
    """A person asked for it."""


class WorkerStopping(JobStopped):
    """The process is told to end; the job goes back to the queue and costs no attempt."""


class JobPostponed(JobStopped):
    """It waits for something else; the job goes back to the queue for so long and costs no attempt."""

    def __init__(self, wait_seconds: float) -> None:
        super().__init__()
        self.wait_seconds = wait_seconds


class JobFailed(Exception):
    """The work itself says that it cannot be done; trying again would not help. The message is for people."""


class AttemptFailed(JobFailed):
    """It could not be done now, and may be later: tried again after `pause`, until its attempts are used up. The
    message is for people."""

    def __init__(self, sentence: str, *, pause: timedelta) -> None:
        super().__init__(sentence)
        self.pause = pause


@dataclass
class Progress:
    done: int | None = None
    total: int | None = None
    note: str = ""
    is_news: bool = False


@dataclass
class JobRun:
    claim: Claim
    worker_stopping: threading.Event
    cancelled: threading.Event = field(default_factory=threading.Event)
    lost: threading.Event = field(default_factory=threading.Event)
    progress: Progress = field(default_factory=Progress)
    is_finished: bool = False

    @property
    def payload(self) -> dict[str, object]:
        payload: dict[str, object] = self.claim.job.payload
        return payload

    def check(self) -> None:
        """To be called between steps of long work."""
        if self.lost.is_set():
            raise LeaseLost
        if self.cancelled.is_set():
            raise JobCancelled
        if self.worker_stopping.is_set():
            raise WorkerStopping

    def report(self, *, done: int | None = None, total: int | None = None, note: str = "") -> None:
        """Kept here and written together with the lease: work may call it as often as it likes."""
        self.progress = Progress(done, total, note[:200], is_news=True)

    @contextmanager
    def writing(self) -> Iterator[None]:
        """A transaction for a part of the effects, which must be repeatable: the job goes on after it."""
        with transaction.atomic():
            self._require(self.claim.held().update(lease_until=lease_end(timezone.now())))
            yield

    @contextmanager
    def finishing(self, result: dict[str, object] | None = None) -> Iterator[dict[str, object]]:
        """The transaction that holds the effects and `done`: both or neither. `result` may be filled inside."""
        told = result if result is not None else {}
        with transaction.atomic():
            # The fence first: on PostgreSQL the row stays locked, so nobody can take the job while effects are written.
            self._require(self.claim.held().update(lease_until=lease_end(timezone.now())))
            yield told
            self._require(self.end(JobState.DONE, result=told))
        self.is_finished = True

    def end(self, state: JobState, *, result: dict[str, object] | None = None, error: str = "") -> int:
        return self.claim.held().update(
            state=state,
            finished_at=timezone.now(),
            lease_until=None,
            result=result,
            last_error=error[:500],
            progress_done=self.progress.done,
            progress_total=self.progress.total,
            progress_note=self.progress.note,
        )

    def _require(self, rows: int) -> None:
        if not rows:
            self.lost.set()
            raise LeaseLost

"""Keeping a lease while work runs: a thread that renews it, carries progress out and a cancel in."""

import logging
import threading
import time
from types import TracebackType

from django.conf import settings
from django.db import DatabaseError, connection
from django.utils import timezone

from dashboard.jobs.claim import lease_end
from dashboard.jobs.run import JobRun

PROGRESS_EVERY_SECONDS = 1.0

log = logging.getLogger(__name__)


class LeaseKeeper:
    """`with LeaseKeeper(run):` around the work."""

    def __init__(self, run: JobRun) -> None:
        self.run = run
        self._over = threading.Event()
        self._renew_every = settings.JOB_LEASE_SECONDS / 3
        self._renewed_at = time.monotonic()
        self._thread = threading.Thread(target=self._keep, name=f"lease of job {run.claim.job.pk}", daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()

    def _keep(self) -> None:
        try:
            while not self._over.wait(min(PROGRESS_EVERY_SECONDS, self._renew_every)):
                if self.run.lost.is_set():
                    return
                self._tell_and_ask()
        finally:
            connection.close()

    def _tell_and_ask(self) -> None:
        due = time.monotonic() - self._renewed_at >= self._renew_every
        try:
            if due or self.run.progress.is_news:
                self._renew()
            elif self.run.claim.held().filter(cancel_requested_at__isnull=False).exists():
                self.run.cancelled.set()
        except DatabaseError as error:
            # Locked or away for a moment: the lease has time left, the next round tries again.
            log.warning("lease not renewed", extra={"job": self.run.claim.job.pk, "error": type(error).__name__})
            if time.monotonic() - self._renewed_at > settings.JOB_LEASE_SECONDS:
                self.run.lost.set()

    def _renew(self) -> None:
        progress = self.run.progress
        progress.is_news = False
        began = time.monotonic()
        held = self.run.claim.held().update(
            lease_until=lease_end(timezone.now()),
            progress_done=progress.done,
            progress_total=progress.total,
            progress_note=progress.note,
        )
        if not held:
            self.run.lost.set()
            return
        self._renewed_at = began
        if self.run.claim.held().filter(cancel_requested_at__isnull=False).exists():
            self.run.cancelled.set()

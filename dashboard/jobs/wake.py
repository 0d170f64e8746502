"""Telling the workers that there is work. A wake-up may get lost: the sweeper and the workers look for themselves."""

import logging
import time

from kombu.exceptions import OperationalError

from dashboard.celery import WAKE_TASK, app

# While the broker is away, requests do not wait for it again and again.
SILENT_AFTER_FAILURE_SECONDS = 5.0

log = logging.getLogger(__name__)
_silent_until = 0.0


def wake_workers(job_id: int) -> bool:
    """False when the broker could not be told; the job is due all the same."""
    global _silent_until  # noqa: PLW0603 (one broker per process)
    if time.monotonic() < _silent_until:
        return False
    try:
        app.send_task(WAKE_TASK, args=[job_id], ignore_result=True, retry=False)
    except (OperationalError, OSError) as error:
        _silent_until = time.monotonic() + SILENT_AFTER_FAILURE_SECONDS
        log.warning("broker cannot be reached", extra={"job": job_id, "error": type(error).__name__})
        return False
    return True

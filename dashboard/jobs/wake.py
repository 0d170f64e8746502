"""Telling the workers that there is work. A wake-up may get lost: the sweeper and the workers look for themselves."""

import logging
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache

from django.utils.module_loading import import_string

# By its path: Celery takes longer to load than most commands run, and few of them post a job.
SENDER = "dashboard.celery.send_wake_up"
# While the broker is away, wake-ups are dropped instead of waiting for it again and again.
SILENT_AFTER_FAILURE_SECONDS = 5.0

log = logging.getLogger(__name__)
_silent_until = 0.0
# One thread: requests never wait for the broker. At exit Python waits for what was submitted before.
_sending = ThreadPoolExecutor(1, thread_name_prefix="wake-up")


def wake_workers_soon(job_id: int) -> None:
    """Send the wake-up in the background. The job is due whether it arrives or not."""
    _sending.submit(_wake_and_log, job_id)


def _wake_and_log(job_id: int) -> None:
    try:
        wake_workers(job_id)
    except Exception:  # nobody looks at the future
        log.exception("wake-up failed", extra={"job": job_id})


def wake_workers(job_id: int) -> bool:
    """False when the broker could not be told; the job is due all the same."""
    global _silent_until  # noqa: PLW0603 (one broker per process)
    if time.monotonic() < _silent_until:
        return False
    try:
        load_sender()(job_id)
    except OSError as error:
        _silent_until = time.monotonic() + SILENT_AFTER_FAILURE_SECONDS
        log.warning("broker cannot be reached", extra={"job": job_id, "error": type(error).__name__})
        return False
    return True


@cache
def load_sender() -> Callable[[int], None]:
    """Makes the folders of a broker without a server, too."""
    sender: Callable[[int], None] = import_string(SENDER)
    return sender

"""The sweeper process: a round every second, the first at once."""

import logging
import signal
import threading

from django.db import DatabaseError, connection
from django.utils import timezone

from dashboard.jobs.sweep import sweep
from dashboard.jobs.wake import load_sender

ROUND_EVERY_SECONDS = 1.0

log = logging.getLogger(__name__)


def run_sweeper() -> None:
    load_sender()  # not while it wakes: a broker's folder that went away meanwhile must be missed, not made anew
    stopping = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda _number, _frame: stopping.set())
    while True:
        try:
            sweep(timezone.now())
        except DatabaseError as error:
            # Locked or away: nothing is lost by a missed round, the next one sees the same rows.
            log.warning("round missed", extra={"error": type(error).__name__})
            connection.close()
        if stopping.wait(ROUND_EVERY_SECONDS):
            return

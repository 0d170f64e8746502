"""The sweeper process: a round every second, the first at once."""

import logging
import signal
import threading

from django.db import DatabaseError, connection
from django.utils import timezone

from dashboard.jobs.sweep import sweep

ROUND_EVERY_SECONDS = 1.0

log = logging.getLogger(__name__)


def run_sweeper() -> None:
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

"""The worker process: Celery's consumer for wake-ups, and a lookout that needs no broker."""

import logging
import signal
import threading
from types import FrameType

from celery.worker import WorkController, state
from django.conf import settings
from django.db import DatabaseError, connection

from dashboard.celery import app
from dashboard.jobs.perform import perform_due, worker_stopping

# With the broker away or its messages lost, a due job still starts within this time.
LOOK_EVERY_SECONDS = 2.0
LISTEN_AGAIN_SECONDS = 1.0

log = logging.getLogger(__name__)


def run_worker() -> None:
    """Returns after an orderly stop: jobs that check for it are given back, the others are waited for."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _ask_to_stop)
    lookout = threading.Thread(target=_look_out, name="lookout")
    lookout.start()
    try:
        while not worker_stopping.is_set():
            _listen()
            # Celery gives up by itself when the broker's folder is gone or a message cannot be read: it begins anew.
            worker_stopping.wait(LISTEN_AGAIN_SECONDS)
    finally:
        worker_stopping.set()
        lookout.join()


def _listen() -> None:
    # Celery's controller without its command line, which writes to the terminal and warns about root.
    WorkController(
        app=app,
        pool="threads",
        concurrency=settings.WORKER_THREADS,
        without_gossip=True,
        without_mingle=True,
        without_heartbeat=True,
    ).start()


def _ask_to_stop(_number: int, _frame: FrameType | None) -> None:
    worker_stopping.set()
    state.should_stop = 0


def _look_out() -> None:
    while not worker_stopping.is_set():
        try:
            perform_due()
        except DatabaseError as error:
            log.warning("jobs cannot be read", extra={"error": type(error).__name__})
            connection.close()
        worker_stopping.wait(LOOK_EVERY_SECONDS)
    connection.close()

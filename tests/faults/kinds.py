"""Kinds of work for the fault tests. Each done job leaves a row in `effect`, where doubles can be seen."""

import os
import signal
import time
from pathlib import Path

from django.db import connection

from dashboard.jobs.run import JobRun

STEP_SECONDS = 0.02
IN_TRANSACTION_SECONDS = 0.005  # gives kill -9 a chance to strike between the effect and `done`


def plain(run: JobRun) -> None:
    time.sleep(float(str(run.payload.get("seconds", 0))))
    _finish(run)


def gated(run: JobRun) -> None:
    """Goes on when the gate opens, and looks at nothing else: the careless kind of work."""
    while not _gate(run).exists():
        time.sleep(STEP_SECONDS)
    _finish(run)


def patient(run: JobRun) -> None:
    """The same, but it can be stopped."""
    while not _gate(run).exists():
        run.check()
        time.sleep(STEP_SECONDS)
    _finish(run)


def gated_inside(run: JobRun) -> None:
    """Waits where it must not: with the transaction open."""
    with run.finishing():
        _leave_effect(run)
        while not _gate(run).exists():
            time.sleep(STEP_SECONDS)


def kill_worker(run: JobRun) -> None:
    time.sleep(float(str(run.payload.get("seconds", 0))))
    os.kill(os.getpid(), signal.SIGKILL)


def raise_error(run: JobRun) -> None:
    with run.finishing():
        _leave_effect(run)
        raise ZeroDivisionError


def tick(run: JobRun) -> None:
    plain(run)


def _gate(run: JobRun) -> Path:
    return Path(str(run.payload["gate"]))


def _finish(run: JobRun) -> None:
    with run.finishing():
        _leave_effect(run)
        time.sleep(IN_TRANSACTION_SECONDS)


def _leave_effect(run: JobRun) -> None:
    with connection.cursor() as cursor:
        cursor.execute("INSERT INTO effect (job) VALUES (%s)", [run.claim.job.key])

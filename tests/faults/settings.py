"""The product's settings with kinds of work that leave countable effects, and a clock that a test can shift."""

import os
from datetime import datetime, timedelta
from pathlib import Path

from django.utils import timezone

from dashboard.settings import *  # noqa: F403
from dashboard.settings import DATA

KINDS = ("plain", "gated", "gated_inside", "patient", "kill_worker", "raise_error", "tick")
_unknown = os.environ.get("PLIMSOLL_TEST_UNKNOWN_KINDS", "").split()
JOB_KINDS = {name: (f"tests.faults.kinds.{name}", name) for name in KINDS if name not in _unknown}
JOB_KINDS["compact"] = ("tests.faults.runs.perform_run", "compact")
JOB_KINDS |= {
    kind: (f"tests.faults.automation.{kind}", kind) for kind in ("answer_crossing", "take_notes", "deliver_notice")
}
PAID_SUMMARIZER = "tests.faults.runs.open_summarizer"
JOB_BACKOFF_LIMIT_SECONDS = 1
RECURRING_JOBS = {"tick": 1} if os.environ.get("PLIMSOLL_TEST_TICKS") else {}
BROKER_FOLDER = DATA / os.environ.get("PLIMSOLL_TEST_BROKER_FOLDER", "broker")

_true_now = timezone.now
_clock = Path(os.environ.get("PLIMSOLL_TEST_CLOCK", ""))


def _shifted_now() -> datetime:
    return _true_now() + timedelta(seconds=float(_clock.read_text()))


if _clock.is_file():
    timezone.now = _shifted_now

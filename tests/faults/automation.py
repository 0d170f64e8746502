"""Work that nobody asked for, mortal: each kind ends its worker once, where its work is done and not yet told."""

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dashboard.automation import answer, note_taking
from dashboard.hooks import delivery
from dashboard.jobs.run import JobRun

# The run is started and not linked to its crossing; the notes are written and not committed; the notice is sent and
# not noted.
PLACES: dict[str, tuple[Any, str]] = {
    "answer_crossing": (answer, "_start"),
    "take_notes": (note_taking, "keep_version"),
    "deliver_notice": (delivery, "note_taken"),
}


def answer_crossing(job: JobRun) -> None:
    _perform(job, "answer_crossing")


def take_notes(job: JobRun) -> None:
    _perform(job, "take_notes")


def deliver_notice(job: JobRun) -> None:
    _perform(job, "deliver_notice")


def _perform(job: JobRun, kind: str) -> None:
    module, name = PLACES[kind]
    act: Callable[..., Any] = getattr(module, name)

    def act_and_die(*arguments: Any, **named: Any) -> Any:
        done = act(*arguments, **named)
        _die_once(kind)
        return done

    setattr(module, name, act_and_die)
    try:
        getattr(module, kind)(job)
    finally:
        setattr(module, name, act)


def _die_once(kind: str) -> None:
    deaths = os.environ.get("PLIMSOLL_TEST_DEATHS")
    if deaths is None:
        return
    try:
        (Path(deaths) / kind).touch(exist_ok=False)
    except FileExistsError:
        return
    os.kill(os.getpid(), signal.SIGKILL)

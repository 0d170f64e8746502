"""Hooks of whoever runs this installation: Python functions of installed packages, entry points "plimsoll.hooks".

A function is called as `hook(event, call)` with what a webhook would be sent, and returns what one would answer.
"""

import copy
import logging
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import EntryPoint, entry_points

from django.db import connections

from dashboard.hooks.answers import BadAnswer
from dashboard.hooks.sending import LIMIT_SECONDS

GROUP = "plimsoll.hooks"
log = logging.getLogger(__name__)


@dataclass
class PythonCall:
    """A function that was called in a thread of its own. One that does not come back is left behind."""

    hook: EntryPoint
    event: str
    call: Mapping[str, object]
    _over: threading.Event = field(default_factory=threading.Event)
    _answer: object = None
    _failure: Exception | None = None
    _give_up_at: float = 0.0

    def start(self) -> "PythonCall":
        self._give_up_at = time.monotonic() + LIMIT_SECONDS
        threading.Thread(target=self._work, name=f"hook {self.hook.name}", daemon=True).start()
        return self

    def wait(self) -> object:
        """Raises BadAnswer with a sentence."""
        if not self._over.wait(max(0.0, self._give_up_at - time.monotonic())):
            raise BadAnswer(f"No response within {LIMIT_SECONDS:g} seconds.")
        if self._failure is not None:
            raise BadAnswer(f"Raised {type(self._failure).__name__}.") from self._failure
        return self._answer

    def _work(self) -> None:
        try:
            self._answer = self.hook.load()(self.event, copy.deepcopy(dict(self.call)))
        except Exception as error:
            log.error("hook raised", exc_info=error, extra={"hook": self.hook.name, "event": self.event})
            self._failure = error
        finally:
            connections.close_all()
            self._over.set()


def find_python_hooks() -> list[EntryPoint]:
    return sorted(entry_points(group=GROUP), key=lambda hook: hook.name)

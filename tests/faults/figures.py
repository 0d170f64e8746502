"""What the fault tests measured, as a table at the end of a run."""

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from tests.faults.installation import Installation

# Every figure at its full size takes minutes: each run has them small, PLIMSOLL_TEST_LONG=1 as promised.
IS_LONG = bool(os.environ.get("PLIMSOLL_TEST_LONG"))


@dataclass
class Figures:
    """Started with a test; `count` compares the effects in the database with the jobs that were posted."""

    case: str
    installation: Installation
    kills: int = 0
    jobs: int = 0
    lost: int = 0
    doubled: int = 0
    rejections: int = 0
    seconds: float = 0.0
    began: float = field(default_factory=time.monotonic)

    def count(self, posted: Sequence[str]) -> None:
        effects = self.installation.effects()
        self.jobs = len(posted)
        self.lost = len(set(posted) - effects.keys())
        self.doubled = effects.total() - len(effects)
        self.rejections = sum(row.fence_rejections for row in self.installation.jobs())
        self.seconds = time.monotonic() - self.began

    def line(self) -> str:
        numbers = f"{self.jobs:>5}{self.kills:>6}{self.lost:>5}{self.doubled:>8}{self.rejections:>11}"
        return f"{self.case:<34}{self.installation.name:<21}{numbers}{self.seconds:>9.1f}"


HEADING = f"{'case':<34}{'on':<21}{'jobs':>5}{'kills':>6}{'lost':>5}{'doubled':>8}{'rejections':>11}{'seconds':>9}"

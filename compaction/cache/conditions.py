"""Conditions that often precede a loss: how often a loss followed, and which of them count as causes.

None of them is a documented mechanism. Each was counted over the calls of real sessions and carries its rate;
`python -m bench.causes FOLDER` repeats the count.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from compaction.cache.causes import Cause
from compaction.timeline.preceding import Condition


@dataclass(frozen=True, slots=True)
class Rate:
    """How many of some calls lost their cache, and in how many sessions."""

    breaks: int
    calls: int
    sessions: int

    @property
    def share(self) -> float:
        return self.breaks / self.calls if self.calls else 0.0

    def __add__(self, other: "Rate") -> "Rate":
        return Rate(self.breaks + other.breaks, self.calls + other.calls, self.sessions + other.sessions)


@dataclass(frozen=True, slots=True)
class ConditionInfo:
    """One condition, how often a loss followed it in either half of the sessions, and its cause if that is proven.

    bench.causes defines when a cause is proven; a test applies the rule to every row.
    """

    text: str
    tuning: Rate
    checking: Rate
    cause: Cause | None = None

    @property
    def rate(self) -> Rate:
        """Return the rate over both halves."""
        return self.tuning + self.checking

    @property
    def rate_sentence(self) -> str:
        return f"lost in {self.rate.breaks} of {self.rate.calls} such calls"


# Counted by bench.causes over 148 real sessions (clients 1.0.24 to 2.1.114), split by session into a half to find
# conditions and a half to check them. Calls with an expected rebuild are left out, and so are calls with a cause that
# times, models and versions show; the base rate is that of the remaining calls. A condition is counted where none of
# the proven ones before it holds, because those are detected first.
BASE_TUNING, BASE_CHECKING = Rate(29, 3453, 18), Rate(54, 4609, 23)

CONDITIONS: Mapping[Condition, ConditionInfo] = {
    Condition.CLIENT_RESTARTED: ConditionInfo(
        "the client was restarted", Rate(3, 3, 3), Rate(5, 5, 5), Cause.CLIENT_RESTARTED
    ),
    Condition.TURN_WITHOUT_THINKING: ConditionInfo(
        "the model did not think in the previous turn, and either that turn had at least 20 blocks or the model had "
        "not thought in this conversation at all",
        Rate(10, 16, 10), Rate(18, 32, 12), Cause.TURN_WITHOUT_THINKING,
    ),
    Condition.COMMAND_STARTED: ConditionInfo(
        "a command or skill was started", Rate(7, 16, 7), Rate(9, 10, 6), Cause.COMMAND_STARTED
    ),
    Condition.LONG_TURN: ConditionInfo(
        "a new prompt followed a turn of at least 20 blocks", Rate(6, 69, 6), Rate(9, 108, 8)
    ),
    Condition.TOOLS_SEARCHED: ConditionInfo("tools were loaded on demand", Rate(0, 0, 0), Rate(3, 4, 1)),
    Condition.CALL_FAILED: ConditionInfo("a call failed and was retried", Rate(0, 0, 0), Rate(2, 2, 1)),
    Condition.INTERRUPTED: ConditionInfo("the model was interrupted", Rate(0, 8, 0), Rate(0, 15, 0)),
    Condition.PERMISSION_MODE_CHANGED: ConditionInfo("the permission mode was changed", Rate(1, 7, 1), Rate(1, 11, 1)),
}  # fmt: skip

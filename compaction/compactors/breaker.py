"""The breaker of one thread: stops automatic runs after three failures in a row."""

from dataclasses import dataclass, replace

from compaction.compactors.outcome import Trigger
from compaction.errors import AutomaticRunsPaused, BlockedByHook, CompactionCancelled, NothingToCompact, RunError
from compaction.events import BreakerClosed, BreakerOpened, Event

MAX_FAILURES_IN_A_ROW = 3  # the client's limit; before it had one, 1,279 sessions failed 50 times and more in a row

# Ends that do not predict the next run: a person or a rule decided against this one.
_NOT_COUNTED = (CompactionCancelled, BlockedByHook, NothingToCompact, AutomaticRunsPaused)


@dataclass(frozen=True, slots=True)
class Breaker:
    """Failures of automatic runs since the last success. Failures of the client's own compactions do not count."""

    failures: int = 0

    @property
    def is_open(self) -> bool:
        """Return whether automatic runs are stopped."""
        return self.failures >= MAX_FAILURES_IN_A_ROW

    def require_closed(self, trigger: Trigger) -> None:
        """Raise AutomaticRunsPaused for an automatic run while open. Manual runs are always allowed."""
        if self.is_open and trigger is not Trigger.MANUAL:
            raise AutomaticRunsPaused(self.failures)

    def after_success(self) -> "Breaker":
        """Return a closed breaker. The success of a manual run counts too."""
        return Breaker()

    def after_failure(self, error: RunError, trigger: Trigger) -> "Breaker":
        """Return the breaker with one more failure, if an automatic run failed for a reason that counts."""
        if trigger is Trigger.MANUAL or isinstance(error, _NOT_COUNTED):
            return self
        return replace(self, failures=self.failures + 1)


def list_breaker_events(
    before: Breaker, after: Breaker, *, session_id: str | None = None, agent_id: str | None = None
) -> tuple[Event, ...]:
    """Return the event of a breaker that opened or closed."""
    if after.is_open and not before.is_open:
        return (BreakerOpened(session_id=session_id, agent_id=agent_id, failures=after.failures),)
    if before.is_open and not after.is_open:
        return (BreakerClosed(session_id=session_id, agent_id=agent_id),)
    return ()

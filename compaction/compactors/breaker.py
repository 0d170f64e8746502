"""The breaker of one thread: after three failures of automatic runs in a row, no further one is let through."""

from dataclasses import dataclass, replace

from compaction.compactors.outcome import Trigger
from compaction.errors import AutomaticRunsPaused, BlockedByHook, CompactionCancelled, NothingToCompact, RunError
from compaction.events import BreakerClosed, BreakerOpened, Event

MOST_FAILURES = 3  # the client's limit; before it had one, 1,279 sessions failed 50 times and more in a row

# Ends that say nothing about whether the next run would work: somebody or something decided against this one.
_NOT_COUNTED = (CompactionCancelled, BlockedByHook, NothingToCompact, AutomaticRunsPaused)


@dataclass(frozen=True, slots=True)
class Breaker:
    """Failures of automatic runs since the last success. The client's own failures are not ours and do not count."""

    failures: int = 0

    @property
    def is_open(self) -> bool:
        """Whether automatic runs are held back."""
        return self.failures >= MOST_FAILURES

    def check(self, trigger: Trigger) -> None:
        """Raises AutomaticRunsPaused for an automatic run while open; a person may always try."""
        if self.is_open and trigger is not Trigger.MANUAL:
            raise AutomaticRunsPaused(self.failures)

    def note_success(self) -> "Breaker":
        """Closed: any success counts, a manual one too."""
        return Breaker()

    def note_failure(self, error: RunError, trigger: Trigger) -> "Breaker":
        """One more failure, if it was an automatic run's own."""
        if trigger is Trigger.MANUAL or isinstance(error, _NOT_COUNTED):
            return self
        return replace(self, failures=self.failures + 1)


def list_breaker_events(
    before: Breaker, after: Breaker, *, session_id: str | None = None, agent_id: str | None = None
) -> tuple[Event, ...]:
    """What the log is told when a breaker opened or closed."""
    if after.is_open and not before.is_open:
        return (BreakerOpened(session_id=session_id, agent_id=agent_id, failures=after.failures),)
    if before.is_open and not after.is_open:
        return (BreakerClosed(session_id=session_id, agent_id=agent_id),)
    return ()

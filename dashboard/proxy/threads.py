"""What the recorder remembers of a thread between two of its calls. No Django here."""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field

MOST_THREADS = 5_000

AccountName = tuple[int, int | None]  # team and account; None: a collector key
ThreadName = tuple[int, int | None, str, str]  # team, account, session, sub-agent


@dataclass(slots=True)
class KnownThread:
    """The last request that later ones can lean on, and what was told already."""

    request_id: str | None = None
    messages: tuple[str, ...] = ()
    shapes: set[str] = field(default_factory=set)
    cleared_tokens: int = 0


class KnownThreads:
    """A thread that is forgotten costs a longer row, nothing else."""

    def __init__(self, *, most_threads: int = MOST_THREADS) -> None:
        self._most = most_threads
        self._threads: OrderedDict[ThreadName, KnownThread] = OrderedDict()

    def find(self, name: ThreadName) -> KnownThread:
        known = self._threads.setdefault(name, KnownThread())
        self._threads.move_to_end(name)
        if len(self._threads) > self._most:
            self._threads.popitem(last=False)
        return known

    def forget(self, team_pk: int, owner_pk: int | None, session_id: str) -> None:
        """What was to be written was not: the next request must not lean on it."""
        for name in [each for each in self._threads if each[:3] == (team_pk, owner_pk, session_id)]:
            del self._threads[name]


def count_shared(before: Sequence[str], now: Sequence[str]) -> int:
    """How many messages two requests begin with alike."""
    if tuple(now[: len(before)]) == tuple(before):
        return len(before)
    pairs = zip(before, now, strict=False)
    return next((place for place, (old, new) in enumerate(pairs) if old != new), min(len(before), len(now)))

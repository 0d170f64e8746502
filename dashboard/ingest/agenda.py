"""Which followed file comes next: the one written to last, and later those that want another look. No Django."""

import heapq


class Agenda:
    """Paths now and paths later. A path is on it once, however often it is asked for."""

    def __init__(self) -> None:
        self._now: list[tuple[int, str]] = []
        self._waiting: dict[str, int] = {}
        self._later: dict[str, float] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    def want(self, path: str, *, modified_ns: int) -> None:
        self._later.pop(path, None)
        if modified_ns > self._waiting.get(path, -1):
            self._waiting[path] = modified_ns
            heapq.heappush(self._now, (-modified_ns, path))

    def want_later(self, path: str, *, at: float) -> None:
        """Does not move a path that waits already."""
        if path not in self._waiting:
            self._later[path] = at

    def drop(self, path: str) -> None:
        self._waiting.pop(path, None)
        self._later.pop(path, None)

    def take_due(self, now: float) -> list[str]:
        due = [path for path, at in self._later.items() if at <= now]
        for path in due:
            del self._later[path]
        return due

    def peek(self) -> str | None:
        """The most urgent one; it stays on the agenda until it is dropped, so that a failed look is repeated."""
        while self._now and self._now[0][1] not in self._waiting:
            heapq.heappop(self._now)
        return self._now[0][1] if self._now else None

    def next_at(self) -> float | None:
        return min(self._later.values(), default=None)

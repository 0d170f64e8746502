"""Calls per minute of each key: a bucket that fills evenly. Counted in each web process by itself."""

import time
from collections import OrderedDict
from collections.abc import Hashable

MOST_PURSES = 10_000


class Quotas:
    """`per_minute` 0: no limit."""

    def __init__(self, per_minute: int) -> None:
        self._per_minute = per_minute
        self._left: OrderedDict[Hashable, tuple[float, float]] = OrderedDict()  # purse -> calls left, when

    def take(self, purse: Hashable) -> int:
        """0 when the call may go; else the seconds to wait."""
        if not self._per_minute:
            return 0
        now = time.monotonic()
        left, at = self._left.get(purse, (float(self._per_minute), now))
        left = min(self._per_minute, left + (now - at) * self._per_minute / 60)
        wait_seconds = 0 if left >= 1 else max(1, round((1 - left) * 60 / self._per_minute))
        self._left[purse] = (left if wait_seconds else left - 1, now)
        self._left.move_to_end(purse)
        if len(self._left) > MOST_PURSES:
            self._left.popitem(last=False)
        return wait_seconds

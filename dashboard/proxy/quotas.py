"""Calls per minute of each key: a bucket that fills evenly. Counted in each web process by itself: a call through the
proxy waits for no database."""

import time
from collections import OrderedDict
from collections.abc import Hashable

from dashboard.accounts.key_quotas import Bucket

MOST_PURSES = 10_000


class Quotas:
    def __init__(self) -> None:
        self._buckets: OrderedDict[Hashable, tuple[Bucket, float]] = OrderedDict()  # purse -> what is left, when

    def take(self, purse: Hashable, per_minute: int) -> int:
        """0 when the call may go; else the seconds to wait. `per_minute` 0: no limit."""
        if not per_minute:
            return 0
        now = time.monotonic()
        bucket, at = self._buckets.get(purse, (None, now))
        if bucket is None or bucket.per_minute != per_minute:
            bucket = Bucket(per_minute, float(per_minute))
        bucket.fill(now - at)
        wait_seconds = bucket.count_wait()
        if not wait_seconds:
            bucket.left -= 1
        self._buckets[purse] = (bucket, now)
        self._buckets.move_to_end(purse)
        if len(self._buckets) > MOST_PURSES:
            self._buckets.popitem(last=False)
        return wait_seconds

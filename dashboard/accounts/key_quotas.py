"""How much a key may send: requests and bytes per minute, as buckets that fill evenly, one limit for all processes.

Counted in each web process without asking anybody; every few seconds a process writes down what it counted, learns
what the others did, and takes that off as well. So a request costs microseconds, and the limit is held to within what
arrives in those seconds. The proxy, which must not wait for a database, counts by itself (dashboard.proxy.quotas).
"""

import threading
import time
from collections import OrderedDict
from dataclasses import dataclass, field
from datetime import datetime

from django.conf import settings
from django.db import DatabaseError, InterfaceError, transaction
from django.db.models import F

from dashboard.models import ApiKey, KeyHour

SHARE_EVERY_SECONDS = 5.0
MOST_KEYS = 10_000
MIB = 1024 * 1024


class QuotaExceeded(Exception):
    """Nothing of the request was looked at; the message is for whoever reads the program's log."""

    def __init__(self, what: str, wait_seconds: int) -> None:
        super().__init__(f"Rate limit of this key exceeded: too many {what}. Try again in {wait_seconds} s.")
        self.wait_seconds = wait_seconds


@dataclass
class Bucket:
    """`per_minute` 0: no limit. May go below nothing: a large request goes when anything is left, and is paid off."""

    per_minute: int
    left: float

    def fill(self, seconds: float) -> None:
        self.left = min(float(self.per_minute), self.left + max(0.0, seconds) * self.per_minute / 60)

    def count_wait(self) -> int:
        """Seconds until something is left again; 0 now."""
        if not self.per_minute or self.left >= 1:
            return 0
        return max(1, round((1 - self.left) * 60 / self.per_minute))


@dataclass
class Account:
    """What one key may still send, and what this process has counted since it last told the others."""

    requests: Bucket
    bytes: Bucket
    at: float
    shared_at: float = -SHARE_EVERY_SECONDS
    request_count: int = 0
    byte_count: int = 0
    refused_count: int = 0
    hour_at: datetime | None = None
    known: tuple[int, int] = (0, 0)  # what all processes together had sent in this hour when we looked last


@dataclass
class KeyQuotas:
    _accounts: "OrderedDict[int, Account]" = field(default_factory=OrderedDict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self, key: ApiKey, size_bytes: int, *, now: datetime) -> None:
        """Raises QuotaExceeded."""
        limits = find_limits(key)
        with self._lock:
            account = self._find(key.pk, limits)
            refusal = _take(account, size_bytes)
            is_due = time.monotonic() - account.shared_at >= SHARE_EVERY_SECONDS
            if is_due:
                account.shared_at = time.monotonic()
        if is_due:
            self._share(key.pk, account, now=now)
        if refusal is not None:
            raise refusal

    def _share(self, key_pk: int, account: Account, *, now: datetime) -> None:
        """What is counted of the last seconds is lost with a process that dies, or when the database cannot be written:
        figures for people, and a quota that is a little too generous. The database is not waited for with the lock."""
        hour_at = now.replace(minute=0, second=0, microsecond=0)
        with self._lock:
            requests, size, refused = account.request_count, account.byte_count, account.refused_count
            account.request_count = account.byte_count = account.refused_count = 0
        try:
            with transaction.atomic():
                row, _ = KeyHour.objects.get_or_create(key_id=key_pk, hour_at=hour_at)
                KeyHour.objects.filter(pk=row.pk).update(
                    request_count=F("request_count") + requests,
                    byte_count=F("byte_count") + size,
                    refused_count=F("refused_count") + refused,
                )
        except (DatabaseError, InterfaceError):
            return
        with self._lock:
            before = account.known if account.hour_at == hour_at else (row.request_count, row.byte_count)
            account.requests.left -= row.request_count - before[0]
            account.bytes.left -= row.byte_count - before[1]
            account.hour_at, account.known = hour_at, (row.request_count + requests, row.byte_count + size)

    def _find(self, key_pk: int, limits: tuple[int, int]) -> Account:
        account = self._accounts.get(key_pk)
        if account is None or (account.requests.per_minute, account.bytes.per_minute) != limits:
            buckets = [Bucket(limit, float(limit)) for limit in limits]
            account = self._accounts[key_pk] = Account(buckets[0], buckets[1], time.monotonic())
        self._accounts.move_to_end(key_pk)
        if len(self._accounts) > MOST_KEYS:
            self._accounts.popitem(last=False)
        return account


QUOTAS = KeyQuotas()


def find_limits(key: ApiKey) -> tuple[int, int]:
    """Requests and bytes per minute; 0 for any number."""
    requests, mib = key.requests_per_minute, key.mib_per_minute
    return (
        settings.KEY_REQUESTS_PER_MINUTE if requests is None else requests,
        (settings.KEY_MIB_PER_MINUTE if mib is None else mib) * MIB,
    )


def _take(account: Account, size_bytes: int) -> QuotaExceeded | None:
    now = time.monotonic()
    for bucket in (account.requests, account.bytes):
        bucket.fill(now - account.at)
    account.at = now
    for what, bucket in (("requests", account.requests), ("bytes", account.bytes)):
        if wait_seconds := bucket.count_wait():
            account.refused_count += 1
            return QuotaExceeded(what, wait_seconds)
    account.requests.left -= 1
    account.bytes.left -= size_bytes
    account.request_count += 1
    account.byte_count += size_bytes
    return None

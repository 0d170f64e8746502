"""A team's keys with what each of them sent of late and what it may send."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import QuerySet, Sum

from dashboard.accounts.key_quotas import MIB, find_limits
from dashboard.models import ApiKey, KeyHour

SPAN = timedelta(hours=24)


@dataclass(frozen=True)
class KeyUse:
    """Of the last 24 hours; a limit of 0 is none."""

    key: ApiKey
    request_count: int
    byte_count: int
    refused_count: int
    requests_per_minute: int
    mib_per_minute: int


def list_key_use(keys: QuerySet[ApiKey], *, now: datetime) -> Iterator[KeyUse]:
    """Two queries."""
    recent = KeyHour.objects.filter(key__in=keys, hour_at__gt=now - SPAN).values("key")
    sums = recent.annotate(Sum("request_count"), Sum("byte_count"), Sum("refused_count"))
    used: dict[int, Mapping[str, Any]] = {row["key"]: row for row in sums}
    for key in keys:
        row, limits = used.get(key.pk, {}), find_limits(key)
        yield KeyUse(
            key=key,
            request_count=row.get("request_count__sum", 0),
            byte_count=row.get("byte_count__sum", 0),
            refused_count=row.get("refused_count__sum", 0),
            requests_per_minute=limits[0],
            mib_per_minute=limits[1] // MIB,
        )

"""Counting what arrived and was not kept, with the reason. Shown on the health page."""

from django.db.models import F
from django.utils import timezone

from dashboard.models import Drop, Team

LONGEST_REASON = 60  # as the model has them
LONGEST_DETAIL = 300


def count_drop(team: Team | None, *, source: str, reason: str, detail: str = "", count: int = 1) -> None:
    """`detail` says where (file and line), never what stood there."""
    row, _ = Drop.objects.get_or_create(team=team, source=source, reason=reason[:LONGEST_REASON])
    Drop.objects.filter(pk=row.pk).update(
        count=F("count") + count, last_at=timezone.now(), last_detail=detail[:LONGEST_DETAIL]
    )

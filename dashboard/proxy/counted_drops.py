"""Counting calls that are not recorded, each once: the recorder may get the same message again after it was killed."""

from collections.abc import Mapping

from django.db import transaction

from dashboard.ingest.intake import Origin, count_drops
from dashboard.models import DropReceipt


def count_drops_once(origin: Origin, reason: str, counts: Mapping[str, int]) -> None:
    """Add to the visible counters what each message (by its id) lost, unless it was counted before."""
    with transaction.atomic():
        counted = set(DropReceipt.objects.filter(message_id__in=counts).values_list("message_id", flat=True))
        new = {message_id: count for message_id, count in counts.items() if message_id not in counted}
        if new:
            DropReceipt.objects.bulk_create(DropReceipt(message_id=message_id) for message_id in new)
            count_drops(origin, {reason: sum(new.values())}, detail="")

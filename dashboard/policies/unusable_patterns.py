"""Stored redaction patterns that cannot be used any more, because an earlier version matched them with another engine.

While a team has one, its content is not stored.
"""

from django.db.models import Exists, OuterRef

from dashboard.ingest.redaction import find_unusable
from dashboard.models import TeamPolicy
from dashboard.policies.in_force import TeamSettings


def keeps_content(settings: TeamSettings) -> bool:
    """Whether content that arrives is stored under these settings."""
    return settings.stores_content and not find_unusable(settings.own_patterns)


def count_unusable() -> tuple[int, int]:
    """Return how many patterns in force cannot be used, and how many teams have them."""
    newer = TeamPolicy.objects.filter(team=OuterRef("team"), version__gt=OuterRef("version"))
    rows = TeamPolicy.objects.exclude(own_patterns={}).filter(~Exists(newer)).values_list("own_patterns", flat=True)
    counts = [len(find_unusable(patterns)) for patterns in rows]
    return sum(counts), sum(map(bool, counts))

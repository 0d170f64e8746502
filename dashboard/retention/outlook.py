"""What a team's retention would take away now: shown beside the days that were chosen."""

from dataclasses import dataclass
from datetime import datetime

from dashboard.models import Team
from dashboard.policies.in_force import TeamSettings
from dashboard.retention.forgetting import find_wordy_sessions
from dashboard.retention.rounds import GRACE, find_expired_sessions, is_in_grace


@dataclass(frozen=True)
class Outlook:
    """Sessions that lose words and sessions that go, with the next round of the job."""

    wordy_count: int
    expired_count: int
    begins_at: datetime | None  # while the decision can still be taken back


def look_ahead(team: Team, settings: TeamSettings, *, now: datetime) -> Outlook | None:
    """None while everything is kept."""
    content_since, metrics_since = settings.content_since(now), settings.metrics_since(now)
    if content_since is None and metrics_since is None:
        return None
    begins_at = settings.changed_at + GRACE if settings.changed_at and is_in_grace(settings, now) else None
    return Outlook(
        wordy_count=find_wordy_sessions(team, content_since).count() if content_since else 0,
        expired_count=find_expired_sessions(team, metrics_since).count() if metrics_since else 0,
        begins_at=begins_at,
    )

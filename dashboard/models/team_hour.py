"""What all sessions of a team cost in one hour, and which hours are to be added up again."""

from django.db import models

from dashboard.models.agent_session import usd_field
from dashboard.models.team import Team


class TeamHour(models.Model):
    """The sums of dashboard.models.SessionHour of an hour (UTC), as long as no ChangedHour says otherwise."""

    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="+")
    hour_at = models.DateTimeField()
    input_tokens = models.PositiveBigIntegerField(default=0)
    read_tokens = models.PositiveBigIntegerField(default=0)
    spent_usd = usd_field(default=0)
    lost_usd = usd_field(default=0)

    class Meta:
        constraints = [
            # Serves the days of the overview.
            models.UniqueConstraint(fields=["team", "hour_at"], name="team_hour_once"),
        ]

    def __str__(self) -> str:
        return f"team {self.team_id} at {self.hour_at:%Y-%m-%d %H}h"


class ChangedHour(models.Model):
    """A session's hour was written, by whom ever: a trigger notes it. Only added and removed, never changed, so that
    writers of different sessions do not wait for each other. No foreign key: a team goes before its hours do."""

    team_id = models.BigIntegerField()
    hour_at = models.DateTimeField()

    class Meta:
        indexes = [
            # Which hours of a team are to be added up from its sessions.
            models.Index(fields=["team_id", "hour_at"], name="changed_hour_of_team"),
        ]

    def __str__(self) -> str:
        return f"team {self.team_id} changed {self.hour_at:%Y-%m-%d %H}h"

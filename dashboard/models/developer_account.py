"""Which account a developer named by collected telemetry has."""

from django.db import models
from django.utils import timezone

from dashboard.models.team import Team
from dashboard.models.user import User


class DeveloperAccount(models.Model):
    """Sessions that a collector creates for this developer belong to the account from the start."""

    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="developer_accounts")
    developer = models.CharField(max_length=150)  # as the telemetry reports it: an e-mail address, an account id
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="+")
    assigned_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [
            # A developer has one account; serves the lookup for every session that a collector creates.
            models.UniqueConstraint(fields=["team", "developer"], name="developer_once_per_team"),
        ]

    def __str__(self) -> str:
        return f"{self.developer} is {self.user}"

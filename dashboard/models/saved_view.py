"""A list as somebody wants to see it again: its filters under a name, for themselves or for a team."""

from django.db import models
from django.utils import timezone

from dashboard.models.team import Team
from dashboard.models.user import User


class ListName(models.TextChoices):
    SESSIONS = "sessions"
    BREAKS = "breaks"
    COMPACTIONS = "compactions"


class SavedView(models.Model):
    owner = models.ForeignKey(User, on_delete=models.CASCADE, related_name="saved_views")
    team = models.ForeignKey(Team, on_delete=models.SET_NULL, null=True, blank=True, related_name="+")  # shared with it
    list_name = models.CharField(max_length=20, choices=ListName.choices)
    name = models.CharField(max_length=60)
    query = models.CharField(max_length=2000, blank=True)  # as it stands behind the question mark
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [
            # Saving under the same name twice changes the view; serves a person's own views of a list.
            models.UniqueConstraint(fields=["owner", "list_name", "name"], name="view_named_once"),
            models.CheckConstraint(condition=models.Q(list_name__in=ListName.values), name="view_of_known_list"),
        ]
        indexes = [
            # What the team's people share.
            models.Index(fields=["team", "list_name"], condition=models.Q(team__isnull=False), name="view_of_team"),
        ]

    def __str__(self) -> str:
        return f"{self.name} of {self.list_name}"

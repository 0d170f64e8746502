"""Links that bring a person into a team, once and for a limited time."""

from datetime import datetime

from django.db import models
from django.utils import timezone

from dashboard.models.team import Role, Team
from dashboard.models.user import User


class InvitationQuerySet(models.QuerySet["Invitation"]):
    def still_open(self, now: datetime) -> "InvitationQuerySet":
        return self.filter(accepted_at=None, revoked_at=None, expires_at__gt=now)


class Invitation(models.Model):
    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="invitations")
    role = models.CharField(max_length=10, choices=Role.choices)
    note = models.CharField(max_length=80, blank=True)  # for whom, in the inviter's words
    digest = models.BinaryField(max_length=32, unique=True)
    created_by = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField(default=timezone.now)
    expires_at = models.DateTimeField()
    accepted_at = models.DateTimeField(null=True, blank=True)
    accepted_by = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, blank=True, related_name="+")
    revoked_at = models.DateTimeField(null=True, blank=True)

    objects = InvitationQuerySet.as_manager()

    class Meta:
        indexes = [models.Index(fields=["team", "-created_at"], name="invitation_list_of_team")]
        constraints = [
            models.CheckConstraint(condition=models.Q(role__in=Role.values), name="invitation_known_role"),
        ]

    def __str__(self) -> str:
        return f"{self.role} in {self.team} until {self.expires_at:%Y-%m-%d}"

    @property
    def label(self) -> str:
        """What the audit log calls it."""
        return self.note or f"invitation {self.pk}"

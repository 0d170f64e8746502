"""Teams, and who belongs to them in which role."""

from django.db import models
from django.utils import timezone

from dashboard.models.user import User


class Team(models.Model):
    name = models.CharField(max_length=80)
    slug = models.SlugField(max_length=60, unique=True)
    is_local = models.BooleanField(default=False)  # the one team of an installation on a developer's own machine
    is_demo = models.BooleanField(default=False)  # invented, and removed with all it holds
    # Raised by every change of the team's own prices: sessions priced under another one are worked out again.
    price_version = models.PositiveIntegerField(default=0)
    has_own_prices = models.BooleanField(default=False)  # as the policy in force: what dollars are labelled with
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [
            # Two processes starting for the first time must not both make the local team.
            models.UniqueConstraint(fields=["is_local"], condition=models.Q(is_local=True), name="team_one_local"),
        ]

    def __str__(self) -> str:
        return self.name


class Role(models.TextChoices):
    VIEWER = "viewer"
    MEMBER = "member"
    ADMIN = "admin"
    OWNER = "owner"

    @property
    def rank(self) -> int:
        return list(Role).index(self)

    @property
    def with_article(self) -> str:
        """Return "a member" or "an owner"."""
        return f"{'an' if self in (Role.ADMIN, Role.OWNER) else 'a'} {self.value}"


class Membership(models.Model):
    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="memberships")
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="memberships")
    role = models.CharField(max_length=10, choices=Role.choices)
    content_grant = models.BooleanField(default=False)  # may read what other people's sessions say
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [
            # Accepting two invitations at once must not make two memberships; serves the team's member list.
            models.UniqueConstraint(fields=["team", "user"], name="membership_once_per_team"),
            models.CheckConstraint(condition=models.Q(role__in=Role.values), name="membership_known_role"),
        ]

    def __str__(self) -> str:
        return f"{self.user} in {self.team} as {self.role}"

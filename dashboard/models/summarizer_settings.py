"""What a team lets Plimsoll's own compactions use and spend: key, models, daily cap; and what each day took."""

from django.db import models
from django.utils import timezone

from dashboard.models.agent_session import usd_field
from dashboard.models.team import Team
from dashboard.models.user import User


class NativeForm(models.TextChoices):
    """Whether the API may compact conversations itself, and by which of its two betas."""

    OFF = "off"
    ON_DEMAND = "on_demand"
    THRESHOLD = "threshold"


class SummarizerSettings(models.Model):
    team = models.OneToOneField(Team, on_delete=models.CASCADE, related_name="summarizer_settings")
    key_sealed = models.BinaryField(null=True, blank=True)  # encrypted under a key made of the secret key; never shown
    key_hint = models.CharField(max_length=20, blank=True)  # the last characters, to tell keys apart
    model = models.CharField(max_length=200, blank=True)  # empty: the session's own where the small one will not do
    small_model = models.CharField(max_length=200, blank=True)
    allows_fork = models.BooleanField(default=True)
    native_form = models.CharField(max_length=10, choices=NativeForm.choices, default=NativeForm.OFF)
    daily_cap_usd = usd_field(default=5)
    changed_by = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, blank=True, related_name="+")
    changed_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=models.Q(native_form__in=NativeForm.values), name="summarizer_known_native_form"
            ),
        ]

    def __str__(self) -> str:
        return f"summariser of {self.team}"


class DaySpend(models.Model):
    """What a team's runs took on one UTC day. Reserved before a call, settled after it, by conditional updates."""

    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="day_spends")
    day = models.DateField()
    reserved_usd = usd_field(default=0)
    spent_usd = usd_field(default=0)

    class Meta:
        constraints = [
            # Twenty starts at once meet in one row; serves the lookup of today's.
            models.UniqueConstraint(fields=["team", "day"], name="spend_once_per_day"),
            models.CheckConstraint(condition=models.Q(reserved_usd__gte=0), name="spend_reserved_not_negative"),
        ]

    def __str__(self) -> str:
        return f"{self.team} on {self.day}"

"""Keys of programs. Only a digest is kept: the key itself is shown once, when it is made."""

from django.db import models
from django.utils import timezone

from dashboard.models.team import Team
from dashboard.models.user import User


class Scope(models.TextChoices):
    INGEST = "ingest"
    PROXY = "proxy"
    READ = "read"
    CONTENT = "content"
    COMPACT = "compact"
    ADMIN = "admin"


class ApiKey(models.Model):
    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="keys")
    owner = models.ForeignKey(User, on_delete=models.CASCADE, related_name="keys")
    name = models.CharField(max_length=80)
    prefix = models.CharField(max_length=24, unique=True)  # public part, finds the row; unique also serves that lookup
    digest = models.BinaryField(max_length=32)
    scopes = models.JSONField(default=list)
    # Shared by many people: what it sends belongs to no account until an admin assigns its developers.
    is_collector = models.BooleanField(default=False)
    created_at = models.DateTimeField(default=timezone.now)
    expires_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)
    # None: the installation's; 0: any number.
    requests_per_minute = models.PositiveIntegerField(null=True, blank=True)
    mib_per_minute = models.PositiveIntegerField(null=True, blank=True)

    class Meta:
        indexes = [models.Index(fields=["team", "-created_at"], name="api_key_list_of_team")]

    def __str__(self) -> str:
        return f"{self.name} ({self.prefix})"

    @property
    def may_collect(self) -> bool:
        """Whether many people may share the key: it can send, and do nothing else."""
        return set(self.scopes) <= {Scope.INGEST, Scope.PROXY}


class KeyHour(models.Model):
    """What one key sent in one hour (UTC), of all web processes together, and how often its quota refused it."""

    key = models.ForeignKey(ApiKey, on_delete=models.CASCADE, related_name="hours")
    hour_at = models.DateTimeField()
    request_count = models.PositiveBigIntegerField(default=0)
    byte_count = models.PositiveBigIntegerField(default=0)
    refused_count = models.PositiveBigIntegerField(default=0)

    class Meta:
        constraints = [
            # Processes that write at once meet in one row; serves the sums of the keys page.
            models.UniqueConstraint(fields=["key", "hour_at"], name="key_hour_once"),
        ]
        indexes = [
            # Housekeeping: what nobody looks at any more.
            models.Index(fields=["hour_at"], name="key_hour_by_time"),
        ]

    def __str__(self) -> str:
        return f"key {self.key_id} at {self.hour_at:%Y-%m-%d %H}h"

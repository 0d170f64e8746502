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
    created_at = models.DateTimeField(default=timezone.now)
    expires_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        indexes = [models.Index(fields=["team", "-created_at"], name="api_key_list_of_team")]

    def __str__(self) -> str:
        return f"{self.name} ({self.prefix})"

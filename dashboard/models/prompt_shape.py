"""The system prompt and tools of requests, kept once per team under a keyed hash of their text."""

from django.db import models
from django.utils import timezone

from dashboard.models.team import Team


class PromptShape(models.Model):
    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="shapes")
    digest = models.CharField(max_length=64)
    prints = models.JSONField()  # names, sizes and hashes: what breaks are judged by, readable without content
    content = models.BinaryField(null=True, blank=True)  # compressed and redacted; None: not stored
    is_redacted = models.BooleanField(default=False)  # something in it was taken out: it cannot be sent again as it was
    seen_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [
            # The same prompt of a thousand requests is one row.
            models.UniqueConstraint(fields=["team", "digest"], name="shape_once_per_team"),
        ]

    def __str__(self) -> str:
        return f"shape {self.digest}"

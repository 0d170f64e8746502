"""A call that lost its prompt cache: a break with its cause, or a rebuild that something announced."""

from django.db import models

from dashboard.models.agent_session import AgentSession, usd_field
from dashboard.models.team import Team


class LossKind(models.TextChoices):
    BREAK = "break"
    EXPECTED = "expected"


class CacheBreak(models.Model):
    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="+")
    session = models.ForeignKey(AgentSession, on_delete=models.CASCADE, related_name="breaks")
    agent_id = models.CharField(max_length=200, blank=True)
    call_id = models.CharField(max_length=200)
    previous_call_id = models.CharField(max_length=200, blank=True)
    call_number = models.PositiveIntegerField()
    kind = models.CharField(max_length=8, choices=LossKind.choices)
    is_counted = models.BooleanField(default=True)  # as its call
    at = models.DateTimeField()
    model = models.CharField(max_length=200, blank=True)

    cause = models.CharField(max_length=60)
    grade = models.CharField(max_length=20)  # who says so: api, client, request, inferred, unknown
    detail = models.CharField(max_length=1000, blank=True)
    # Further causes, contradictions, predicted against observed prefix: dashboard.ingest.losses writes and reads it.
    evidence = models.JSONField(default=dict)
    is_avoidable = models.BooleanField(default=False)
    gap_seconds = models.FloatField(null=True, blank=True)
    ttl = models.CharField(max_length=4, blank=True)
    expected_tokens = models.PositiveBigIntegerField(default=0)
    read_tokens = models.PositiveBigIntegerField(default=0)
    lost_tokens = models.PositiveBigIntegerField(default=0)
    recreated_tokens = models.PositiveBigIntegerField(default=0)
    lost_usd = usd_field(null=True, blank=True)  # None: the model's price is not known
    # What something on offer would have saved, net of what it would have cost (compaction.cache.avoidable). None:
    # nothing would have, or a price is not known.
    avoidable_usd = usd_field(null=True, blank=True)

    class Meta:
        constraints = [
            # Judging a thread again replaces the verdict on a call, it never adds one.
            models.UniqueConstraint(fields=["session", "call_id"], name="break_once_per_call"),
            models.CheckConstraint(condition=models.Q(kind__in=LossKind.values), name="break_known_kind"),
        ]
        indexes = [
            # The ledger and "newest breaks": a team's losses by time.
            models.Index(fields=["team", "kind", "-at", "-id"], name="break_by_time"),
            # The ledger by cause.
            models.Index(fields=["team", "kind", "cause", "-at"], name="break_by_cause"),
            # The ledger's sums over a period, answered without touching a row.
            models.Index(
                fields=[
                    *("team", "kind", "is_counted", "at", "is_avoidable", "cause", "grade", "model", "session"),
                    *("lost_tokens", "recreated_tokens", "lost_usd", "avoidable_usd"),
                ],
                name="break_ledger",
            ),
            # The tab of a session.
            models.Index(fields=["session", "at"], name="break_of_session"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} at call {self.call_id}: {self.cause}"

"""Addresses that a team has asked or told about compactions, and the one that a caller wants a run's end told to."""

from django.db import models
from django.utils import timezone

from dashboard.models.compaction_run import CompactionRun
from dashboard.models.team import Team
from dashboard.models.user import User


class HookEvent(models.TextChoices):
    """The first three are asked while a compaction runs, in the client's words; the others are told afterwards."""

    PRE_COMPACT = "PreCompact"
    SESSION_START = "SessionStart"
    POST_COMPACT = "PostCompact"
    RUN_FINISHED = "RunFinished"
    RUN_FAILED = "RunFailed"
    LINE_CROSSED = "LineCrossed"

    @property
    def is_question(self) -> bool:
        return self in (HookEvent.PRE_COMPACT, HookEvent.SESSION_START, HookEvent.POST_COMPACT)


class LastDelivery(models.Model):
    """How sending there went last: shown to those who look after it."""

    last_at = models.DateTimeField(null=True, blank=True)
    last_status = models.PositiveSmallIntegerField(null=True, blank=True)  # None: there was no answer
    last_error = models.CharField(max_length=300, blank=True)  # our own sentence; empty: it was taken
    failure_count = models.PositiveIntegerField(default=0)  # since it was last taken

    class Meta:
        abstract = True


class Webhook(LastDelivery):
    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="webhooks")
    name = models.CharField(max_length=80)
    url = models.CharField(max_length=500)
    events = models.JSONField(default=list)  # values of HookEvent
    sends_words = models.BooleanField(default=False)  # instructions and summaries, not numbers alone
    sealed_secret = models.BinaryField()
    is_active = models.BooleanField(default=True)
    created_by = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, blank=True, related_name="+")
    created_by_name = models.CharField(max_length=150, blank=True)
    created_at = models.DateTimeField(default=timezone.now)
    last_event = models.CharField(max_length=20, blank=True)

    class Meta:
        constraints = [
            # Notes on runs and the audit log tell webhooks apart by name.
            models.UniqueConstraint(fields=["team", "name"], name="webhook_once_per_name"),
        ]

    def __str__(self) -> str:
        return self.name


class RunCallback(LastDelivery):
    """Where the caller of the API wants to be told that a run has ended."""

    run = models.OneToOneField(CompactionRun, on_delete=models.CASCADE, related_name="callback")
    url = models.CharField(max_length=500)
    sealed_secret = models.BinaryField()
    delivered_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return f"callback of run {self.run_id}"

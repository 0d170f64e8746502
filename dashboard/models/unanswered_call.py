"""A call without an answer that counts: refused, failed, cut too early, without figures, or one that counted tokens."""

from django.db import models

from dashboard.models.agent_session import AgentSession
from dashboard.models.team import Team


class UnansweredKind(models.TextChoices):
    FAILED = "failed"
    COUNT = "count"
    UNMEASURED = "unmeasured"  # answered, but nobody says what it used


class UnansweredCall(models.Model):
    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="+")
    session = models.ForeignKey(AgentSession, on_delete=models.CASCADE, related_name="unanswered_calls")
    agent_id = models.CharField(max_length=200, blank=True)  # empty: the main conversation
    name = models.CharField(max_length=200)  # the request's id, else that of the line that tells of it
    kind = models.CharField(max_length=10, choices=UnansweredKind.choices)
    at = models.DateTimeField(null=True, blank=True)
    status = models.PositiveIntegerField(null=True, blank=True)  # of HTTP; None: nobody says
    reason = models.CharField(max_length=200, blank=True)  # the API's word for the error, else how the call ended
    attempt = models.PositiveIntegerField(null=True, blank=True)  # which retry the client made it
    model = models.CharField(max_length=200, blank=True)
    duration_seconds = models.FloatField(null=True, blank=True)
    counted_tokens = models.PositiveBigIntegerField(null=True, blank=True)
    source = models.CharField(max_length=20, blank=True)
    added = models.CharField(max_length=60, blank=True)  # what the proxy added to the request, by the team's wish

    class Meta:
        constraints = [
            # What is told twice, by the client and by the proxy, is one row.
            models.UniqueConstraint(fields=["session", "name"], name="unanswered_once_per_session"),
            models.CheckConstraint(condition=models.Q(kind__in=UnansweredKind.values), name="unanswered_known_kind"),
        ]
        indexes = [
            # The list on a session's page, newest first.
            models.Index(fields=["session", "kind", "-at"], name="unanswered_of_session"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} call {self.name}"

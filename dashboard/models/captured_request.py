"""The newest whole request of a thread, as it was sent: a summary asked for behind it finds its prefix in the cache."""

from django.db import models

from dashboard.models.agent_session import AgentSession


class CapturedRequest(models.Model):
    """Kept only where the team stores content and nothing had to be taken out: it must be repeated to the byte."""

    session = models.ForeignKey(AgentSession, on_delete=models.CASCADE, related_name="captured_requests")
    agent_id = models.CharField(max_length=200, blank=True)
    call_id = models.CharField(max_length=200)  # of the answer it got
    at = models.DateTimeField()  # when it was sent: the cache counts from then
    ttl = models.CharField(max_length=2, blank=True)  # 5m, 1h; empty: it marked nothing for the cache
    version = models.CharField(max_length=40, blank=True)  # its anthropic-version
    betas = models.JSONField(default=list)
    body = models.BinaryField(null=True, blank=True)  # compressed; None: it could not be kept, `refusal` says why
    refusal = models.CharField(max_length=20, blank=True)  # redacted, too large

    class Meta:
        constraints = [
            # A thread has one newest request; serves the start of a compaction.
            models.UniqueConstraint(fields=["session", "agent_id"], name="captured_once_per_thread"),
        ]

    def __str__(self) -> str:
        return f"request of {self.call_id}"

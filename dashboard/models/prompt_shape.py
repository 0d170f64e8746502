"""System prompts and tools of requests, kept once per account under a keyed hash of their text, and who uses them."""

from django.db import models
from django.utils import timezone

from dashboard.models.agent_session import AgentSession
from dashboard.models.team import Team


class PromptShape(models.Model):
    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="shapes")
    # The account that sent it, 0 for collectors: the digest is the sender's claim, and binds nobody else.
    account = models.PositiveBigIntegerField(default=0)
    digest = models.CharField(max_length=64)
    prints = models.JSONField()  # names, sizes and hashes: what breaks are judged by, readable without content
    content = models.BinaryField(null=True, blank=True)  # compressed and redacted; None: not stored
    is_redacted = models.BooleanField(default=False)  # something in it was taken out: it cannot be sent again as it was
    redaction_version = models.PositiveIntegerField(default=0)  # of the team's policy whose rules it was redacted by
    seen_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [
            # The same prompt of a thousand requests is one row.
            models.UniqueConstraint(fields=["team", "account", "digest"], name="shape_once_per_account"),
        ]

    def __str__(self) -> str:
        return f"shape {self.digest}"


class ShapeUse(models.Model):
    """A session whose requests had this shape. A shape that nobody uses any more goes with its last session."""

    session = models.ForeignKey(AgentSession, on_delete=models.CASCADE, related_name="shape_uses")
    shape = models.ForeignKey(PromptShape, on_delete=models.CASCADE, related_name="uses")

    class Meta:
        constraints = [
            # The thousandth request with a shape adds nothing; serves the deletion of a session.
            models.UniqueConstraint(fields=["session", "shape"], name="shape_use_once_per_session"),
        ]

    def __str__(self) -> str:
        return f"shape {self.shape_id} in session {self.session_id}"

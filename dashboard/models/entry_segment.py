"""The lines of a session, many to a row: facts about each, and their content where the team stores it.

A row per line would cost more than the lines. dashboard.ingest.segments packs and reads them.
"""

from django.db import models

from dashboard.models.agent_session import AgentSession


class EntrySegment(models.Model):
    session = models.ForeignKey(AgentSession, on_delete=models.CASCADE, related_name="segments")
    number = models.PositiveIntegerField()
    entry_count = models.PositiveIntegerField()
    raw_bytes = models.PositiveBigIntegerField()  # of the lines as they came
    facts = models.BinaryField()
    content = models.BinaryField(null=True, blank=True)  # one line per fact, redacted; None: not stored, or forgotten
    redacted_count = models.PositiveIntegerField(default=0)
    last_at = models.DateTimeField(null=True, blank=True)  # of its newest line

    class Meta:
        constraints = [
            # Two writers that both append must not both use a number; serves reading in order.
            models.UniqueConstraint(fields=["session", "number"], name="segment_once_per_number"),
        ]

    def __str__(self) -> str:
        return f"segment {self.number} of session {self.session_id}"

"""What was redacted in stored text, by rule and day, and what people reported as redacted by mistake."""

from django.db import models
from django.utils import timezone

from dashboard.models.agent_session import AgentSession
from dashboard.models.automation import SessionNote
from dashboard.models.compaction_run import RunRevision
from dashboard.models.prompt_shape import PromptShape
from dashboard.models.team import Team
from dashboard.models.user import User

LONGEST_RULE = 40  # as a mark takes it
# Sessions with an earlier AgentSession.projection_version were stored before marks were counted.
COUNTED_SINCE = 3


class RedactionCount(models.Model):
    """How many marks of one rule a stored text holds, by the day of its lines. Counted from the text where it is
    written, in the same transaction: reading a file again replaces the rows, and deleting the text deletes them."""

    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="+")
    # The text: a segment of a session's lines, a system prompt, a version of notes, or an edited summary.
    session = models.ForeignKey(
        AgentSession, on_delete=models.CASCADE, null=True, blank=True, related_name="redaction_counts"
    )
    segment_number = models.PositiveIntegerField(null=True, blank=True)  # EntrySegment.number within the session
    shape = models.ForeignKey(PromptShape, on_delete=models.CASCADE, null=True, blank=True, related_name="+")
    note = models.ForeignKey(SessionNote, on_delete=models.CASCADE, null=True, blank=True, related_name="+")
    revision = models.ForeignKey(RunRevision, on_delete=models.CASCADE, null=True, blank=True, related_name="+")
    rule = models.CharField(max_length=LONGEST_RULE)
    day = models.DateField()
    count = models.PositiveIntegerField()

    class Meta:
        constraints = [
            # A text that is written again must not be counted twice.
            models.UniqueConstraint(
                fields=["session", "segment_number", "rule", "day"],
                condition=models.Q(session__isnull=False),
                name="redaction_count_once_per_segment",
            ),
            *(
                models.UniqueConstraint(
                    fields=[text, "rule", "day"],
                    condition=models.Q(**{f"{text}__isnull": False}),
                    name=f"redaction_count_once_per_{text}",
                )
                for text in ("shape", "note", "revision")
            ),
            models.CheckConstraint(
                condition=models.Q(session__isnull=False, segment_number__isnull=False)
                | models.Q(shape__isnull=False)
                | models.Q(note__isnull=False)
                | models.Q(revision__isnull=False),
                name="redaction_count_of_a_text",
            ),
        ]
        indexes = [
            # Totals by rule, for the page, from the index alone.
            models.Index(fields=["team", "rule", "day", "count"], name="redaction_count_by_rule"),
        ]

    def __str__(self) -> str:
        return f"{self.count} x {self.rule} on {self.day}"


class RedactionReport(models.Model):
    """Somebody says that a rule redacted what is no secret. The text that was redacted is never here: nobody has it.
    Note and example are what the person typed, redacted by all rules and by all other rules."""

    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="redaction_reports")
    rule = models.CharField(max_length=LONGEST_RULE)
    reported_by = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, blank=True, related_name="+")
    reported_by_name = models.CharField(max_length=150)  # kept when the account is gone
    reported_at = models.DateTimeField(default=timezone.now)
    note = models.CharField(max_length=500, blank=True)
    example = models.TextField(blank=True)

    class Meta:
        indexes = [
            # The reports of a team, newest first.
            models.Index(fields=["team", "-id"], name="redaction_report_of_team"),
        ]

    def __str__(self) -> str:
        return f"report on {self.rule} by {self.reported_by_name}"

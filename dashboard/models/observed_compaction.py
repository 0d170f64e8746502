"""A compaction the client did by itself or was told to do, as far as its transcript and telemetry show it."""

from django.db import models

from dashboard.models.agent_session import AgentSession
from dashboard.models.team import Team


class CompactionKind(models.TextChoices):
    FULL = "full"
    MICRO = "micro"
    FAILED = "failed"  # told by telemetry alone: it changed nothing, and does not count as a compaction


class ObservedCompaction(models.Model):
    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="+")
    session = models.ForeignKey(AgentSession, on_delete=models.CASCADE, related_name="compactions")
    agent_id = models.CharField(max_length=200, blank=True)
    entry_uuid = models.CharField(max_length=200)  # the boundary, the summary of clients that write none, or a report
    summary_uuid = models.CharField(max_length=200, blank=True)
    kind = models.CharField(max_length=6, choices=CompactionKind.choices)
    at = models.DateTimeField(null=True, blank=True)
    trigger = models.CharField(max_length=20, blank=True)
    failure = models.CharField(max_length=200, blank=True)  # why it failed, in the client's words
    before_tokens = models.PositiveBigIntegerField(null=True, blank=True)
    after_tokens = models.PositiveBigIntegerField(null=True, blank=True)
    # What `after_tokens` is: told by the client, or the first prompt after it.
    after_origin = models.CharField(max_length=10, blank=True)
    saved_tokens = models.PositiveBigIntegerField(null=True, blank=True)
    summary_tokens = models.PositiveBigIntegerField(null=True, blank=True)
    duration_seconds = models.FloatField(null=True, blank=True)
    call_number = models.PositiveIntegerField(default=0)  # of the last call of its thread before it
    turns_since_previous = models.PositiveIntegerField(null=True, blank=True)
    chain_number = models.PositiveIntegerField(default=1)  # 2 and more: it compacts an earlier summary
    is_mid_task = models.BooleanField(null=True, blank=True)
    line_tokens = models.PositiveBigIntegerField(null=True, blank=True)  # the auto line in force
    drift = models.CharField(max_length=10, blank=True)  # early, late, though off
    drift_sentence = models.CharField(max_length=300, blank=True)
    # None: this client version does not write them down. Else kind, name (where content is stored), tokens.
    restored = models.JSONField(null=True, blank=True)
    cleared_count = models.PositiveIntegerField(default=0)  # tool results and attachments of a micro-compaction
    kept_count = models.PositiveIntegerField(default=0)  # old entries that stayed word for word

    # What the compaction retained of what matters; 100: nothing is missing. None: nothing to judge, or not audited.
    retained_percent = models.DecimalField(max_digits=4, decimal_places=1, null=True, blank=True)
    # dashboard.ingest.audit_rows: parts, and what was lost in the words of the conversation, so it is content.
    audit = models.JSONField(null=True, blank=True)
    audit_version = models.PositiveSmallIntegerField(null=True, blank=True)  # the rules it was audited by
    audited_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["session", "entry_uuid"], name="compaction_once_per_boundary"),
            models.CheckConstraint(condition=models.Q(kind__in=CompactionKind.values), name="compaction_known_kind"),
        ]
        indexes = [
            # "Newest compactions" of a team; the last two columns for sums per day without reading rows.
            models.Index(
                fields=["team", "kind", "-at", "-id", "retained_percent", "is_mid_task"], name="compaction_by_time"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind} compaction {self.entry_uuid}"

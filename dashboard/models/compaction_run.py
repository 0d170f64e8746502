"""A compaction that Plimsoll does itself: what was asked, how far it is, what came of it, what it paid for."""

from django.db import models
from django.utils import timezone

from dashboard.models.agent_session import AgentSession, usd_field
from dashboard.models.job import Job
from dashboard.models.team import Team
from dashboard.models.user import User


class RunKind(models.TextChoices):
    FULL = "full"
    FROM = "from"
    UP_TO = "up_to"
    MICRO_SIZE = "micro_size"
    MICRO_IDLE = "micro_idle"
    NOTES = "notes"

    @property
    def is_micro(self) -> bool:
        """Without a summary: old tool results are cleared."""
        return self in (RunKind.MICRO_SIZE, RunKind.MICRO_IDLE)

    @property
    def asks_nobody(self) -> bool:
        """Without a summariser: nothing is summarised, or it was while the session went on."""
        return self.is_micro or self is RunKind.NOTES

    @property
    def needs_pivot(self) -> bool:
        return self in (RunKind.FROM, RunKind.UP_TO)


class RunState(models.TextChoices):
    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def is_open(self) -> bool:
        return self in (RunState.QUEUED, RunState.RUNNING)


class SummarizerName(models.TextChoices):
    CLAUDE = "claude"
    EXTRACTIVE = "extractive"
    NATIVE = "native"  # the API itself, as a block that goes back to it
    NONE = "none"  # micro-compaction writes no summary, and notes are one

    @property
    def is_paid(self) -> bool:
        """A model writes: the conversation is sent, and costs."""
        return self in (SummarizerName.CLAUDE, SummarizerName.NATIVE)


class CompactionRun(models.Model):
    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="runs")
    session = models.ForeignKey(AgentSession, on_delete=models.CASCADE, related_name="runs")
    agent_id = models.CharField(max_length=200, blank=True)
    job = models.OneToOneField(Job, on_delete=models.SET_NULL, null=True, blank=True, related_name="run")
    again_of = models.ForeignKey("self", on_delete=models.SET_NULL, null=True, blank=True, related_name="repeats")

    kind = models.CharField(max_length=10, choices=RunKind.choices)
    trigger = models.CharField(max_length=10, default="manual")  # as compaction.compactors.outcome.Trigger
    summarizer = models.CharField(max_length=10, choices=SummarizerName.choices)
    model = models.CharField(max_length=200, blank=True)  # empty: the team's choice, then the session's own
    pivot_uuid = models.CharField(max_length=200, blank=True)
    instructions = models.TextField(blank=True)
    started_by = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, blank=True, related_name="+")
    started_by_name = models.CharField(max_length=150, blank=True)
    source = models.CharField(max_length=10)  # page, api, cli, auto, messages

    state = models.CharField(max_length=10, choices=RunState.choices, default=RunState.QUEUED)
    stage = models.CharField(max_length=20, default="queued")  # as compaction.ports.Stage
    stage_at = models.DateTimeField(default=timezone.now)
    written_tokens = models.PositiveBigIntegerField(default=0)  # of the summary so far, while it is being written
    created_at = models.DateTimeField(default=timezone.now)
    started_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)
    failure_code = models.CharField(max_length=40, blank=True)
    failure_sentence = models.CharField(max_length=500, blank=True)

    # What the session was when the run read it: a live session has gone on since.
    session_version = models.PositiveBigIntegerField(default=0)
    last_entry_uuid = models.CharField(max_length=200, blank=True)

    before_tokens = models.PositiveBigIntegerField(null=True, blank=True)
    before_origin = models.CharField(max_length=10, blank=True)  # measured (usage), counted (count_tokens), estimate
    after_tokens = models.PositiveBigIntegerField(null=True, blank=True)  # of the first outcome; revisions have theirs
    after_origin = models.CharField(max_length=10, blank=True)
    prefix_tokens = models.PositiveBigIntegerField(default=0)
    line_tokens = models.PositiveBigIntegerField(null=True, blank=True)
    gap_count = models.PositiveIntegerField(default=0)  # places where lines are missing in what the model saw
    # What the stored lines add up to, where that differs by more than a quarter from what was measured.
    found_tokens = models.PositiveBigIntegerField(null=True, blank=True)
    accepts_difference = models.BooleanField(default=False)  # a person confirmed it
    kept_count = models.PositiveIntegerField(default=0)
    summarised_count = models.PositiveIntegerField(default=0)
    dropped_count = models.PositiveIntegerField(default=0)
    cleared_count = models.PositiveIntegerField(default=0)  # tool results and attachments of a micro-compaction
    fork_refusal = models.CharField(max_length=300, blank=True)  # why the parent request could not be repeated
    is_recompaction = models.BooleanField(default=False)
    reserved_usd = usd_field(default=0)
    spent_usd = usd_field(default=0)

    # Content: compressed lines of the compacted conversation, and what became of each entry and attachment.
    outcome = models.BinaryField(null=True, blank=True)
    details = models.BinaryField(null=True, blank=True)
    # The rules by which its revisions, or without a summary its result, were audited last.
    audit_version = models.PositiveSmallIntegerField(null=True, blank=True)
    hook_notes = models.JSONField(default=list, blank=True)  # dashboard.hooks.notes: who was asked, and what they said
    content_removed_at = models.DateTimeField(null=True, blank=True)  # by the team's retention

    class Meta:
        constraints = [
            # Two people pressing the button at once: one run, the second is told of it.
            models.UniqueConstraint(
                fields=["session", "agent_id"],
                condition=models.Q(state__in=["queued", "running"]),
                name="run_one_open_per_thread",
            ),
            models.CheckConstraint(condition=models.Q(kind__in=RunKind.values), name="run_known_kind"),
            models.CheckConstraint(condition=models.Q(state__in=RunState.values), name="run_known_state"),
            models.CheckConstraint(
                condition=models.Q(summarizer__in=SummarizerName.values), name="run_known_summarizer"
            ),
        ]
        indexes = [
            # The runs of a session, newest first.
            models.Index(fields=["session", "-id"], name="run_of_session"),
            # The newest runs of a team, for the overview.
            models.Index(fields=["team", "-id"], name="run_of_team"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} run {self.pk} ({self.state})"


class RunAttempt(models.Model):
    """One request to a model, answered or not: it may be paid for either way."""

    run = models.ForeignKey(CompactionRun, on_delete=models.CASCADE, related_name="attempts")
    number = models.PositiveSmallIntegerField()
    path = models.CharField(max_length=10)  # fork, plain, count; on_demand and threshold where the API compacts
    model = models.CharField(max_length=200, blank=True)
    message_id = models.CharField(max_length=200, blank=True)
    request_id = models.CharField(max_length=200, blank=True)
    at = models.DateTimeField(default=timezone.now)
    duration_seconds = models.FloatField(default=0)
    input_tokens = models.PositiveBigIntegerField(default=0)
    read_tokens = models.PositiveBigIntegerField(default=0)
    write_5m_tokens = models.PositiveBigIntegerField(default=0)
    write_1h_tokens = models.PositiveBigIntegerField(default=0)
    output_tokens = models.PositiveBigIntegerField(default=0)
    cost_usd = usd_field(null=True, blank=True)  # None: nothing was reported, or the model has no price
    failure_code = models.CharField(max_length=40, blank=True)
    failure_sentence = models.CharField(max_length=500, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["run", "number"], name="attempt_once_per_number"),
        ]

    def __str__(self) -> str:
        return f"attempt {self.number} of run {self.run_id}"

    @property
    def hit_percent(self) -> int | None:
        """How much of the prompt came from the cache."""
        sent = self.input_tokens + self.read_tokens + self.write_5m_tokens + self.write_1h_tokens
        return round(100 * self.read_tokens / sent) if sent else None


class RunRevision(models.Model):
    """The summary of a run: number 1 as it was written, later ones as people edited it."""

    run = models.ForeignKey(CompactionRun, on_delete=models.CASCADE, related_name="revisions")
    number = models.PositiveIntegerField()
    text = models.TextField()
    analysis = models.TextField(blank=True)  # what the model thought before it wrote; never sent on
    missing_sections = models.JSONField(default=list)
    edited_by = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, blank=True, related_name="+")
    edited_by_name = models.CharField(max_length=150, blank=True)
    created_at = models.DateTimeField(default=timezone.now)
    summary_tokens = models.PositiveBigIntegerField(default=0)
    after_tokens = models.PositiveBigIntegerField(default=0)
    retained_percent = models.DecimalField(max_digits=4, decimal_places=1, null=True, blank=True)
    audit = models.JSONField(null=True, blank=True)  # as ObservedCompaction.audit

    class Meta:
        constraints = [
            # Two people saving at once: the second is told, nothing is overwritten.
            models.UniqueConstraint(fields=["run", "number"], name="revision_once_per_number"),
        ]

    def __str__(self) -> str:
        return f"revision {self.number} of run {self.run_id}"


class ResumedFile(models.Model):
    """A transcript that Plimsoll wrote beside the original, so that the client can go on from it."""

    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="+")
    run = models.ForeignKey(CompactionRun, on_delete=models.SET_NULL, null=True, blank=True, related_name="files")
    origin = models.ForeignKey(AgentSession, on_delete=models.SET_NULL, null=True, blank=True, related_name="resumed")
    revision_number = models.PositiveIntegerField(default=0)  # 0: a micro-compaction, which has no summary
    external_id = models.CharField(max_length=200)  # of the new session, and the file's name
    path = models.CharField(max_length=4096, blank=True)  # empty: downloaded, not written here
    digest = models.CharField(max_length=64)
    size_bytes = models.PositiveBigIntegerField()
    written_by = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, blank=True, related_name="+")
    written_at = models.DateTimeField(default=timezone.now)
    removed_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            # Serves the link back to the origin when the session comes in again.
            models.UniqueConstraint(fields=["team", "external_id"], name="resumed_once_per_session"),
        ]

    def __str__(self) -> str:
        return f"resumed {self.external_id}"


class ThreadBreaker(models.Model):
    """How often automatic runs of a thread failed in a row, and since when they are paused for it."""

    session = models.ForeignKey(AgentSession, on_delete=models.CASCADE, related_name="breakers")
    agent_id = models.CharField(max_length=200, blank=True)
    failures = models.PositiveSmallIntegerField(default=0)
    opened_at = models.DateTimeField(null=True, blank=True)
    last_failure_at = models.DateTimeField(null=True, blank=True)
    last_failure_code = models.CharField(max_length=40, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["session", "agent_id"], name="breaker_once_per_thread"),
        ]

    def __str__(self) -> str:
        return f"breaker of {self.agent_id or 'main'} of session {self.session_id}"

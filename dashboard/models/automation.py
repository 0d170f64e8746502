"""What Plimsoll does by itself: a team's wish, the crossings that were answered, and the notes taken on the way."""

from django.db import models
from django.utils import timezone

from dashboard.models.agent_session import AgentSession, usd_field
from dashboard.models.compaction_run import CompactionRun
from dashboard.models.job import Job
from dashboard.models.team import Team
from dashboard.models.user import User


class AutomaticMode(models.TextChoices):
    """What a team wants done about a crossed threshold."""

    OFF = "off"
    SUGGEST = "suggest"
    RUN = "run"


class AutomationSettings(models.Model):
    """One row for a team; without one the defaults here hold. Nothing that costs money is on by itself."""

    team = models.OneToOneField(Team, on_delete=models.CASCADE, related_name="automation")
    mode = models.CharField(max_length=10, choices=AutomaticMode.choices, default=AutomaticMode.SUGGEST)
    summarizer = models.CharField(max_length=10, default="extractive")  # who writes the summary of an automatic run
    notes_writer = models.CharField(max_length=10, default="off")  # off, extractive, claude
    notes_template = models.TextField(blank=True)  # empty: the engine's own
    changed_by = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, blank=True, related_name="+")
    changed_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [
            models.CheckConstraint(condition=models.Q(mode__in=AutomaticMode.values), name="automation_known_mode"),
        ]

    def __str__(self) -> str:
        return f"automation of {self.team}"


class LineCrossing(models.Model):
    """The auto-compact line was crossed, and this was the answer: one row per crossing."""

    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="+")
    session = models.ForeignKey(AgentSession, on_delete=models.CASCADE, related_name="crossings")
    agent_id = models.CharField(max_length=200, blank=True)
    at = models.DateTimeField(default=timezone.now)
    call_number = models.PositiveIntegerField(default=0)  # of the thread's last call when it was answered
    used_tokens = models.PositiveBigIntegerField()
    line_tokens = models.PositiveBigIntegerField()
    answer = models.CharField(max_length=10, choices=AutomaticMode.choices)
    run = models.ForeignKey(CompactionRun, on_delete=models.SET_NULL, null=True, blank=True, related_name="+")
    refusal = models.CharField(max_length=500, blank=True)  # why no run was started, as a sentence
    dismissed_at = models.DateTimeField(null=True, blank=True)
    dismissed_by = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, blank=True, related_name="+")

    class Meta:
        constraints = [
            # A job that runs twice, or two at once: the crossing is answered once.
            models.UniqueConstraint(fields=["session", "agent_id", "call_number"], name="crossing_once_per_call"),
        ]
        indexes = [
            # What waits for a person, newest first.
            models.Index(
                fields=["team", "-id"], name="crossing_waiting", condition=models.Q(dismissed_at=None, run=None)
            ),
        ]

    def __str__(self) -> str:
        return f"crossing of session {self.session_id} at call {self.call_number}"


class SessionNote(models.Model):
    """Notes about a conversation, each version a row; the newest is what a compaction starts from. Content."""

    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="+")
    session = models.ForeignKey(AgentSession, on_delete=models.CASCADE, related_name="notes")
    agent_id = models.CharField(max_length=200, blank=True)
    number = models.PositiveIntegerField()
    text = models.TextField()
    last_entry_uuid = models.CharField(max_length=200, blank=True)  # what they cover ends here
    context_tokens = models.PositiveBigIntegerField(default=0)  # of the conversation when they were taken
    written_at = models.DateTimeField(default=timezone.now)
    writer = models.CharField(max_length=10)  # extractive, claude, person
    edited_by = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, blank=True, related_name="+")
    edited_by_name = models.CharField(max_length=150, blank=True)
    cost_usd = usd_field(default=0)

    class Meta:
        constraints = [
            # Two writers at once: the second is told, nothing is overwritten. Serves "the newest notes of a thread".
            models.UniqueConstraint(fields=["session", "agent_id", "number"], name="note_once_per_number"),
        ]

    def __str__(self) -> str:
        return f"notes {self.number} of session {self.session_id}"


class NotesExtraction(models.Model):
    """Notes being taken of a thread: since when, and by which job. A compaction waits for it a little."""

    session = models.ForeignKey(AgentSession, on_delete=models.CASCADE, related_name="+")
    agent_id = models.CharField(max_length=200, blank=True)
    started_at = models.DateTimeField(default=timezone.now)
    job = models.ForeignKey(Job, on_delete=models.CASCADE, related_name="+")

    class Meta:
        constraints = [
            # One extraction of a thread at a time.
            models.UniqueConstraint(fields=["session", "agent_id"], name="extraction_once_per_thread"),
        ]

    def __str__(self) -> str:
        return f"extraction of session {self.session_id}"

"""Durable work. The row is the truth about a job; messages of the broker only wake a worker."""

from django.db import models
from django.utils import timezone

from dashboard.models.team import Team


class JobState(models.TextChoices):
    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"  # ended by its own, orderly failure
    CANCELLED = "cancelled"
    DEAD = "dead"  # took too many workers down with it, or raised too often

    @classmethod
    def finished(cls) -> list["JobState"]:
        return [cls.DONE, cls.FAILED, cls.CANCELLED, cls.DEAD]


class Job(models.Model):
    kind = models.CharField(max_length=80)
    team = models.ForeignKey(Team, on_delete=models.CASCADE, null=True, blank=True, related_name="jobs")
    key = models.CharField(max_length=200, unique=True)  # two posts of the same cause make one job
    payload = models.JSONField(default=dict)
    priority = models.SmallIntegerField(default=50)  # lower goes first
    state = models.CharField(max_length=10, choices=JobState.choices, default=JobState.QUEUED)
    due_at = models.DateTimeField(null=True, blank=True)  # None: at once, whatever the clock says later
    created_at = models.DateTimeField(default=timezone.now)
    woken_at = models.DateTimeField(null=True, blank=True)
    started_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)

    # Whoever holds the lease may write, and only with the fence it was given: a worker that slept past its lease
    # finds a higher number and changes nothing.
    lease_until = models.DateTimeField(null=True, blank=True)
    fence = models.PositiveIntegerField(default=0)
    fence_rejections = models.PositiveIntegerField(default=0)
    attempts = models.PositiveSmallIntegerField(default=0)
    worker = models.CharField(max_length=120, blank=True)
    cancel_requested_at = models.DateTimeField(null=True, blank=True)

    progress_done = models.PositiveBigIntegerField(null=True, blank=True)
    progress_total = models.PositiveBigIntegerField(null=True, blank=True)
    progress_note = models.CharField(max_length=200, blank=True)
    result = models.JSONField(null=True, blank=True)
    last_error = models.CharField(max_length=500, blank=True)

    class Meta:
        constraints = [
            models.CheckConstraint(condition=models.Q(state__in=JobState.values), name="job_known_state"),
            models.CheckConstraint(
                condition=models.Q(lease_until__isnull=False) | ~models.Q(state="running"), name="job_running_has_lease"
            ),
        ]
        indexes = [
            # The claim: the most urgent waiting job of a team.
            models.Index(
                fields=["priority", "team", "id"], condition=models.Q(state="queued"), name="job_waiting_by_urgency"
            ),
            # The sweeper: leases that ran out.
            models.Index(fields=["lease_until"], condition=models.Q(state="running"), name="job_running_by_lease"),
            # Fairness: when was this team served last.
            models.Index(fields=["team", "-started_at"], name="job_last_start_of_team"),
            # The jobs page, newest first, by state.
            models.Index(fields=["state", "-id"], name="job_page_by_state"),
            # Housekeeping: what ended long ago.
            models.Index(
                fields=["finished_at"], condition=models.Q(finished_at__isnull=False), name="job_ended_by_time"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.pk} ({self.state})"


class Beat(models.Model):
    """When a recurring process last did its round; one row per process and host."""

    name = models.CharField(max_length=120, unique=True)
    at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.name} at {self.at:%H:%M:%S}"

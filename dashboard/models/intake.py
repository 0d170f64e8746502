"""What is known about the ways in: how far followed files were read, and what had to be dropped, with reasons."""

from django.db import models
from django.utils import timezone

from dashboard.models.team import Team


class FollowedFile(models.Model):
    """How far a file was read. Nothing depends on it for correctness: reading twice changes nothing."""

    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="+")
    path = models.CharField(max_length=4096)
    path_digest = models.CharField(max_length=64)  # indexed in place of the long path
    device = models.BigIntegerField(default=0)
    inode = models.DecimalField(max_digits=20, decimal_places=0, default=0)  # 64 bits without a sign
    head_digest = models.CharField(max_length=64, blank=True)  # of the first bytes: another file under the same name
    head_bytes = models.PositiveIntegerField(default=0)
    size_bytes = models.PositiveBigIntegerField(default=0)
    modified_ns = models.BigIntegerField(default=0)
    offset = models.PositiveBigIntegerField(default=0)
    line_count = models.PositiveBigIntegerField(default=0)
    open_line_bytes = models.PositiveBigIntegerField(default=0)  # of a last line without a line end, behind `offset`
    is_open_line_read = models.BooleanField(default=False)  # it was complete JSON and is recorded
    problem_count = models.PositiveIntegerField(default=0)
    # By which version of the reader all of it was read; older ones are read again from the first byte.
    reading_version = models.PositiveSmallIntegerField(default=1)
    read_at = models.DateTimeField(default=timezone.now)
    gone_at = models.DateTimeField(null=True, blank=True)  # deleted since; what was read of it stays

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["team", "path_digest"], name="followed_file_once"),
        ]

    def __str__(self) -> str:
        return self.path


class Drop(models.Model):
    """How often something that arrived was not kept, and why. Counted here, shown on the health page."""

    team = models.ForeignKey(Team, on_delete=models.CASCADE, null=True, blank=True, related_name="drops")
    source = models.CharField(max_length=20)  # import, follow, upload, api, otlp, hook, proxy …
    reason = models.CharField(max_length=60)
    count = models.PositiveBigIntegerField(default=0)
    last_at = models.DateTimeField(default=timezone.now)
    last_detail = models.CharField(max_length=300, blank=True)  # where: file and line, never what it said

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["team", "source", "reason"], name="drop_once_per_reason"),
            # Whoever could not be told apart has no team; NULLs would not count as equal.
            models.UniqueConstraint(
                fields=["source", "reason"], condition=models.Q(team=None), name="drop_once_without_team"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.count} x {self.reason} ({self.source})"


class DropReceipt(models.Model):
    """A message of the proxy whose loss was counted, so that it is not counted again when it is delivered again."""

    message_id = models.CharField(max_length=100, unique=True)
    at = models.DateTimeField(default=timezone.now)

    def __str__(self) -> str:
        return self.message_id

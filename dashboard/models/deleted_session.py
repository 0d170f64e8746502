"""Sessions that were deleted: what their files and programs still send is not taken in again."""

from django.db import models
from django.utils import timezone

from dashboard.models.sender import Collector, Sender
from dashboard.models.team import Team
from dashboard.models.user import User


class DeletionReason(models.TextChoices):
    PERSON = "person"  # stays away until an admin allows it again
    RETENTION = "retention"  # comes back by itself when it goes on
    UNDO = "undo"  # of a transcript that Plimsoll wrote; comes back as above


class DeletedSession(models.Model):
    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="deleted_sessions")
    external_id = models.CharField(max_length=200)
    reason = models.CharField(max_length=10, choices=DeletionReason.choices)
    deleted_at = models.DateTimeField(default=timezone.now)
    deleted_by_name = models.CharField(max_length=150, blank=True)
    # As the session had them: only the account that sent it can bring it back.
    owner = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, blank=True, related_name="+")
    collector = models.CharField(max_length=6, choices=Collector.choices, default=Collector.NONE, blank=True)

    class Meta:
        constraints = [
            # Two people deleting at once make one row; serves the question of every batch that arrives.
            models.UniqueConstraint(fields=["team", "external_id"], name="deleted_session_once_per_team"),
            models.CheckConstraint(
                condition=models.Q(reason__in=DeletionReason.values), name="deleted_session_known_reason"
            ),
        ]
        indexes = [
            # The list on the storage page, newest first.
            models.Index(fields=["team", "reason", "-deleted_at", "-id"], name="deleted_session_list"),
        ]

    def __str__(self) -> str:
        return f"deleted {self.external_id}"

    def may_be_revived_by(self, sender: Sender) -> bool:
        """Return whether telemetry of this sender may create the session again.

        Rows of older versions and of deleted accounts name nobody: the first sender may."""
        if self.owner_id is None and self.collector == Collector.NONE:
            return True
        return sender.may_continue(owner_pk=self.owner_id, collector=self.collector)

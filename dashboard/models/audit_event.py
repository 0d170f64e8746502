"""What was done to people, rights, keys and policies, by whom. Written once, never changed."""

from django.db import models
from django.utils import timezone

from dashboard.models.team import Team
from dashboard.models.user import User


class AuditAction(models.TextChoices):
    TEAM_CREATED = "team created"
    TEAM_RENAMED = "team renamed"
    MEMBER_JOINED = "member joined"
    MEMBER_REMOVED = "member removed"
    ROLE_CHANGED = "role changed"
    CONTENT_GRANTED = "content granted"
    CONTENT_WITHDRAWN = "content withdrawn"
    INVITATION_CREATED = "invitation created"
    INVITATION_REVOKED = "invitation revoked"
    KEY_CREATED = "key created"
    KEY_REVOKED = "key revoked"
    POLICY_CHANGED = "policy changed"
    REDACTION_REPORTED = "false redaction reported"
    REDACTION_RESOLVED = "redaction report resolved"
    SUMMARIZER_CHANGED = "summariser changed"
    SESSION_DELETED = "session deleted"
    SESSION_ALLOWED = "deleted session allowed again"
    KEY_LIMITED = "key limits changed"
    KEY_MARKED = "key marked as collector"
    KEY_UNMARKED = "key no longer a collector"
    OWNER_ASSIGNED = "session owner assigned"
    DEVELOPER_ASSIGNED = "developer assigned to account"
    DEVELOPER_UNASSIGNED = "developer assignment removed"
    AUTOMATION_CHANGED = "automation changed"
    WEBHOOK_ADDED = "webhook added"
    WEBHOOK_SWITCHED = "webhook switched"
    WEBHOOK_REMOVED = "webhook removed"
    BREAKER_RESET = "breaker reset"
    JOB_CANCELLED = "job cancelled"
    JOB_RETRIED = "job retried"
    PASSWORD_CHANGED = "password changed"  # noqa: S105 (the name of an act)
    SIGNED_IN = "signed in"


class AuditEvent(models.Model):
    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="audit_events")
    at = models.DateTimeField(default=timezone.now)
    actor = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, related_name="+")
    actor_name = models.CharField(max_length=150)  # kept when the account is gone
    action = models.CharField(max_length=40, choices=AuditAction.choices)
    subject = models.CharField(max_length=200, blank=True)
    details = models.JSONField(default=dict)

    class Meta:
        indexes = [models.Index(fields=["team", "-id"], name="audit_event_page_of_team")]

    def __str__(self) -> str:
        return f"{self.actor_name}: {self.action} {self.subject}".strip()

    @property
    def told_details(self) -> str:
        """`before: viewer · after: admin`."""
        facts = {name: ", ".join(value) if isinstance(value, list) else value for name, value in self.details.items()}
        return " · ".join(f"{name.replace('_', ' ')}: {value}" for name, value in facts.items())

"""One file per noun; this file only re-exports them."""

from dashboard.models.api_key import ApiKey, Scope
from dashboard.models.audit_event import AuditAction, AuditEvent
from dashboard.models.invitation import Invitation
from dashboard.models.job import Beat, Job, JobState
from dashboard.models.sign_in_link import SignInLink
from dashboard.models.team import Membership, Role, Team
from dashboard.models.user import User

__all__ = [
    "ApiKey",
    "AuditAction",
    "AuditEvent",
    "Beat",
    "Invitation",
    "Job",
    "JobState",
    "Membership",
    "Role",
    "Scope",
    "SignInLink",
    "Team",
    "User",
]

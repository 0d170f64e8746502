"""One file per noun; this file only re-exports them."""

from dashboard.models.agent_session import LEVELS, AgentSession, SessionHour, Thread
from dashboard.models.api_call import ApiCall
from dashboard.models.api_key import ApiKey, KeyHour, Scope
from dashboard.models.audit_event import AuditAction, AuditEvent
from dashboard.models.automation import (
    AutomaticMode,
    AutomationSettings,
    LineCrossing,
    NotesExtraction,
    SessionNote,
)
from dashboard.models.cache_break import CacheBreak, LossKind
from dashboard.models.captured_request import CapturedRequest
from dashboard.models.compaction_run import (
    CompactionRun,
    ResumedFile,
    RunAttempt,
    RunKind,
    RunRevision,
    RunState,
    SummarizerName,
    ThreadBreaker,
)
from dashboard.models.deleted_session import DeletedSession, DeletionReason
from dashboard.models.developer_account import DeveloperAccount
from dashboard.models.entry_segment import EntrySegment
from dashboard.models.intake import Drop, DropReceipt, FollowedFile
from dashboard.models.invitation import Invitation
from dashboard.models.job import Beat, Job, JobState
from dashboard.models.observed_compaction import CompactionKind, ObservedCompaction
from dashboard.models.prompt_shape import PromptShape, ShapeUse
from dashboard.models.redaction import COUNTED_SINCE, RedactionCount, RedactionReport
from dashboard.models.saved_view import ListName, SavedView
from dashboard.models.sender import Collector, Sender, identify_sender
from dashboard.models.session_change import ChangeCounter, SessionChange, sessions_changed
from dashboard.models.sign_in_link import SignInLink
from dashboard.models.summarizer_settings import DaySpend, NativeForm, SummarizerSettings
from dashboard.models.team import Membership, Role, Team
from dashboard.models.team_hour import ChangedHour, TeamHour
from dashboard.models.team_policy import TeamPolicy
from dashboard.models.unanswered_call import UnansweredCall, UnansweredKind
from dashboard.models.user import User
from dashboard.models.webhook import HookEvent, RunCallback, Webhook

__all__ = [
    "COUNTED_SINCE",
    "LEVELS",
    "AgentSession",
    "ApiCall",
    "ApiKey",
    "AuditAction",
    "AuditEvent",
    "AutomaticMode",
    "AutomationSettings",
    "Beat",
    "CacheBreak",
    "CapturedRequest",
    "ChangeCounter",
    "ChangedHour",
    "Collector",
    "CompactionKind",
    "CompactionRun",
    "DaySpend",
    "DeletedSession",
    "DeletionReason",
    "DeveloperAccount",
    "Drop",
    "DropReceipt",
    "EntrySegment",
    "FollowedFile",
    "HookEvent",
    "Invitation",
    "Job",
    "JobState",
    "KeyHour",
    "LineCrossing",
    "ListName",
    "LossKind",
    "Membership",
    "NativeForm",
    "NotesExtraction",
    "ObservedCompaction",
    "PromptShape",
    "RedactionCount",
    "RedactionReport",
    "ResumedFile",
    "Role",
    "RunAttempt",
    "RunCallback",
    "RunKind",
    "RunRevision",
    "RunState",
    "SavedView",
    "Scope",
    "Sender",
    "SessionChange",
    "SessionHour",
    "SessionNote",
    "ShapeUse",
    "SignInLink",
    "SummarizerName",
    "SummarizerSettings",
    "Team",
    "TeamHour",
    "TeamPolicy",
    "Thread",
    "ThreadBreaker",
    "UnansweredCall",
    "UnansweredKind",
    "User",
    "Webhook",
    "identify_sender",
    "sessions_changed",
]

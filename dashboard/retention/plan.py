"""What becomes of every table when a session is deleted, and of every text when its time is over.

A test holds this against all models: a new one must be put here before it can be used.
"""

from collections.abc import Mapping
from enum import StrEnum

from django.db.models import Model

from dashboard.models import (
    AgentSession,
    ApiCall,
    ApiKey,
    AuditEvent,
    AutomationSettings,
    Beat,
    CacheBreak,
    CapturedRequest,
    ChangeCounter,
    ChangedHour,
    CompactionRun,
    DaySpend,
    DeletedSession,
    DeveloperAccount,
    Drop,
    DropReceipt,
    EntrySegment,
    FollowedFile,
    Invitation,
    Job,
    KeyHour,
    LineCrossing,
    Membership,
    NotesExtraction,
    ObservedCompaction,
    PromptShape,
    RedactionCount,
    RedactionReport,
    ResumedFile,
    RunAttempt,
    RunCallback,
    RunRevision,
    SavedView,
    SessionChange,
    SessionHour,
    SessionNote,
    ShapeUse,
    SignInLink,
    SummarizerSettings,
    Team,
    TeamHour,
    TeamPolicy,
    Thread,
    ThreadBreaker,
    UnansweredCall,
    User,
    Webhook,
)


class Fate(StrEnum):
    """When a session is deleted."""

    GOES = "goes with its session"
    GOES_WITH_LAST = "goes when no session is left that uses it"
    FORGETS = "stays and forgets the session"  # a file on somebody's disk is theirs
    STAYS = "is not about one session"


FATES: Mapping[type[Model], Fate] = {
    AgentSession: Fate.GOES,
    ApiCall: Fate.GOES,
    CacheBreak: Fate.GOES,
    CapturedRequest: Fate.GOES,
    CompactionRun: Fate.GOES,
    EntrySegment: Fate.GOES,
    LineCrossing: Fate.GOES,
    NotesExtraction: Fate.GOES,
    ObservedCompaction: Fate.GOES,
    RunAttempt: Fate.GOES,
    RedactionCount: Fate.GOES,
    RunCallback: Fate.GOES,
    RunRevision: Fate.GOES,
    SessionChange: Fate.GOES,
    SessionHour: Fate.GOES,
    SessionNote: Fate.GOES,
    ShapeUse: Fate.GOES,
    Thread: Fate.GOES,
    ThreadBreaker: Fate.GOES,
    UnansweredCall: Fate.GOES,
    PromptShape: Fate.GOES_WITH_LAST,
    RedactionReport: Fate.STAYS,
    ResumedFile: Fate.FORGETS,
    ApiKey: Fate.STAYS,
    AuditEvent: Fate.STAYS,
    AutomationSettings: Fate.STAYS,
    Beat: Fate.STAYS,
    ChangeCounter: Fate.STAYS,
    ChangedHour: Fate.STAYS,
    DaySpend: Fate.STAYS,
    DeletedSession: Fate.STAYS,
    DeveloperAccount: Fate.STAYS,
    Drop: Fate.STAYS,
    DropReceipt: Fate.STAYS,
    FollowedFile: Fate.STAYS,
    Invitation: Fate.STAYS,
    Job: Fate.STAYS,
    KeyHour: Fate.STAYS,
    Membership: Fate.STAYS,
    SavedView: Fate.STAYS,
    SignInLink: Fate.STAYS,
    SummarizerSettings: Fate.STAYS,
    Team: Fate.STAYS,
    TeamHour: Fate.STAYS,  # added up again when the hours of a session go
    TeamPolicy: Fate.STAYS,
    User: Fate.STAYS,
    Webhook: Fate.STAYS,
}

# The columns that say what somebody said; dashboard.retention.forgetting empties each of them.
CONTENT: Mapping[type[Model], frozenset[str]] = {
    AgentSession: frozenset({"title"}),
    Thread: frozenset({"description"}),
    EntrySegment: frozenset({"content", "facts"}),
    CapturedRequest: frozenset({"body"}),
    PromptShape: frozenset({"content"}),
    ObservedCompaction: frozenset({"restored", "audit"}),
    CompactionRun: frozenset({"instructions", "outcome", "details", "hook_notes"}),
    RunRevision: frozenset({"text", "analysis", "audit"}),
    SessionNote: frozenset({"text"}),
}

# Columns of text that a team has which stores numbers only: names, ids, causes, our own sentences.
LABELS: Mapping[type[Model], frozenset[str]] = {
    AgentSession: frozenset(
        {"external_id", "developer", "sources", "forked_from", "project_path", "project", "branch", "model"}
        | {"client_version", "collector", "level", "forecast", "recent_hits", "search_text"}
    ),
    ApiCall: frozenset(
        {"agent_id", "call_id", "request_id", "model", "client_version", "query_source", "stop_reason", "provenance"}
        | {"added", "miss_reason"}
    ),
    CacheBreak: frozenset(
        {"agent_id", "call_id", "previous_call_id", "kind", "model", "cause", "grade", "detail", "evidence", "ttl"}
    ),
    CapturedRequest: frozenset({"agent_id", "call_id", "ttl", "version", "betas", "refusal"}),
    CompactionRun: frozenset(
        {"agent_id", "kind", "trigger", "summarizer", "model", "pivot_uuid", "started_by_name", "source", "state"}
        | {"stage", "failure_code", "failure_sentence", "last_entry_uuid", "before_origin", "after_origin"}
        | {"fork_refusal"}
    ),
    LineCrossing: frozenset({"agent_id", "answer", "refusal"}),
    NotesExtraction: frozenset({"agent_id"}),
    ObservedCompaction: frozenset(
        {"agent_id", "entry_uuid", "summary_uuid", "kind", "trigger", "failure", "after_origin", "drift"}
        | {"drift_sentence"}
    ),
    PromptShape: frozenset({"digest", "prints"}),
    RedactionCount: frozenset({"rule"}),
    ResumedFile: frozenset({"external_id", "path", "digest"}),
    RunAttempt: frozenset({"path", "model", "message_id", "request_id", "failure_code", "failure_sentence"}),
    RunCallback: frozenset({"url", "sealed_secret", "last_error"}),
    RunRevision: frozenset({"missing_sections", "edited_by_name"}),
    SessionNote: frozenset({"agent_id", "last_entry_uuid", "writer", "edited_by_name"}),
    Thread: frozenset({"agent_id", "agent_type", "model"}),
    ThreadBreaker: frozenset({"agent_id", "last_failure_code"}),
    UnansweredCall: frozenset({"agent_id", "name", "kind", "reason", "model", "source", "added"}),
}

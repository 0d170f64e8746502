"""Compactions: of a session, of all teams, and one with what it retained, lost and restored."""

from dataclasses import asdict, replace
from datetime import datetime
from decimal import Decimal
from typing import Literal

from django.shortcuts import get_object_or_404
from ninja import Field, Query, Router, Schema
from pydantic import AwareDatetime

from dashboard import access
from dashboard.access import Act
from dashboard.api.audits import RETAINED, AuditOut
from dashboard.api.listing import MOST_ROWS, Name, find_session, read_before
from dashboard.api.request import ApiRequest
from dashboard.api.schemas import Problem
from dashboard.pages.compaction_page import CompactionPage, read_compaction
from dashboard.pages.compaction_rows import AuditState, CompactionFilter, CompactionPageOfRows, list_compactions
from dashboard.pages.ledger import PAGE_SIZE

router = Router(tags=["compactions"])


class CompactionsAsked(Schema):
    """Filters; omitted filters match everything."""

    team: Name = Field("", description="The team's slug.", examples=["harbour"])
    kind: Literal["", "full", "micro", "failed"] = Field(
        "", description="Full, micro or failed compactions; default: all."
    )
    since: AwareDatetime | None = Field(None, description="At or after this time.", examples=["2026-11-01T00:00:00Z"])
    until: AwareDatetime | None = Field(None, description="Before this time.")
    project: str = Field("", max_length=200, description="The project of the session.")
    developer: str = Field("", max_length=200, description="The developer of the session.")
    trigger: Name = Field("", description="What started it: auto, manual or api (context editing), for example.")
    retained_from: int | None = Field(None, ge=0, le=100, description="Retained at least this percentage.")
    retained_below: int | None = Field(None, ge=0, le=100, description="Retained less than this percentage.")
    is_mid_task: bool | None = Field(None, description="Only compactions in the middle of a task, or only the others.")
    before: str = Field("", description="`next` of the previous page.")
    limit: int = Field(PAGE_SIZE, ge=1, le=MOST_ROWS)


class MessagesAsked(Schema):
    first_message: int = Field(1, ge=1, le=10**9, description="Number of the first message to list.")


class CompactionOut(Schema):
    id: int
    session_id: int
    session: str = Field(alias="session_name", description="Its title if you have content access, otherwise its id.")
    thread: str
    kind: str
    at: datetime | None
    trigger: str
    failure: str = Field(description="Why it failed; otherwise empty.")
    before_tokens: int | None
    after_tokens: int | None
    after_origin: str = Field(description="Reported by the client, or the prompt of the next call.")
    saved_tokens: int | None
    summary_tokens: int | None
    duration_seconds: float | None
    call_number: int = Field(
        description="Position of the last call before it in its thread, from 1; 0 if there is none."
    )
    turns_since_previous: int | None
    chain_number: int
    is_mid_task: bool | None = Field(description="Null if not in the transcript.")
    line_tokens: int | None = Field(description="The effective auto-compact threshold.")
    drift: str
    drift_sentence: str
    restored_count: int | None = Field(description="Null if this client version does not record it.")
    cleared_count: int
    kept_count: int
    retained_percent: Decimal | None = Field(description=RETAINED)
    audit_state: AuditState = Field(description="`audited`, or why `retained_percent` is null.")


class CompactionsOut(Schema):
    items: list[CompactionOut]
    next: str | None = Field(description="Pass as `before` for the next page; null on the last page.")


class SectionOut(Schema):
    name: str
    text: str


class SummaryOut(Schema):
    opening: str
    sections: list[SectionOut]
    missing: list[str]


class RestoredOut(Schema):
    kind: str
    name: str = Field(description="Empty if content is not stored or without content access; likewise the text.")
    tokens: int
    age_seconds: int | None
    extent: str | None = Field(description="For files: whole, cut or only named. Null for other items and if unknown.")
    text: str
    is_cut: bool = Field(description="Whether `text` is only the beginning of what was restored.")


class LeftFileOut(Schema):
    path: str
    age_seconds: int | None


class FateOut(Schema):
    fate: str
    messages: int
    tokens: int


class MessageOut(Schema):
    number: int
    entry_uuid: str
    at: datetime | None
    who: str
    tools: list[str]
    tokens: int
    fate: str
    words: str = Field(description="First characters; empty without content access.")


class CallBesideOut(Schema):
    number: int
    at: datetime | None
    model: str
    read_tokens: int
    written_tokens: int
    context_tokens: int
    cost_usd: Decimal | None


class FailedOut(Schema):
    kept: str
    meaning: str
    advice: str
    in_a_row: int = Field(description="Failed attempts since the last successful compaction, including this one.")
    solved_by: int | None = Field(description="The next full compaction.")


class CompactionDetailOut(CompactionOut):
    content: str = Field(
        description="shown, not granted, not stored, no text (it came by a way that brings none) or removed (by the "
        "team's retention)."
    )
    summary: SummaryOut | None
    restored: list[RestoredOut] | None
    left_files: list[LeftFileOut] = Field(
        description="Files known before it that were not restored, newest first, at most 50; empty if content is not "
        "stored or without content access. The client does not record what it skipped or why."
    )
    left_count: int = Field(description="Total number of these files.")
    gap_count: int = Field(description="Positions in the conversation before it where lines are missing.")
    fates: list[FateOut] | None
    messages: list[MessageOut] | None = Field(description="Fifty, from the number asked for.")
    next_message: int | None = Field(description="Pass as `first_message` for the next page.")
    audit: AuditOut | None = Field(description="Null if nothing was compared.")
    previous_id: int | None
    next_id: int | None
    before: CallBesideOut | None = Field(description="The last call of the conversation before it.")
    after: CallBesideOut | None = Field(description="The first call after it; null if there is none yet.")
    failed: FailedOut | None = Field(description="What a failure means and what to do; null if it succeeded.")


@router.get("/compactions", summary="List compactions", response={200: CompactionsOut, 403: Problem, 422: Problem})
def list_all_compactions(request: ApiRequest, asked: Query[CompactionsAsked]) -> dict[str, object]:
    """Newest first, across all your teams."""
    access.require_anywhere(request.auth, Act.SEE)
    wanted = _build_filter(asked)
    found = list_compactions(request.auth, wanted, before=read_before(asked.before), size=asked.limit)
    return _describe_page(found)


@router.get(
    "/sessions/{int:session_id}/compactions",
    summary="List compactions of a session",
    response={200: CompactionsOut, 403: Problem, 404: Problem, 422: Problem},
)
def list_session_compactions(request: ApiRequest, session_id: int, asked: Query[CompactionsAsked]) -> dict[str, object]:
    """Newest first: full, micro and failed compactions."""
    session = find_session(request, session_id)
    wanted = replace(_build_filter(asked), session_id=session.pk)
    found = list_compactions(request.auth, wanted, before=read_before(asked.before), size=asked.limit)
    return _describe_page(found)


@router.get(
    "/compactions/{int:compaction_id}",
    summary="Get compaction",
    response={200: CompactionDetailOut, 403: Problem, 404: Problem},
)
def read_one_compaction(request: ApiRequest, compaction_id: int, asked: Query[MessagesAsked]) -> dict[str, object]:
    """What happened to each message, what was restored and what was lost; text with content access."""
    access.require_anywhere(request.auth, Act.SEE)
    visible = access.compactions(request.auth).select_related("session", "session__team")
    compaction = get_object_or_404(visible, pk=compaction_id)
    return _describe_compaction(read_compaction(request.auth, compaction, first_message=asked.first_message))


def _build_filter(asked: CompactionsAsked) -> CompactionFilter:
    values = asked.dict(exclude={"before", "limit"})
    return CompactionFilter(**values | {name: values[name].replace("\x00", "") for name in ("project", "developer")})


def _describe_page(page: CompactionPageOfRows) -> dict[str, object]:
    return {"items": page.rows, "next": str(page.next) if page.next else None}


def _describe_compaction(found: CompactionPage) -> dict[str, object]:
    summary, messages = found.summary, found.messages
    return asdict(found.row) | {
        "content": found.content_state.value,
        "summary": summary
        and {
            "opening": summary.opening,
            "sections": [{"name": name, "text": text} for name, text in summary.sections],
            "missing": summary.missing,
        },
        "restored": found.restored.items,
        "left_files": found.restored.left_files,
        "left_count": found.restored.left_count,
        "gap_count": found.gap_count,
        "fates": messages
        and [{"fate": fate.value, "messages": count, "tokens": tokens} for fate, count, tokens in messages.fates],
        "messages": messages and messages.rows,
        "next_message": messages and messages.next,
        "audit": found.audit,
        "previous_id": found.previous_id,
        "next_id": found.next_id,
        "before": found.before,
        "after": found.after,
        "failed": found.failed,
    }

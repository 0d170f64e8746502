"""Cache breaks and expected rebuilds: of a session, of all teams, and one with everything that explains it."""

from dataclasses import asdict, replace
from datetime import datetime
from decimal import Decimal
from typing import Literal

from django.shortcuts import get_object_or_404
from ninja import Field, Query, Router, Schema
from pydantic import AwareDatetime

from dashboard import access
from dashboard.access import Act
from dashboard.api.listing import MOST_ROWS, Name, find_session, read_before
from dashboard.api.request import ApiRequest
from dashboard.api.schemas import Problem
from dashboard.pages.break_page import BreakPage, read_break
from dashboard.pages.ledger import MINOR_WORDS, PAGE_SIZE, LossFilter, LossPage, list_losses
from dashboard.pages.prefix_view import PrefixView, spell_path

router = Router(tags=["cache breaks"])


class BreaksAsked(Schema):
    """Filters; omitted filters match everything."""

    team: Name = Field("", description="The team's slug.", examples=["harbour"])
    kind: Literal["", "break", "expected"] = Field("", description="Cache breaks or expected rebuilds; default: both.")
    cause: Name = Field("", description="A cause's code.", examples=["tools_changed"])
    evidence: Literal["", "api", "client", "request", "inferred", "unknown"] = Field(
        "", description="Source of the diagnosis."
    )
    project: str = Field("", max_length=200)
    developer: str = Field("", max_length=200)
    model: str = Field("", max_length=200)
    avoidable: bool | None = Field(None, description="Only avoidable ones, or only the others.")
    counted: bool | None = Field(None, description="True excludes copies of calls that are counted in other sessions.")
    minor: bool | None = Field(None, description=f"Only minor ones ({MINOR_WORDS}), or only the others.")
    since: AwareDatetime | None = Field(None, description="At or after this time.", examples=["2026-11-01T00:00:00Z"])
    until: AwareDatetime | None = Field(None, description="Before this time.")
    before: str = Field("", description="`next` of the previous page.")
    limit: int = Field(PAGE_SIZE, ge=1, le=MOST_ROWS)


class BreakOut(Schema):
    id: int
    session_id: int
    session: str = Field(alias="session_name", description="Its title if you have content access, otherwise its id.")
    project: str
    developer: str
    thread: str
    kind: str
    at: datetime
    call_number: int = Field(description="Position of the call in its thread, from 1.")
    model: str
    cause: str
    title: str
    detail: str
    evidence: str = Field(alias="grade", description="Source of the cause: api, client, request, inferred or unknown.")
    is_avoidable: bool
    gap_seconds: float | None
    ttl: str
    expected_tokens: int
    read_tokens: int
    lost_tokens: int
    recreated_tokens: int
    lost_usd: Decimal | None = Field(
        description="At your prices, otherwise list price; null if the model's price is unknown."
    )
    avoidable_usd: Decimal | None = Field(
        description="Net of the extra cost of avoiding it; null if no option would have kept the cache, or a price is "
        "unknown."
    )
    is_counted: bool = Field(description="False for a copy of a call counted in another session.")
    is_minor: bool = Field(description=f"Whether lists collapse it: {MINOR_WORDS}.")
    place: Literal["", "everything", "system", "conversation", "later"] = Field(
        description="Where the prompt broke: everything was lost; part of tools and system prompt stayed; the "
        "conversation was lost from its first message; or part of it stayed. Empty if it was not analysed."
    )


class BreaksOut(Schema):
    items: list[BreakOut]
    next: str | None = Field(description="Pass as `before` for the next page; null on the last page.")


class DiffLineOut(Schema):
    mark: str
    number: int
    text: str


class BlockChangeOut(Schema):
    level: str
    path: str
    name: str
    server: str | None
    how: str
    parts: list[str]
    before_characters: int
    after_characters: int
    old_place: int | None = Field(description="Index among the tools, system blocks or messages of the older request.")
    new_place: int | None
    lines: list[DiffLineOut] | None = Field(description="Changed text; null if not stored or without content access.")


class ToolChangeOut(Schema):
    name: str
    server: str | None
    how: str
    is_deferred: bool
    before_characters: int | None
    after_characters: int | None
    before_place: int | None = Field(description="Its index among the tools of the older request.")
    after_place: int | None


class DivergenceOut(Schema):
    level: str
    path: str
    name: str
    character: int | None
    kept_characters: int


class DiffOut(Schema):
    sentence: str
    first: DivergenceOut | None
    changes: list[BlockChangeOut]
    tools: list[ToolChangeOut]
    settings: list[str]
    appended_messages: int


class FurtherOut(Schema):
    title: str
    evidence: str
    detail: str


class UnprovenOut(Schema):
    condition: str
    words: str
    breaks: int = Field(description="Share of such calls in real sessions that lost their cache.")
    calls: int


class CallSideOut(Schema):
    id: int
    number: int
    at: datetime | None
    model: str
    client_version: str
    input_tokens: int
    read_tokens: int
    write_5m_tokens: int
    write_1h_tokens: int
    output_tokens: int
    context_tokens: int
    cost_usd: Decimal | None


class BreakDetailOut(BreakOut):
    meaning: str
    advice: str
    where: str = Field(description="The position as text.")
    predicted: str
    unproven: list[UnprovenOut] = Field(
        description="What was seen just before a call without a known cause, too weak or too rarely seen for a cause."
    )
    further: list[FurtherOut]
    conflicts: list[str]
    call_before: CallSideOut | None
    call_after: CallSideOut | None
    diff: DiffOut | None = Field(description="Null if the client did not record both requests.")
    compaction_id: int | None


@router.get("/breaks", summary="List cache breaks", response={200: BreaksOut, 403: Problem, 422: Problem})
def list_breaks(request: ApiRequest, asked: Query[BreaksAsked]) -> dict[str, object]:
    """Newest first, across all your teams."""
    access.require_anywhere(request.auth, Act.SEE)
    wanted = _read_filter(asked)
    return _describe_page(list_losses(request.auth, wanted, before=read_before(asked.before), size=asked.limit))


@router.get(
    "/sessions/{int:session_id}/breaks",
    summary="List cache breaks of a session",
    response={200: BreaksOut, 403: Problem, 404: Problem, 422: Problem},
)
def list_session_breaks(request: ApiRequest, session_id: int, asked: Query[BreaksAsked]) -> dict[str, object]:
    """Newest first, both cache breaks and expected rebuilds."""
    session = find_session(request, session_id)
    wanted = replace(_read_filter(asked), session_id=session.pk)
    return _describe_page(list_losses(request.auth, wanted, before=read_before(asked.before), size=asked.limit))


@router.get(
    "/breaks/{int:break_id}", summary="Get cache break", response={200: BreakDetailOut, 403: Problem, 404: Problem}
)
def read_one_break(request: ApiRequest, break_id: int) -> dict[str, object]:
    """The cause, both calls, and the difference of their requests: structure always, text with content access."""
    access.require_anywhere(request.auth, Act.SEE)
    visible = access.breaks(request.auth).select_related("session", "session__team")
    return _describe_break(read_break(request.auth, get_object_or_404(visible, pk=break_id)))


def _read_filter(asked: BreaksAsked) -> LossFilter:
    return LossFilter(
        team=asked.team,
        kind=asked.kind,
        cause=asked.cause,
        since=asked.since,
        until=asked.until,
        project=asked.project.replace("\x00", ""),
        developer=asked.developer.replace("\x00", ""),
        model=asked.model.replace("\x00", ""),
        grade=asked.evidence,
        is_avoidable=asked.avoidable,
        is_counted=asked.counted,
        is_minor=asked.minor,
    )


def _describe_page(page: LossPage) -> dict[str, object]:
    return {"items": page.rows, "next": str(page.next) if page.next else None}


def _describe_break(found: BreakPage) -> dict[str, object]:
    return asdict(found.row) | {
        "meaning": found.note.meaning,
        "advice": found.note.advice,
        "predicted": found.predicted,
        "unproven": [
            {"condition": each.code, "words": each.words, "breaks": each.breaks, "calls": each.calls}
            for each in found.unproven
        ],
        "further": [
            {"title": each.title, "evidence": each.grade_words, "detail": each.detail} for each in found.further
        ],
        "conflicts": found.conflicts,
        "call_before": found.before,
        "call_after": found.after,
        "diff": _describe_diff(found.diff) if found.diff else None,
        "compaction_id": found.compaction_id,
    }


def _describe_diff(diff: PrefixView) -> dict[str, object]:
    first = diff.first
    return {
        "sentence": diff.sentence,
        "first": asdict(first) | {"path": spell_path(first.path)} if first else None,
        "changes": [
            {
                "level": change.level.value,
                "path": spell_path(change.path),
                "name": change.name,
                "server": change.server,
                "how": change.kind.value,
                "parts": change.parts,
                "before_characters": change.before_characters,
                "after_characters": change.after_characters,
                "old_place": change.old_index,
                "new_place": change.new_index,
                "lines": [asdict(line) for line in told.lines] if (told := change.diff) else None,
            }
            for change in diff.changes
        ],
        "tools": diff.tools,
        "settings": diff.settings,
        "appended_messages": diff.appended_messages,
    }

"""What fills the context of a session."""

from typing import Any

from django.utils import timezone
from ninja import Field, Router, Schema

from dashboard.api.listing import find_session
from dashboard.api.request import ApiRequest
from dashboard.api.schemas import Problem
from dashboard.pages.context_page import ContextPage, read_context

router = Router(tags=["sessions"])


class MeasuredOut(Schema):
    context_tokens: int
    window_tokens: int | None
    prompt_tokens: int
    read_tokens: int
    first_prompt_tokens: int | None


class PartOfContextOut(Schema):
    category: str = Field(
        description="`system and tools` is the first call's prefix, `restored, not recorded` what the first call after "
        "a compaction held beyond it and the recorded lines, `before this transcript` what the first call of a "
        "transcript that begins in the middle read beyond the recorded lines, system and tools among it."
    )
    name: str
    tokens: int
    count: int


class LargeResultOut(Schema):
    tool: str
    path: str
    tokens: int


class DuplicateReadOut(Schema):
    path: str
    read_count: int
    wasted_tokens: int


class ClearingOut(Schema):
    result_count: int
    tokens: int


class MicroOut(Schema):
    by_size: ClearingOut | None
    by_idle_time: ClearingOut | None
    warning_tokens: int | None
    is_above_warning: bool
    is_idle: bool


class InsideOut(Schema):
    """Estimated from stored content. Paths and files are left out without content access."""

    parts: list[PartOfContextOut]
    files: list[PartOfContextOut]
    duplicates: list[DuplicateReadOut]
    largest: list[LargeResultOut]
    estimated_tokens: int
    wasted_tokens: int
    is_prefix_known: bool
    micro: MicroOut
    gap_count: int = Field(description="Positions in the model's context where lines are missing.")
    found_tokens: int | None = Field(
        description="Sum of the stored lines, if it differs by more than 25% from the measured size."
    )


class ContextOut(Schema):
    thread: str
    content: str = Field(
        description="shown, not granted, not stored, no text (it came by a way that brings none) or removed (by the "
        "team's retention)."
    )
    measured: MeasuredOut | None = Field(description="Of the last call; null before the first call.")
    inside: InsideOut | None = Field(description="Null if no content is stored.")


@router.get(
    "/sessions/{int:session_id}/context",
    summary="Get context composition",
    response={200: ContextOut, 403: Problem, 404: Problem},
)
def read_session_context(request: ApiRequest, session_id: int) -> dict[str, Any]:
    """By category, tool and file; files read twice, the largest results, and the savings of a micro-compaction."""
    found: ContextPage = read_context(request.auth, find_session(request, session_id), now=timezone.now())
    return {
        "thread": found.thread,
        "content": found.content_state.value,
        "measured": found.measured,
        "inside": found.inside,
    }

"""What Plimsoll does by itself when a line is crossed, and what it suggests."""

from datetime import datetime

from django.shortcuts import get_object_or_404
from django.utils import timezone
from ninja import Field, Query, Router, Schema, Status
from pydantic import ConfigDict

from dashboard import access
from dashboard.access import Act
from dashboard.api.named_team import find_team
from dashboard.api.request import ApiRequest, acting_user
from dashboard.api.run_schemas import Line
from dashboard.api.schemas import Input, Problem
from dashboard.automation.crossings import dismiss, list_suggestions
from dashboard.automation.wishes import LONGEST_TEMPLATE, NotesWriter, WishChange, change_wish, find_wish
from dashboard.models import AutomaticMode, SummarizerName, Team

router = Router(tags=["compaction"])
REFUSALS = {403: Problem, 404: Problem}


class AutomationOut(Schema):
    mode: AutomaticMode
    summarizer: SummarizerName = Field(description="Summariser for automatic runs.")
    notes_writer: NotesWriter
    notes_template: str
    changed_at: datetime | None
    changed_by: str = Field(alias="changed_by_name")


class AutomationIn(Input):
    """Omitted fields are unchanged."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"mode": "run"}]})

    mode: AutomaticMode | None = None
    summarizer: SummarizerName | None = None
    notes_writer: NotesWriter | None = None
    notes_template: str | None = Field(None, max_length=LONGEST_TEMPLATE, description="Empty: the default sections.")


class SuggestionsAsked(Schema):
    team: Line | None = Field(None, description="Slug of the team; required if you are in several teams.")


class SuggestionOut(Schema):
    id: int
    session_id: int
    external_id: str
    at: datetime
    used_tokens: int
    line_tokens: int
    answer: AutomaticMode = Field(
        description="run: an automatic run was due and is about to start, could not be started, or failed."
    )
    sentence: str


class SuggestionsOut(Schema):
    items: list[SuggestionOut]


@router.get("/teams/{slug}/automation", summary="Get automatic mode", response={200: AutomationOut, **REFUSALS})
def read_automation(request: ApiRequest, slug: str) -> object:
    return find_wish(access.require_team(request.auth, slug, Act.TUNE))


@router.patch(
    "/teams/{slug}/automation", summary="Update automatic mode", response={200: AutomationOut, **REFUSALS, 422: Problem}
)
def change_automation(request: ApiRequest, slug: str, body: AutomationIn) -> object:
    """Applies the next time a threshold is crossed."""
    team: Team = access.require_team(request.auth, slug, Act.TUNE)
    change_wish(team, WishChange(**body.model_dump()), by=acting_user(request))
    return find_wish(team)


@router.get("/suggestions", summary="List suggestions", response={200: SuggestionsOut, **REFUSALS, 422: Problem})
def list_team_suggestions(request: ApiRequest, asked: Query[SuggestionsAsked]) -> dict[str, object]:
    """Sessions over their auto-compact threshold without a compaction, or whose run failed, newest first."""
    team = find_team(request, asked.team, Act.SEE)
    found = list_suggestions(request.auth, team, now=timezone.now())
    names = ("at", "used_tokens", "line_tokens", "answer", "session_id")
    return {
        "items": [
            {name: getattr(each.crossing, name) for name in names}
            | {"id": each.crossing.pk, "external_id": each.crossing.session.external_id, "sentence": each.sentence}
            for each in found
        ]
    }


@router.post(
    "/suggestions/{int:crossing_id}/dismiss",
    summary="Dismiss suggestion",
    response={204: None, **REFUSALS, 409: Problem},
)
def dismiss_suggestion(request: ApiRequest, crossing_id: int) -> Status[dict[str, str] | None]:
    """Hides the suggestion until the threshold is crossed again."""
    act = Act.SEE if request.auth.key is None else Act.RUN_OWN  # a key stands or falls by its scope, whatever it names
    access.require_anywhere(request.auth, act)
    crossing = get_object_or_404(access.crossings(request.auth, act).select_related("session__team"), pk=crossing_id)
    if not dismiss(request.auth, crossing, now=timezone.now()):
        return Status(409, {"detail": "This suggestion was already dismissed."})
    return Status(204, None)

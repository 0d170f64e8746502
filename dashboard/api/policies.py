"""A team's policy: its thresholds, what a draft of them would mean, their history, and what is stored."""

from dataclasses import replace
from datetime import datetime
from typing import Any

from django.http import Http404
from django.utils import timezone
from ninja import Field, Router, Schema
from pydantic import ConfigDict

from compaction.context.policy import Policy, Preset
from dashboard import access
from dashboard.access import Act
from dashboard.api.request import ApiRequest, acting_user
from dashboard.api.schemas import PERSON_ONLY, Input, Problem
from dashboard.policies.changes import LONGEST_NOTE, MOST_DAYS, change_policy, undo_change
from dashboard.policies.differences import Area
from dashboard.policies.drawn_lines import draw_windows
from dashboard.policies.effects import count_effect
from dashboard.policies.history import find_change, list_changes
from dashboard.policies.in_force import TeamSettings, find_policy
from dashboard.policies.thresholds import clean_thresholds

router = Router(tags=["policy"])
HISTORY_SIZE = 50
MOST_DISABLED = 200
EXAMPLE: dict[str, Any] = {
    "preset": "early",
    "warning_margin_tokens": 50_000,
    "models": {"claude-opus-4-5": {"auto_percent": 80}},
}


class ThresholdValues(Input):
    """Null, or left out: as the client has it. Margins are distances down from the limit of the line, in tokens."""

    warning_margin_tokens: int | None = None
    error_margin_tokens: int | None = None
    auto_margin_tokens: int | None = None
    blocking_margin_tokens: int | None = None
    auto_percent: float | None = Field(None, description="From 1 to 100, of what is available.")
    window_tokens: int | None = None
    max_output_tokens: int | None = None
    reserve_tokens: int | None = Field(None, description="What the client keeps back for the summary.")
    is_auto_enabled: bool | None = Field(None, description="False where the clients have auto-compact switched off.")


class Thresholds(ThresholdValues):
    model_config = ConfigDict(json_schema_extra={"examples": [EXAMPLE]})

    preset: Preset = Preset.CLIENT
    models: dict[str, ThresholdValues] = Field(
        default_factory=dict, description="Values for single models, by the name the client reports."
    )

    def values(self) -> dict[str, object]:
        return self.model_dump(mode="json", exclude_none=True)


class PolicyLineOut(Schema):
    name: str
    tokens: int | None = Field(description="Null while auto-compact is off.")
    before: int | None = Field(description="Where the line is with the policy in force.")
    formula: str


class WindowOut(Schema):
    model: str = Field(description="Empty: any model with this window.")
    window_tokens: int | None = Field(description="Null when the model's window is not known: then there are no lines.")
    lines: list[PolicyLineOut] = Field(alias="moved")


class PolicyOut(Schema):
    version: int = Field(description="0 while nothing was changed.")
    thresholds: Thresholds
    changed_by: str = Field(description="Empty while nothing was changed.")
    changed_at: datetime | None
    windows: list[WindowOut]


class PolicyIn(Input):
    base_version: int = Field(ge=0, description="The version you looked at. A newer one is not overwritten (409).")
    thresholds: Thresholds
    note: str = Field("", max_length=LONGEST_NOTE, examples=["warn us earlier"])


class DraftIn(Input):
    thresholds: Thresholds


class LineEffectOut(Schema):
    line: str
    before: int = Field(description="Sessions that reached the line with the policy in force.")
    after: int


class EffectOut(Schema):
    """Of the sessions of the last 30 days, by the most each one held."""

    session_count: int
    not_counted: int = Field(description="The window of their model is not known.")
    lines: list[LineEffectOut]
    sentence: str


class PreviewOut(Schema):
    windows: list[WindowOut]
    effect: EffectOut


class DifferenceOut(Schema):
    title: str
    before: str
    after: str


class PolicyChangeOut(Schema):
    version: int
    at: datetime
    who: str
    note: str
    differences: list[DifferenceOut]


class PolicyChangesOut(Schema):
    items: list[PolicyChangeOut]
    next: int | None = Field(description="For `before`, to go on; null on the last page.")


class StorageOut(Schema):
    version: int
    stores_content: bool
    own_patterns: dict[str, str]
    disabled_rules: list[str] = Field(description="Names of redaction rules that are switched off.")
    content_days: int | None = Field(description="Null: content is kept without end.")
    metrics_days: int | None = Field(description="Null: sessions are kept without end.")

    @staticmethod
    def resolve_disabled_rules(settings: TeamSettings) -> list[str]:
        return sorted(settings.disabled_rules)


class StorageIn(Input):
    base_version: int = Field(ge=0, description="The version you looked at. A newer one is not overwritten (409).")
    stores_content: bool
    own_patterns: dict[str, str] = Field(
        description="Names to regular expressions (RE2 syntax) whose repeats end.", examples=[{"badge": "B-[0-9]{6}"}]
    )
    disabled_rules: list[str] | None = Field(
        None,
        max_length=MOST_DISABLED,
        description="Names of redaction rules that are switched off: what they find is stored as it is. Left out: as "
        "before.",
        examples=[["discord-token"]],
    )
    content_days: int | None = Field(None, ge=1, le=MOST_DAYS, description="Left out: without end.", examples=[30])
    metrics_days: int | None = Field(None, ge=1, le=MOST_DAYS, description="Left out: without end.", examples=[400])
    note: str = Field("", max_length=LONGEST_NOTE, examples=["badges are in our logs"])


REFUSALS = {403: Problem, 404: Problem}
CHANGE_REFUSALS = {**REFUSALS, 409: Problem, 422: Problem}


@router.get("/teams/{slug}/policy", response={200: PolicyOut, **REFUSALS})
def read_policy(request: ApiRequest, slug: str) -> dict[str, object]:
    """The thresholds in force, and the lines they draw in windows of 200k and 1M."""
    return _policy_out(find_policy(access.require_team(request.auth, slug, Act.SEE)))


@router.put("/teams/{slug}/policy", response={200: PolicyOut, **CHANGE_REFUSALS})
def change_thresholds(request: ApiRequest, slug: str, body: PolicyIn) -> dict[str, object]:
    """All thresholds at once: what is left out follows the client again. Stored sessions are levelled anew."""
    team = access.require_team(request.auth, slug, Act.TUNE)
    wanted = replace(find_policy(team), thresholds=body.thresholds.values())
    who = acting_user(request)
    return _policy_out(change_policy(team, wanted, by=who, base_version=body.base_version, note=body.note))


@router.post("/teams/{slug}/policy/preview", response={200: PreviewOut, **REFUSALS, 422: Problem})
def preview_thresholds(request: ApiRequest, slug: str, body: DraftIn) -> dict[str, object]:
    """Where the lines would be, and what that would have meant. Nothing is saved."""
    team = access.require_team(request.auth, slug, Act.TUNE)
    current, draft = find_policy(team).lines_policy, Policy.from_team_values(clean_thresholds(body.thresholds.values()))
    return {
        "windows": draw_windows(current, draft),
        "effect": count_effect(team, current, draft, now=timezone.now()),
    }


@router.get("/teams/{slug}/policy/history", response={200: PolicyChangesOut, **REFUSALS})
def list_policy_changes(request: ApiRequest, slug: str, before: int | None = None) -> dict[str, object]:
    """Changes of thresholds, newest first, 50 at a time; `before` goes on below a version."""
    team = access.require_team(request.auth, slug, Act.SEE)
    rows = access.policies(request.auth, slug)
    changes, following = list_changes(team, rows, Area.LINES, before=before, size=HISTORY_SIZE)
    told = [
        {**vars(change), "differences": [each for each in change.differences if each.area is Area.LINES]}
        for change in changes
    ]
    return {"items": told, "next": following}


@router.post("/teams/{slug}/policy/{int:version}/undo", response={200: PolicyOut, **CHANGE_REFUSALS})
def undo_policy_change(request: ApiRequest, slug: str, version: int) -> dict[str, object]:
    """Puts back what this version changed, as a new version. What was changed again since then stays (409 where that
    is all of it). A version that also changed what is stored needs a signed-in admin."""
    team = access.require_team(request.auth, slug, Act.TUNE)
    change = find_change(team, version)
    if change is None:
        raise Http404("No such change.")
    access.require_team(request.auth, slug, change.undoing_act)
    return _policy_out(undo_change(team, version, by=acting_user(request)))


@router.get("/teams/{slug}/storage", response={200: StorageOut, **REFUSALS}, openapi_extra=PERSON_ONLY)
def read_storage(request: ApiRequest, slug: str) -> TeamSettings:
    """Whether content is stored, the team's own patterns of secrets, and rules that are switched off."""
    return find_policy(access.require_team(request.auth, slug, Act.MANAGE))


@router.put("/teams/{slug}/storage", response={200: StorageOut, **CHANGE_REFUSALS}, openapi_extra=PERSON_ONLY)
def change_storage(request: ApiRequest, slug: str, body: StorageIn) -> TeamSettings:
    """All of it at once. Content holds for what arrives from then on; days, an hour later, for all. After a change of
    patterns or rules, followed files are read again at once and imported files with the next import."""
    team = access.require_team(request.auth, slug, Act.MANAGE)
    current = find_policy(team)
    wanted = replace(
        current,
        stores_content=body.stores_content,
        own_patterns=body.own_patterns,
        disabled_rules=current.disabled_rules if body.disabled_rules is None else frozenset(body.disabled_rules),
        content_days=body.content_days,
        metrics_days=body.metrics_days,
    )
    return change_policy(team, wanted, by=acting_user(request), base_version=body.base_version, note=body.note)


def _policy_out(settings: TeamSettings) -> dict[str, object]:
    return {**vars(settings), "windows": draw_windows(settings.lines_policy, settings.lines_policy)}

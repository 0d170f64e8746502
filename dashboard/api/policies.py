"""A team's policy: its thresholds, what a draft of them would mean, their history, and what is stored."""

from dataclasses import replace
from datetime import datetime
from typing import Any

from django.http import Http404
from django.utils import timezone
from ninja import Field, Router, Schema
from pydantic import ConfigDict

from compaction.context.margins import Preset
from compaction.context.policy import Policy
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
    """Null or omitted: the client's value. Margins are tokens below the limit of the threshold."""

    warning_margin_tokens: int | None = None
    error_margin_tokens: int | None = None
    auto_margin_tokens: int | None = None
    blocking_margin_tokens: int | None = None
    auto_percent: float | None = Field(None, description="1 to 100, % of the usable window.")
    window_tokens: int | None = None
    max_output_tokens: int | None = None
    reserve_tokens: int | None = Field(None, description="Tokens the client reserves for the summary.")
    is_auto_enabled: bool | None = Field(None, description="False if the clients have auto-compact disabled.")


class Thresholds(ThresholdValues):
    model_config = ConfigDict(json_schema_extra={"examples": [EXAMPLE]})

    preset: Preset = Preset.CLIENT
    models: dict[str, ThresholdValues] = Field(
        default_factory=dict, description="Per-model values, by the name the client reports."
    )

    def values(self) -> dict[str, object]:
        return self.model_dump(mode="json", exclude_none=True)


class PolicyLineOut(Schema):
    name: str
    tokens: int | None = Field(description="Null while auto-compact is off.")
    before: int | None = Field(description="Threshold under the current policy.")
    formula: str


class WindowOut(Schema):
    model: str = Field(description="Empty: any model with this window.")
    window_tokens: int | None = Field(
        description="Null if the model's window is unknown; then there are no thresholds."
    )
    lines: list[PolicyLineOut] = Field(alias="moved")


class PolicyOut(Schema):
    version: int = Field(description="0 before the first change.")
    thresholds: Thresholds
    changed_by: str = Field(description="Empty before the first change.")
    changed_at: datetime | None
    windows: list[WindowOut]


class PolicyIn(Input):
    base_version: int = Field(ge=0, description="The version you read. A newer one is not overwritten (409).")
    thresholds: Thresholds
    note: str = Field("", max_length=LONGEST_NOTE, examples=["warn us earlier"])


class DraftIn(Input):
    thresholds: Thresholds


class LineEffectOut(Schema):
    line: str
    before: int = Field(description="Sessions that reached the threshold under the current policy.")
    after: int


class EffectOut(Schema):
    """Sessions of the last 30 days, by their peak size."""

    session_count: int
    not_counted: int = Field(description="Their model's window is unknown.")
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
    next: int | None = Field(description="Pass as `before` for the next page; null on the last page.")


class StorageOut(Schema):
    version: int
    stores_content: bool
    own_patterns: dict[str, str]
    disabled_rules: list[str] = Field(description="Names of redaction rules that are turned off.")
    content_days: int | None = Field(description="Null: content is kept indefinitely.")
    metrics_days: int | None = Field(description="Null: sessions are kept indefinitely.")

    @staticmethod
    def resolve_disabled_rules(settings: TeamSettings) -> list[str]:
        return sorted(settings.disabled_rules)


class StorageIn(Input):
    base_version: int = Field(ge=0, description="The version you read. A newer one is not overwritten (409).")
    stores_content: bool
    own_patterns: dict[str, str] = Field(
        description="Map of names to regular expressions (RE2 syntax) with bounded repeats.",
        examples=[{"badge": "B-[0-9]{6}"}],
    )
    disabled_rules: list[str] | None = Field(
        None,
        max_length=MOST_DISABLED,
        description="Names of redaction rules to turn off: their matches are stored unredacted. Omitted: unchanged.",
        examples=[["discord-token"]],
    )
    content_days: int | None = Field(None, ge=1, le=MOST_DAYS, description="Omitted: no limit.", examples=[30])
    metrics_days: int | None = Field(None, ge=1, le=MOST_DAYS, description="Omitted: no limit.", examples=[400])
    note: str = Field("", max_length=LONGEST_NOTE, examples=["badges are in our logs"])


REFUSALS = {403: Problem, 404: Problem}
CHANGE_REFUSALS = {**REFUSALS, 409: Problem, 422: Problem}


@router.get("/teams/{slug}/policy", summary="Get thresholds", response={200: PolicyOut, **REFUSALS})
def read_policy(request: ApiRequest, slug: str) -> dict[str, object]:
    """Current thresholds, and their values in windows of 200k and 1M tokens."""
    return _policy_out(find_policy(access.require_team(request.auth, slug, Act.SEE)))


@router.put("/teams/{slug}/policy", summary="Update thresholds", response={200: PolicyOut, **CHANGE_REFUSALS})
def change_thresholds(request: ApiRequest, slug: str, body: PolicyIn) -> dict[str, object]:
    """Replaces all thresholds; omitted values use the client's. Levels of stored sessions are recalculated."""
    team = access.require_team(request.auth, slug, Act.TUNE)
    wanted = replace(find_policy(team), thresholds=body.thresholds.values())
    who = acting_user(request)
    return _policy_out(change_policy(team, wanted, by=who, base_version=body.base_version, note=body.note))


@router.post(
    "/teams/{slug}/policy/preview", summary="Preview thresholds", response={200: PreviewOut, **REFUSALS, 422: Problem}
)
def preview_thresholds(request: ApiRequest, slug: str, body: DraftIn) -> dict[str, object]:
    """Shows the thresholds a draft would give and their effect on recent sessions. Nothing is saved."""
    team = access.require_team(request.auth, slug, Act.TUNE)
    current, draft = find_policy(team).lines_policy, Policy.from_team_values(clean_thresholds(body.thresholds.values()))
    return {
        "windows": draw_windows(current, draft),
        "effect": count_effect(team, current, draft, now=timezone.now()),
    }


@router.get(
    "/teams/{slug}/policy/history", summary="List threshold changes", response={200: PolicyChangesOut, **REFUSALS}
)
def list_policy_changes(request: ApiRequest, slug: str, before: int | None = None) -> dict[str, object]:
    """Changes of thresholds, newest first, 50 per page; `before` continues below a version."""
    team = access.require_team(request.auth, slug, Act.SEE)
    rows = access.policies(request.auth, slug)
    changes, following = list_changes(team, rows, Area.LINES, before=before, size=HISTORY_SIZE)
    told = [
        {**vars(change), "differences": [each for each in change.differences if each.area is Area.LINES]}
        for change in changes
    ]
    return {"items": told, "next": following}


@router.post(
    "/teams/{slug}/policy/{int:version}/undo",
    summary="Undo threshold change",
    response={200: PolicyOut, **CHANGE_REFUSALS},
)
def undo_policy_change(request: ApiRequest, slug: str, version: int) -> dict[str, object]:
    """Restores the values this version changed, as a new version. Values changed again later are kept (409 if that is
    all of them). A version that also changed storage settings requires a signed-in admin."""
    team = access.require_team(request.auth, slug, Act.TUNE)
    change = find_change(team, version)
    if change is None:
        raise Http404("Change not found.")
    access.require_team(request.auth, slug, change.undoing_act)
    return _policy_out(undo_change(team, version, by=acting_user(request)))


@router.get(
    "/teams/{slug}/storage",
    summary="Get storage settings",
    response={200: StorageOut, **REFUSALS},
    openapi_extra=PERSON_ONLY,
)
def read_storage(request: ApiRequest, slug: str) -> TeamSettings:
    """Whether content is stored, the team's own redaction patterns, and rules that are turned off."""
    return find_policy(access.require_team(request.auth, slug, Act.MANAGE))


@router.put(
    "/teams/{slug}/storage",
    summary="Update storage settings",
    response={200: StorageOut, **CHANGE_REFUSALS},
    openapi_extra=PERSON_ONLY,
)
def change_storage(request: ApiRequest, slug: str, body: StorageIn) -> TeamSettings:
    """Replaces all storage settings. The content setting applies to new data; days apply to all data after one hour.
    After a change of patterns or rules, followed files are re-read at once and imported files with the next import."""
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

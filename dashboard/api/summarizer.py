"""What a team's own compactions may use and spend. The API key goes in and never comes out."""

from datetime import date, datetime
from decimal import Decimal

from django.db import transaction
from django.utils import timezone
from ninja import Field, Router, Schema

from dashboard import access
from dashboard.access import Act
from dashboard.api.prices import RatesInOut, name_rates, spell_entered
from dashboard.api.request import ApiRequest, acting_user
from dashboard.api.schemas import PERSON_ONLY, Input, Problem
from dashboard.models import NativeForm, Team
from dashboard.policies.in_force import find_policy
from dashboard.runs.settings_changes import SettingsChange, change_settings, forget_key, set_key
from dashboard.runs.spend import read_spend
from dashboard.runs.team_settings import KeyOrigin, find_settings

router = Router(tags=["compaction"])
REFUSALS = {403: Problem, 404: Problem}


class SpendOut(Schema):
    day: date = Field(description="A UTC day.")
    spent_usd: Decimal
    reserved_usd: Decimal = Field(description="Reserved for runs in progress.")


class SummarizerOut(Schema):
    has_key: bool
    key_origin: KeyOrigin
    key_hint: str = Field(description="Last characters, to identify the key.")
    key_problem: str = Field(description="Why a stored key cannot be used; otherwise empty.")
    model: str = Field(description="Empty: the session's own model.")
    small_model: str = Field(description="Used first if the conversation fits its window. Empty: not used.")
    allows_fork: bool
    native_form: NativeForm = Field(description="Whether API compaction is allowed, and with which of its two betas.")
    daily_cap_usd: Decimal
    own_prices: dict[str, RatesInOut] = Field(description="As entered; see `/teams/{slug}/prices`.")
    today: SpendOut
    changed_at: datetime | None
    changed_by: str = Field(alias="changed_by_name")


class SummarizerIn(Input):
    """Omitted fields are unchanged."""

    key: str | None = Field(None, description="Sets or replaces the API key. An empty string removes the team's key.")
    model: str | None = Field(None, description="Empty: the session's own model.", examples=["claude-opus-5-5"])
    small_model: str | None = Field(None, description="Empty: the newest small model. `none`: do not use one.")
    allows_fork: bool | None = None
    native_form: NativeForm | None = Field(None, description="Two betas of the API; `off` by default.")
    daily_cap_usd: Decimal | None = Field(None, description="Per UTC day; 0 allows no paid runs.", examples=["5"])
    own_prices: dict[str, RatesInOut] | None = Field(None, description="All prices; omitted prices are deleted.")


@router.get(
    "/teams/{slug}/summarizer",
    summary="Get summariser settings",
    response={200: SummarizerOut, **REFUSALS},
    openapi_extra=PERSON_ONLY,
)
def read_summarizer(request: ApiRequest, slug: str) -> dict[str, object]:
    """Models and limits for summaries, and today's use of the cap."""
    return _describe(access.require_team(request.auth, slug, Act.MANAGE))


@router.patch(
    "/teams/{slug}/summarizer",
    summary="Update summariser settings",
    response={200: SummarizerOut, **REFUSALS, 409: Problem, 422: Problem},
    openapi_extra=PERSON_ONLY,
)
def change_summarizer(request: ApiRequest, slug: str, body: SummarizerIn) -> dict[str, object]:
    """Applies to new compactions."""
    team, who = access.require_team(request.auth, slug, Act.MANAGE), acting_user(request)
    change = SettingsChange(
        model=body.model,
        small_model=body.small_model,
        allows_fork=body.allows_fork,
        native_form=body.native_form,
        daily_cap_usd=None if body.daily_cap_usd is None else str(body.daily_cap_usd),
        own_prices=None if body.own_prices is None else spell_entered(body.own_prices),
    )
    with transaction.atomic():
        change_settings(team, change, by=who)
        if body.key == "":
            forget_key(team, by=who)
        elif body.key is not None:
            set_key(team, body.key, by=who)
    return _describe(team)


def _describe(team: Team) -> dict[str, object]:
    choice = find_settings(team)
    prices = name_rates(find_policy(team).own_prices)
    return {**vars(choice), "own_prices": prices, "today": read_spend(team, timezone.now())}

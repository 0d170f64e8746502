"""What a team's own compactions may use and spend: key, models, forks, the API's own form, cap, prices. Read side."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from enum import StrEnum

from django.conf import settings

from compaction.errors import RunError
from compaction.llm.lookup import get_small_model
from compaction.llm.prices import Price, get_list_price, get_team_price
from dashboard.models import NativeForm, SummarizerSettings, Team
from dashboard.policies.in_force import find_policy
from dashboard.runs.team_key import KeyUnreadable, hint_at, open_key

NO_SMALL_MODEL = "none"  # as stored; an empty value is the newest small model on record


class KeyOrigin(StrEnum):
    """Whose key is used."""

    NONE = "none"
    OPERATOR = "operator"
    TEAM = "team"


class NoKey(RunError):
    """Neither the team nor the operator has set a key."""

    reason = "no_key"

    def __init__(self) -> None:
        super().__init__("No API key is set for this team, so Claude cannot write summaries.")


@dataclass(frozen=True)
class SummarizerChoice:
    """What is in force. `model` empty: the session's own; `small_model` empty: none, the larger one writes.

    `key_problem` is a sentence while a key is stored that cannot be used; then there is none (`has_key`).
    """

    has_key: bool = False
    model: str = ""
    small_model: str = ""
    allows_fork: bool = True
    native_form: NativeForm = NativeForm.OFF
    daily_cap_usd: Decimal = Decimal(5)
    own_prices: Mapping[str, Price] = field(default_factory=dict)
    small_model_as_set: str = ""  # empty: the newest small one on record; NO_SMALL_MODEL: none
    key_origin: KeyOrigin = KeyOrigin.NONE
    key_hint: str = ""
    key_problem: str = ""
    stamp: str = ""  # of the stored row: what a person looked at before changing it
    changed_by_name: str = ""
    changed_at: datetime | None = None

    def find_price(self, model: str, at: datetime) -> Price | None:
        """The team's own price goes before every table."""
        return self.find_own_price(model) or get_list_price(model, at)

    def find_own_price(self, model: str) -> Price | None:
        """What `compute_cost` takes as the team's price."""
        return get_team_price(self.own_prices, model)


def find_settings(team: Team) -> SummarizerChoice:
    """Two queries. The key itself is not in it: `find_key`."""
    row = SummarizerSettings.objects.filter(team=team).select_related("changed_by").first()
    stored = row or SummarizerSettings(team=team)
    origin, hint, problem = _look_at_key(team, stored)
    return SummarizerChoice(
        has_key=origin is not KeyOrigin.NONE and not problem,
        model=stored.model,
        small_model="" if stored.small_model == NO_SMALL_MODEL else stored.small_model or get_small_model(),
        allows_fork=stored.allows_fork,
        native_form=NativeForm(stored.native_form),
        daily_cap_usd=Decimal(stored.daily_cap_usd),
        own_prices=find_policy(team).prices,
        small_model_as_set=stored.small_model,
        key_origin=origin,
        key_hint=hint,
        key_problem=problem,
        stamp=stamp_of(row),
        changed_by_name=stored.changed_by.username if stored.changed_by else "",
        changed_at=row.changed_at if row else None,
    )


def find_key(team: Team) -> str:
    """The team's own key, else the operator's. Raises NoKey, and KeyUnreadable for one that cannot be opened."""
    row = SummarizerSettings.objects.filter(team=team).only("key_sealed").first()
    if row is not None and row.key_sealed is not None:
        return open_key(team, row.key_sealed)
    if settings.ANTHROPIC_API_KEY:
        return str(settings.ANTHROPIC_API_KEY)
    raise NoKey


def stamp_of(row: SummarizerSettings | None) -> str:
    return row.changed_at.isoformat() if row is not None else ""


def _look_at_key(team: Team, row: SummarizerSettings) -> tuple[KeyOrigin, str, str]:
    """A team's unreadable key is not replaced by the operator's in silence: somebody else would pay."""
    if row.key_sealed is not None:
        try:
            open_key(team, row.key_sealed)
        except KeyUnreadable as problem:
            return KeyOrigin.TEAM, row.key_hint, str(problem)
        return KeyOrigin.TEAM, row.key_hint, ""
    if settings.ANTHROPIC_API_KEY:
        return KeyOrigin.OPERATOR, hint_at(settings.ANTHROPIC_API_KEY), ""
    return KeyOrigin.NONE, "", ""

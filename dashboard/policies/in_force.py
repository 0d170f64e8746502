"""The policy in force: a team's newest row, or what holds while nobody decided anything."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property

from compaction.context.policy import Policy
from compaction.context.thresholds import Thresholds, compute_thresholds
from compaction.llm.prices import Price, get_team_price
from dashboard.kept_query import KeptQuery, Open, column_names, make_object
from dashboard.models import AgentSession, Team, TeamPolicy
from dashboard.policies.own_prices import StoredPrices, read_prices
from dashboard.policies.proxy_additions import NO_ADDITIONS, ProxyAdditions, read_additions
from dashboard.session_levels import find_model_in_use


@dataclass(frozen=True)
class TeamSettings:
    """Version 0: the client's own lines, and content stored only on a developer's own machine."""

    stores_content: bool
    version: int = 0
    thresholds: Mapping[str, object] = field(default_factory=dict)
    own_patterns: Mapping[str, str] = field(default_factory=dict)
    disabled_rules: frozenset[str] = frozenset()
    redaction_version: int = 0
    content_days: int | None = None
    metrics_days: int | None = None
    proxy_additions: ProxyAdditions = NO_ADDITIONS
    own_prices: StoredPrices = field(default_factory=dict)
    price_version: int = 0
    changed_by: str = ""
    changed_at: datetime | None = None

    def content_since(self, now: datetime) -> datetime | None:
        """Content that is older is not kept."""
        return None if self.content_days is None else now - timedelta(days=self.content_days)

    def metrics_since(self, now: datetime) -> datetime | None:
        """Sessions that ended before are not kept."""
        return None if self.metrics_days is None else now - timedelta(days=self.metrics_days)

    @cached_property
    def lines_policy(self) -> Policy:
        return Policy.from_team_values(self.thresholds)

    @cached_property
    def prices(self) -> Mapping[str, Price]:
        """The team's own prices, as `get_team_price` takes them."""
        return read_prices(self.own_prices)

    def find_price(self, model: str | None) -> Price | None:
        """Return the team's own price of a model."""
        return get_team_price(self.prices, model)

    def draw_session_lines(self, session: AgentSession) -> Thresholds | None:
        """None where the model or its window is not known."""
        return compute_thresholds(self.lines_policy, find_model_in_use(session)) if session.model else None


_NEWEST = KeptQuery(
    lambda: (
        TeamPolicy.objects.filter(team_id=Open("team")).order_by("-version").values_list(*column_names(TeamPolicy))[:1]
    )
)


def find_policy(team: Team) -> TeamSettings:
    """One query."""
    rows = _NEWEST.read(team=team.pk)
    return settings_of(make_object(TeamPolicy, rows[0])) if rows else default_settings(team)


def list_past_policies(team: Team, settings: TeamSettings) -> tuple[tuple[datetime, Policy], ...]:
    """Those whose lines were in force before, each with when it ended, the oldest first."""
    past: list[tuple[datetime, Policy]] = []
    before: Mapping[str, object] = {}
    rows = TeamPolicy.objects.filter(team=team, version__lte=settings.version).order_by("version")
    for created_at, thresholds in rows.values_list("created_at", "thresholds") if settings.version else ():
        if thresholds != before:
            past.append((created_at, Policy.from_team_values(before)))
        before = thresholds
    return tuple(past)


def default_settings(team: Team) -> TeamSettings:
    return TeamSettings(stores_content=team.is_local)


def settings_of(row: TeamPolicy) -> TeamSettings:
    return TeamSettings(
        stores_content=row.stores_content,
        version=row.version,
        thresholds=row.thresholds,
        own_patterns=row.own_patterns,
        disabled_rules=frozenset(row.disabled_rules),
        redaction_version=row.redaction_version,
        content_days=row.content_days,
        metrics_days=row.metrics_days,
        proxy_additions=read_additions(row.proxy_additions),
        own_prices=row.own_prices,
        price_version=row.price_version,
        changed_by=row.changed_by_name,
        changed_at=row.created_at,
    )

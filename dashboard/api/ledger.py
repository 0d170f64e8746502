"""The ledger of a team's cache breaks: sums of a period and of the one before, by cause, project or the like."""

from datetime import date, datetime
from decimal import Decimal
from typing import Literal

from django.utils import timezone
from ninja import Field, Query, Router, Schema
from ninja.errors import HttpError

from compaction.cache.causes import CAUSES
from dashboard import access
from dashboard.access import Act
from dashboard.api.listing import Day
from dashboard.api.named_team import find_team
from dashboard.api.request import ApiRequest
from dashboard.api.schemas import Problem
from dashboard.pages.ledger_filters import GroupName, LedgerFilters
from dashboard.pages.ledger_totals import EvidenceSum, Ledger, read_ledger
from dashboard.person_zone import find_zone

router = Router(tags=["cache breaks"])


class LedgerAsked(Schema):
    """Filters, named as on the page; omitted filters match everything."""

    team: str = Field("", max_length=200, description="Slug of one of your teams; required if you have several.")
    days: Literal["7", "30", "90"] = Field("30", description="Number of days, ending today.")
    from_day: Day | None = Field(None, alias="from", description="First day; with `to`, instead of `days`.")
    to_day: Day | None = Field(None, alias="to", description="Last day, included; default: today.")
    first_day: Day | None = Field(None, description="Alias of `from`.")
    last_day: Day | None = Field(None, description="Alias of `to`.")
    zone: str = Field("UTC", max_length=60, description="Days begin at midnight of this time zone.")
    by: GroupName = Field(GroupName.CAUSE, description="Grouping.")
    cause: str = Field("", max_length=60, examples=["tools_changed"])
    evidence: Literal["", "api", "client", "request", "inferred", "unknown"] = ""
    project: str = Field("", max_length=200)
    developer: str = Field("", max_length=200)
    model: str = Field("", max_length=200)
    avoidable: bool = Field(default=False, description="Only avoidable cache breaks.")


class LossSumOut(Schema):
    breaks: int
    avoidable_breaks: int
    lost_tokens: int
    recreated_tokens: int
    lost_usd: Decimal = Field(
        description="At your prices, otherwise list price, without the breaks counted in `unpriced`."
    )
    avoidable_usd: Decimal = Field(description="Net of the extra cost of avoiding them.")
    avoidable_gross_usd: Decimal = Field(description="Lost to avoidable breaks.")
    unpriced: int = Field(description="Breaks on models without a known price.")


class EvidenceOut(Schema):
    evidence: str
    share: float = Field(description="Of all breaks.")
    total: LossSumOut


class LossGroupOut(Schema):
    key: str
    name: str
    total: LossSumOut
    before: LossSumOut | None = Field(description="Value of the previous period; null for a day.")
    evidence: list[EvidenceOut]


class LossDayOut(Schema):
    day: date
    total: LossSumOut


class LedgerOut(Schema):
    team: str
    first_day: date
    last_day: date
    since: datetime
    until: datetime
    by: GroupName
    total: LossSumOut
    before: LossSumOut = Field(
        description="The same number of days just before; if today is included, up to the same time of day."
    )
    evidence: list[EvidenceOut]
    days: list[LossDayOut]
    groups: list[LossGroupOut] = Field(
        description="Most avoidable dollars first, then groups only in the previous period; days newest first."
    )


@router.get(
    "/breaks/ledger",
    summary="Get cache break totals",
    response={200: LedgerOut, 403: Problem, 404: Problem, 422: Problem},
)
def read_break_ledger(request: ApiRequest, asked: Query[LedgerAsked]) -> dict[str, object]:
    """Totals of the Cache breaks page. Copies of calls counted in another session are left out."""
    access.require_anywhere(request.auth, Act.SEE)
    if asked.cause and asked.cause not in CAUSES:
        raise HttpError(422, "cause: unknown cause.")
    zone = find_zone(asked.zone)
    if zone is None:
        raise HttpError(422, "zone: expected a time zone name, such as Europe/Berlin.")
    first, last = asked.from_day or asked.first_day, asked.to_day or asked.last_day
    query = {
        "team": asked.team,
        "days": asked.days,
        "from": first.isoformat() if first else "",
        "to": last.isoformat() if last else "",
        "avoidable": "yes" if asked.avoidable else "",
        **{name: getattr(asked, name) for name in ("by", "cause", "evidence", "project", "developer", "model")},
    }
    team = find_team(request, asked.team, Act.SEE)
    return _describe(read_ledger(request.auth, LedgerFilters.read(query, team, zone=zone, now=timezone.now())))


def _describe(found: Ledger) -> dict[str, object]:
    period = found.period
    return {
        "team": found.filters.team.slug,
        "first_day": period.first,
        "last_day": period.last,
        "since": period.start_at,
        "until": period.end_at,
        "by": found.filters.by,
        "total": found.total,
        "before": found.before,
        "evidence": [_describe_evidence(each) for each in found.evidence],
        "days": [{"day": day, "total": total} for day, total in found.days],
        "groups": [
            {
                "key": group.key,
                "name": group.name,
                "total": group.total,
                "before": group.before,
                "evidence": [_describe_evidence(each) for each in group.evidence],
            }
            for group in found.groups
        ],
    }


def _describe_evidence(each: EvidenceSum) -> dict[str, object]:
    return {"evidence": each.grade.value, "share": each.share, "total": each.total}

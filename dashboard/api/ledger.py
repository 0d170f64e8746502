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
    """The filters of the page, by the same names; what is left out filters nothing."""

    team: str = Field("", max_length=200, description="The slug of one of your teams; needed when you have several.")
    days: Literal["7", "30", "90"] = Field("30", description="How many, today the last.")
    from_day: Day | None = Field(None, alias="from", description="First day, with `to` instead of `days`.")
    to_day: Day | None = Field(None, alias="to", description="Last day, included; today when left out.")
    first_day: Day | None = Field(None, description="Another name of `from`.")
    last_day: Day | None = Field(None, description="Another name of `to`.")
    zone: str = Field("UTC", max_length=60, description="Days begin at midnight of this time zone.")
    by: GroupName = Field(GroupName.CAUSE, description="What to add up by.")
    cause: str = Field("", max_length=60, examples=["tools_changed"])
    evidence: Literal["", "api", "client", "request", "inferred", "unknown"] = ""
    project: str = Field("", max_length=200)
    developer: str = Field("", max_length=200)
    model: str = Field("", max_length=200)
    avoidable: bool = Field(default=False, description="Only breaks that could have been avoided.")


class LossSumOut(Schema):
    breaks: int
    avoidable_breaks: int
    lost_tokens: int
    recreated_tokens: int
    lost_usd: Decimal = Field(description="At your prices, else list price, without the breaks that `unpriced` counts.")
    avoidable_usd: Decimal = Field(description="Net of what avoiding would have cost more.")
    avoidable_gross_usd: Decimal = Field(description="What the avoidable breaks lost.")
    unpriced: int = Field(description="Breaks of models without a known price.")


class EvidenceOut(Schema):
    evidence: str
    share: float = Field(description="Of all breaks.")
    total: LossSumOut


class LossGroupOut(Schema):
    key: str
    name: str
    total: LossSumOut
    before: LossSumOut | None = Field(description="The same in the period before; null for a day.")
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
    before: LossSumOut = Field(description="As many days right before; where today is among these, as much of them.")
    evidence: list[EvidenceOut]
    days: list[LossDayOut]
    groups: list[LossGroupOut] = Field(
        description="Most avoidable dollars first, last those that only the period before had; days newest first."
    )


@router.get("/breaks/ledger", response={200: LedgerOut, 403: Problem, 404: Problem, 422: Problem})
def read_break_ledger(request: ApiRequest, asked: Query[LedgerAsked]) -> dict[str, object]:
    """What the ledger page adds up. Copies of calls that another session counts are left out."""
    access.require_anywhere(request.auth, Act.SEE)
    if asked.cause and asked.cause not in CAUSES:
        raise HttpError(422, "cause: no such cause.")
    zone = find_zone(asked.zone)
    if zone is None:
        raise HttpError(422, "zone: expected the name of a time zone, such as Europe/Berlin.")
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

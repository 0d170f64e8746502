"""Two sessions, or two periods of a team, held against each other."""

from decimal import Decimal

from django.utils import timezone
from ninja import Field, Query, Router, Schema
from ninja.errors import HttpError

from dashboard import access
from dashboard.access import Act
from dashboard.api.listing import Day, find_session
from dashboard.api.named_team import find_team
from dashboard.api.request import ApiRequest
from dashboard.api.schemas import Problem
from dashboard.pages.comparison import Comparison, Scope, Side, compare_periods, compare_sessions
from dashboard.pages.periods import read_periods
from dashboard.person_zone import find_zone

router = Router(tags=["compare"])


class PeriodsCompared(Schema):
    """Defaults to the last seven days and the seven days before."""

    team: str = Field("", max_length=200, description="Slug of one of your teams; required if you have several.")
    project: str = Field("", max_length=200)
    developer: str = Field("", max_length=200)
    from_day: Day | None = Field(
        None, alias="from", description="First day of the second period, which is compared with the first."
    )
    to_day: Day | None = Field(None, alias="to", description="Last day of the second period, included.")
    other_from: Day | None = Field(None, description="First day of the first period; default: the period just before.")
    other_to: Day | None = Field(None, description="Last day of the first period, included.")
    first_day: Day | None = Field(None, description="Alias of `from`.")
    last_day: Day | None = Field(None, description="Alias of `to`.")
    other_first_day: Day | None = Field(None, description="Alias of `other_from`.")
    other_last_day: Day | None = Field(None, description="Alias of `other_to`.")
    zone: str = Field("UTC", max_length=60, description="Days begin at midnight of this time zone.")


class SideOut(Schema):
    name: str
    detail: str
    curves: dict[str, list[tuple[int, float]]] = Field(description="Values by call number or day.")


class ComparedOut(Schema):
    figure: str
    label: str
    first: Decimal | float | int | None
    second: Decimal | float | int | None
    difference: Decimal | float | int | None
    change: float | None = Field(description="As a share of the first; null if that is zero or unknown.")
    verdict: str = Field(description="better, worse, the same, or empty if neither direction is better.")


class ComparisonOut(Schema):
    first: SideOut
    second: SideOut
    figures: list[ComparedOut] = Field(description="Dollars are at your prices, otherwise list prices.")


@router.get(
    "/sessions/{int:session_id}/compare/{int:second_id}",
    summary="Compare two sessions",
    response={200: ComparisonOut, 403: Problem, 404: Problem},
)
def compare_two_sessions(request: ApiRequest, session_id: int, second_id: int) -> dict[str, object]:
    """Compares the second session with the first: context growth, hit rate, cache breaks, compactions and dollars."""
    first, second = find_session(request, session_id), find_session(request, second_id)
    return _describe(compare_sessions(request.auth, first, second))


@router.get(
    "/compare/periods",
    summary="Compare two periods",
    response={200: ComparisonOut, 403: Problem, 404: Problem, 422: Problem},
)
def compare_two_periods(request: ApiRequest, asked: Query[PeriodsCompared]) -> dict[str, object]:
    """Compares two periods of a team, a project or a developer, with daily values."""
    access.require_anywhere(request.auth, Act.SEE)
    zone = find_zone(asked.zone)
    if zone is None:
        raise HttpError(422, "zone: expected a time zone name, such as Europe/Berlin.")
    named = {
        "from": asked.from_day or asked.first_day,
        "to": asked.to_day or asked.last_day,
        "other_from": asked.other_from or asked.other_first_day,
        "other_to": asked.other_to or asked.other_last_day,
    }
    query = {name: day.isoformat() for name, day in named.items() if day}
    team = find_team(request, asked.team, Act.SEE)
    scope = Scope(team, asked.project.replace("\x00", ""), asked.developer.replace("\x00", ""))
    first, second, is_before = read_periods(query, zone=zone, now=timezone.now())
    return _describe(compare_periods(request.auth, scope, first, second, is_before=is_before))


def _describe(found: Comparison) -> dict[str, object]:
    return {
        "first": _describe_side(found.first),
        "second": _describe_side(found.second),
        "figures": [
            {
                "figure": each.measure.name,
                "label": each.measure.label,
                "first": each.trend.before,
                "second": each.trend.now,
                "difference": each.trend.difference,
                "change": each.trend.change,
                "verdict": each.verdict,
            }
            for each in found.figures
        ],
    }


def _describe_side(side: Side) -> dict[str, object]:
    return {
        "name": side.name,
        "detail": side.detail,
        "curves": {name: list(each) for name, each in side.curves.items()},
    }

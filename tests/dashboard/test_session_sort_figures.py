"""The stored figures that lists of sessions are sorted by are those that their rows show."""

from dataclasses import replace
from importlib import import_module

import pytest
from django.apps import apps
from django.utils import timezone

from compaction.context.forecast import Pace
from dashboard import access
from dashboard.access import Actor
from dashboard.models import AgentSession, Team
from dashboard.pages.gauges import list_sessions
from dashboard.pages.session_filters import SessionFilters, SortName
from dashboard.policies.changes import change_policy
from dashboard.policies.in_force import find_policy
from dashboard.session_forecasts import serialize_forecast
from tests.builders import make_session, make_team, make_user

pytestmark = pytest.mark.django_db


@pytest.fixture
def team() -> Team:
    return make_team("Harbour", owner="alice")


@pytest.fixture
def alice(team: Team) -> Actor:
    return access.person(make_user("alice"))


FORECASTS = [
    (90_000, 167_000, 86, "~86 calls (34-140)"),
    (166_999, 167_000, 1, "~1 call (0-4)"),
    (167_000, 167_000, 0, "now"),
    (190_000, 167_000, 0, "now"),
    (90_000, None, None, ""),
    (190_000, None, None, ""),  # auto-compact is off
]


@pytest.mark.parametrize(("used_tokens", "line_tokens", "calls_left", "words"), FORECASTS)
def test_list_is_sorted_by_the_calls_that_its_rows_show(
    team: Team, alice: Actor, used_tokens: int, line_tokens: int | None, calls_left: int | None, words: str
) -> None:
    if line_tokens is None:
        change_policy(team, replace(find_policy(team), thresholds={"is_auto_enabled": False}), by=None, base_version=0)
    forecast = serialize_forecast(Pace(900), line_tokens, used_tokens)
    make_session(team, "one", context_tokens=used_tokens, auto_line_tokens=line_tokens, **forecast._asdict())
    (row,) = list_sessions(alice, SessionFilters(sort=SortName.FORECAST), now=timezone.now()).rows
    assert (row.session.calls_left, row.forecast_words) == (calls_left, words)


def test_stored_sessions_get_the_calls_that_their_rows_show(team: Team, alice: Actor) -> None:
    for number, (used_tokens, line_tokens, _, _) in enumerate(FORECASTS):
        forecast = serialize_forecast(Pace(900), line_tokens, used_tokens).forecast
        stored = {"context_tokens": used_tokens, "auto_line_tokens": line_tokens, "forecast": forecast}
        make_session(team, str(number), **stored)
    make_session(team, "no pace, at the line", context_tokens=167_000, auto_line_tokens=167_000)
    make_session(team, "no pace", context_tokens=90_000, auto_line_tokens=167_000)
    make_session(team, "long", auto_line_tokens=2**52, forecast={"calls": [2**50, 2**51, 2**52]})
    import_module("dashboard.migrations.0036_session_sorts").fill_calls_left(apps, None)
    found = AgentSession.objects.order_by("pk").values_list("calls_left", flat=True)
    assert list(found) == [*(calls_left for _, _, calls_left, _ in FORECASTS), 0, None, 2**51]


def test_list_is_sorted_by_the_hit_rate_that_its_rows_show(team: Team, alice: Actor) -> None:
    most = 2**53 - 1
    for number, (read, plain, once, hourly) in enumerate(
        [(0, 0, 0, 0), (0, 7, 0, 0), (1, 2, 0, 0), (999, 0, 1, 0), (5, 0, 0, 0), (most, most, most, most)]
    ):
        make_session(
            team, str(number), read_tokens=read, input_tokens=plain, write_5m_tokens=once, write_1h_tokens=hourly
        )  # fmt: skip
    rows = list_sessions(alice, SessionFilters(sort=SortName.HIT_RATE), now=timezone.now()).rows
    assert [row.session.external_id for row in rows] == ["4", "3", "2", "5", "1", "0"]
    for row in rows[:-1]:
        assert row.hit_rate is not None
        assert row.session.hit_rate_ppm == pytest.approx(1e6 * row.hit_rate, abs=1)
    assert (rows[-1].session.hit_rate_ppm, rows[-1].hit_rate) == (None, None)


def test_hit_rate_of_sums_beyond_any_count_is_stored(team: Team) -> None:
    largest = 2**63 - 1
    session = make_session(team, "hostile", read_tokens=largest, input_tokens=largest, write_5m_tokens=largest)
    session.refresh_from_db()
    assert session.hit_rate_ppm == 333_333

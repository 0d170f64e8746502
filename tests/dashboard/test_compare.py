"""Two sessions and two periods held against each other: figures, signs, verdicts in words, and who may."""

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.utils import timezone

from dashboard.charts.comparison import Curve, chart_two_curves
from dashboard.models import AgentSession, ApiCall, SessionHour, Team
from dashboard.pages.trends import Trend, say_trend
from tests.builders import make_many_sessions, make_session, make_team
from tests.session_rows import make_breaks, make_compactions
from tests.visitors import ask, count_queries, read, sign_in

pytestmark = pytest.mark.django_db


@pytest.fixture
def team() -> Team:
    return make_team("Harbour", owner="alice", viewer="vera")


def make_talk(team: Team, name: str, contexts: list[int], **columns: object) -> AgentSession:
    session = make_session(team, name, call_count=len(contexts), peak_tokens=max(contexts, default=0), **columns)
    ApiCall.objects.bulk_create(
        ApiCall(team=team, session=session, number=number, call_id=f"{name}-{number}", context_tokens=tokens)
        for number, tokens in enumerate(contexts, 1)
    )
    return session


def make_pair(team: Team) -> tuple[AgentSession, AgentSession]:
    first = make_talk(
        team, "first", [10_000, 12_000, 14_000], spent_usd=4, lost_usd=1, avoidable_usd=1, break_count=2,
        read_tokens=50, input_tokens=50, project="web",
    )  # fmt: skip
    second = make_talk(
        team, "second", [10_000, 11_000, 5_000, 6_000], spent_usd=2, break_count=1, read_tokens=90, input_tokens=10,
        compaction_count=1, project="web",
    )  # fmt: skip
    return first, second


def find_figures(client: Any, path: str) -> dict[str, dict[str, Any]]:
    return {each["figure"]: each for each in ask(client, path)["figures"]}


def test_second_session_is_held_against_the_first(team: Team) -> None:
    first, second = make_pair(team)
    client = sign_in("vera")
    told = find_figures(client, f"sessions/{first.pk}/compare/{second.pk}")
    expected: dict[str, tuple[Any, Any, str]] = {
        "growth_tokens": (2000, 666, "better"),
        "hit_rate": (0.5, 0.9, "better"),
        "break_rate": (100 * 2 / 3, 25, "better"),
        "breaks": (2, 1, ""),
        "lost_share": ("0.25", 0, "better"),
        "lost_usd": ("1.00000000", "0.00000000", ""),
        "avoidable_share": ("0.25", 0, "better"),
        "avoidable_usd": ("1.00000000", "0.00000000", ""),
        "compaction_rate": (0, 25, "worse"),
        "compactions": (0, 1, ""),
        "mid_task_rate": (0, 0, "the same"),
        "mid_task": (0, 0, ""),
        "calls": (3, 4, ""),
        "turns": (0, 0, "the same"),
    }
    for name, (before, now, verdict) in expected.items():
        figure = told[name]
        assert (Decimal(figure["first"]), Decimal(figure["second"])) == (Decimal(before), Decimal(now)), name
        assert figure["verdict"] == verdict, name
    assert told["hit_rate"]["change"] == pytest.approx(0.8)
    page = read(client, f"/compare/?first={first.pk}&second={second.pk}")
    row = page.split(">Cache breaks per 100 calls</th>")[1].split("</tr>")[0]
    assert ">66.7<" in row
    assert "−41.7<" in row  # noqa: RUF001
    assert ">better</span>" in row
    beside = page.split(">Cache breaks</th>")[1].split("</tr>")[0]
    assert "−1<" in beside  # noqa: RUF001
    assert "−50%" in beside  # noqa: RUF001
    assert "better" not in beside
    assert "+40 points" in page
    assert 'id="compared-context-figure"' in page


def test_what_is_not_known_is_not_judged(team: Team) -> None:
    bare = make_session(team, "bare", call_count=2, unpriced_count=2)
    first, _ = make_pair(team)
    told = find_figures(sign_in("vera"), f"sessions/{bare.pk}/compare/{first.pk}")
    for name in ("growth_tokens", "hit_rate", "spent_usd", "lost_usd", "lost_share", "avoidable_share", "call_usd"):
        assert told[name]["first"] is None, name
        assert told[name]["verdict"] == "", name
    assert "unknown" in read(sign_in("vera"), f"/compare/?first={bare.pk}&second={first.pk}")


def keep_hour(session: AgentSession, days_ago: float, **columns: Any) -> None:
    at = (timezone.now() - timedelta(days=days_ago)).replace(minute=0, second=0, microsecond=0)
    given = {"call_count": 10, "input_tokens": 1000, "read_tokens": 900, "spent_usd": Decimal(2), **columns}
    SessionHour.objects.create(team=session.team, session=session, hour_at=at, **given)


def fill_periods(team: Team) -> None:
    web = make_session(team, "web", project="web", developer="mia")
    api = make_session(team, "api", project="api", developer="tom")
    keep_hour(web, 1, lost_usd=Decimal(1))
    keep_hour(api, 2, spent_usd=Decimal(6))
    keep_hour(web, 9, input_tokens=3000)
    now = timezone.now()
    make_breaks(web, 2, at=now - timedelta(days=1), is_avoidable=True, lost_usd=Decimal("0.5"))
    make_breaks(web, 1, at=now - timedelta(days=9))
    make_breaks(web, 5, at=now - timedelta(days=1), is_counted=False)
    make_compactions(api, 3, at=now - timedelta(days=2), is_mid_task=True)


def test_last_days_are_held_against_the_days_before(team: Team) -> None:
    fill_periods(team)
    told = find_figures(sign_in("vera"), "compare/periods")
    pairs = {name: (each["first"], each["second"]) for name, each in told.items()}
    assert pairs["calls"] == (10, 20)
    assert pairs["sessions"] == (1, 2)
    assert pairs["breaks"] == (1, 2)
    assert pairs["prompt_tokens"] == (300, 100)
    assert pairs["mid_task"] == (0, 3)
    assert [Decimal(figure) for figure in pairs["spent_usd"]] == [2, 8]
    assert [Decimal(figure) for figure in pairs["avoidable_usd"]] == [0, 1]
    assert (pairs["break_rate"], told["break_rate"]["verdict"]) == ((10, 10), "the same")
    assert (pairs["mid_task_rate"], told["mid_task_rate"]["verdict"]) == ((0, 15), "worse")


def test_more_work_is_not_called_worse(team: Team) -> None:
    """Twice the breaks and compactions in four times the calls."""
    web, now = make_session(team, "web"), timezone.now()
    keep_hour(web, 1, call_count=400, spent_usd=Decimal(80), lost_usd=Decimal(4))
    keep_hour(web, 9, call_count=100, spent_usd=Decimal(20), lost_usd=Decimal(2))
    for days, number in ((1, 2), (9, 1)):
        at = now - timedelta(days=days)
        make_breaks(web, number, at=at, is_avoidable=True, lost_usd=Decimal(2))
        make_compactions(web, number, at=at, is_mid_task=True)
    told = find_figures(sign_in("vera"), "compare/periods")
    for rate in ("break_rate", "lost_share", "avoidable_share", "compaction_rate", "mid_task_rate"):
        assert told[rate]["verdict"] == "better", rate
    for count in ("breaks", "lost_usd", "avoidable_usd", "compactions", "mid_task", "spent_usd", "calls"):
        assert told[count]["difference"] not in (0, None), count
        assert told[count]["verdict"] == "", count


def test_days_without_calls_leave_a_gap_and_there_is_no_day_zero() -> None:
    before, now = Curve("before", ((2, 5.0), (3, 6.0), (6, 7.0)), 7), Curve("now", ((4, 8.0),), 7)
    chart = chart_two_curves("curves", "Curves", (before, now), along="day", say=str)
    figure = chart.serialize_figure()
    first, second = figure["data"]
    assert (first["x"], first["y"]) == ([2, 3, 4, 5, 6], [5.0, 6.0, None, None, 7.0])
    assert not first["connectgaps"]
    assert [each["mode"] for each in (first, second)] == ["lines+markers"] * 2
    axis = figure["layout"]["xaxis"]
    assert (axis["range"], axis["tick0"], axis["dtick"]) == ([0.5, 7.5], 1, 1)
    whole = Curve("whole", tuple((number, 1.0) for number in range(1, 401)), 400)
    chart = chart_two_curves("calls", "Calls", (whole, Curve("none", (), 0)), along="call", say=str)
    assert chart.figure.data[0].mode == "lines"
    assert chart.figure.data[1].y == ()
    assert 0 < chart.figure.layout.xaxis.range[0] < 1


def test_nothing_is_not_held_against_nothing(team: Team) -> None:
    page = read(sign_in("alice"), "/compare/")
    assert "No calls in either period" in page
    assert "the same" not in page


@pytest.mark.parametrize(
    ("query", "calls"),
    [("project=web", (10, 10)), ("developer=tom", (0, 10)), ("project=none", (0, 0))],
)
def test_project_and_developer_cut_both_sides(team: Team, query: str, calls: tuple[int, int]) -> None:
    fill_periods(team)
    client = sign_in("vera")
    told = find_figures(client, f"compare/periods?{query}")["calls"]
    assert (told["first"], told["second"]) == calls
    read(client, f"/compare/?{query}")


def test_any_two_periods_can_be_named(team: Team) -> None:
    fill_periods(team)
    day = (timezone.now() - timedelta(days=9)).date()
    today = timezone.now().date()
    told = find_figures(
        sign_in("vera"),
        f"compare/periods?first_day={today - timedelta(days=3)}&last_day={today}"
        f"&other_first_day={day}&other_last_day={day}",
    )["calls"]
    assert (told["first"], told["second"]) == (10, 20)
    page = read(sign_in("vera"), f"/compare/?from={today}&to={today}&other_from={day}&other_to={day}")
    assert f"{day} to {day}" in page


def test_api_takes_the_periods_by_the_names_that_the_page_uses(team: Team) -> None:
    fill_periods(team)
    day, today = (timezone.now() - timedelta(days=9)).date(), timezone.now().date()
    query = f"from={today - timedelta(days=3)}&to={today}&other_from={day}&other_to={day}"
    calls = find_figures(sign_in("vera"), f"compare/periods?{query}")["calls"]
    assert (calls["first"], calls["second"]) == (10, 20)


def test_second_session_is_chosen_from_the_same_project_or_by_search(team: Team) -> None:
    first, second = make_pair(team)
    make_session(team, "elsewhere", project="api")
    client = sign_in("vera")
    assert f'href="/compare/?first={first.pk}"' in read(client, f"/sessions/{first.pk}/")
    page = read(client, f"/compare/?first={first.pk}")
    assert f"first={first.pk}&amp;second={second.pk}" in page
    assert "elsewhe" not in page
    assert "elsewhe" in read(client, f"/compare/?first={first.pk}&text=elsewhere")
    assert "No matching sessions" in read(client, f"/compare/?first={first.pk}&text=nowhere")


def test_outsider_compares_nothing_of_the_team(team: Team) -> None:
    first, second = make_pair(team)
    make_team("Marina", owner="charlie")
    stranger, pair = sign_in("charlie"), f"first={first.pk}&second={second.pk}"
    for query in (pair, f"first={first.pk}", "team=harbour", "first=x", f"first={10**18}"):
        assert stranger.get(f"/compare/?{query}").status_code == 404, query
    for path in (f"sessions/{first.pk}/compare/{second.pk}", "compare/periods?team=harbour"):
        assert stranger.get(f"/api/v1/{path}").status_code == 404, path
    assert "No team yet" in read(sign_in("nobody"), "/compare/")


def test_title_is_for_those_who_may_read_it(team: Team) -> None:
    first, second = make_pair(team)
    AgentSession.objects.update(title="Secret plan")
    assert "Secret plan" not in read(sign_in("vera"), f"/compare/?first={first.pk}&second={second.pk}")


def test_number_of_queries_does_not_grow(team: Team) -> None:
    client = sign_in("vera")
    first, second = make_pair(team)
    urls = (f"/compare/?first={first.pk}&second={second.pk}", "/compare/", f"/compare/?first={first.pk}")
    few = [count_queries(client, url) for url in urls]
    ApiCall.objects.bulk_create(
        ApiCall(team=team, session=first, number=number, call_id=f"more-{number}", context_tokens=number)
        for number in range(10, 1010)
    )
    for session in make_many_sessions(team, 100, project="web"):
        keep_hour(session, 1)
    assert [count_queries(client, url) for url in urls] == few


@pytest.mark.parametrize(
    ("before", "now", "words"),
    [
        (Decimal(2), Decimal(1), "−50% vs. the days before, better"),  # noqa: RUF001
        (Decimal(1), Decimal(2), "+100% vs. the days before, worse"),
        (1, 1, "same as the days before"),
        (0, 3, "none in the days before"),
        (None, 3, ""),
        (1000, 1001, "+<1% vs. the days before, worse"),
    ],
)
def test_trend_is_told_in_words(before: Any, now: Any, words: str) -> None:
    assert say_trend(Trend(before, now, is_less_better=True), against="the days before") == words

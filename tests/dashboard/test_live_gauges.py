"""The overview's gauges of live sessions: which sessions, in which order, and what stands there without a script."""

import re
from datetime import timedelta

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from dashboard import access
from dashboard.models import AgentSession, Team
from dashboard.pages.live_gauges import MOST_GAUGES, LiveGauges, list_live_gauges
from tests.builders import make_many_sessions, make_session, make_team, make_user

pytestmark = pytest.mark.django_db


@pytest.fixture
def team() -> Team:
    make_team("Marina", owner="stranger")
    return make_team("Harbour", owner="olga", member="mia")


def read_gauges(team: Team, *, live_count: int = 1) -> LiveGauges:
    actor = access.person(make_user("mia"))
    return list_live_gauges(actor, team, live_count=live_count, now=timezone.now())


def read_section(name: str) -> str:
    client = Client()
    client.force_login(make_user(name), backend="django.contrib.auth.backends.ModelBackend")
    page = client.get("/").content.decode()
    return page[page.index('<section class="card live-now"') :].split("</section>")[0]


def test_only_live_sessions_of_the_team_have_a_gauge(team: Team) -> None:
    now = timezone.now()
    make_session(team, "working", last_at=now)
    make_session(team, "yesterday", last_at=now - timedelta(days=1))
    make_session(team, "ended", last_at=now, ended_at=now)
    make_session(Team.objects.get(slug="marina"), "theirs", last_at=now)
    found = read_gauges(team)
    assert [each.row.session.external_id for each in found.gauges] == ["working"]
    assert found.more_count == 0


def test_sessions_closest_to_a_threshold_are_chosen_and_keep_their_places(team: Team) -> None:
    now = timezone.now()
    for number in range(MOST_GAUGES + 1):
        make_session(team, f"s-{number}", last_at=now, percent_left=40 + number, risk_rank=1)
    shown = [f"s-{number}" for number in range(MOST_GAUGES)]
    assert [each.row.session.external_id for each in read_gauges(team).gauges] == shown
    AgentSession.objects.filter(external_id="s-4").update(percent_left=0, risk_rank=5)
    assert [each.row.session.external_id for each in read_gauges(team).gauges] == shown
    AgentSession.objects.filter(external_id=f"s-{MOST_GAUGES}").update(percent_left=0, risk_rank=5)
    assert [each.row.session.external_id for each in read_gauges(team).gauges] == [*shown[:-1], f"s-{MOST_GAUGES}"]


def test_only_a_row_of_gauges_is_shown_and_the_rest_is_a_link(team: Team) -> None:
    make_many_sessions(team, MOST_GAUGES + 3, last_at=lambda _: timezone.now())
    found = read_gauges(team, live_count=MOST_GAUGES + 3)
    assert (len(found.gauges), found.more_count) == (MOST_GAUGES, 3)
    section = read_section("mia")
    assert section.count("<figure") == MOST_GAUGES
    assert re.search(r'href="/sessions/\?team=harbour&amp;active=live&amp;sort=risk">View 3 more<', section)


def test_gauge_is_a_link_with_title_number_and_level_as_text(team: Team) -> None:
    session = make_session(
        team,
        "one",
        title="Mend <b>",
        owner=make_user("mia"),
        context_tokens=171_400,
        percent_left=0,
        level="auto-compact",
    )
    section = read_section("mia")
    assert " hidden" not in section.split(">")[0]
    assert f'<a class="whole" href="/sessions/{session.pk}/">Mend &lt;b&gt;</a>' in section
    assert "171.4k</b> of 200k" in section
    assert ">auto-compact</span>" in section
    assert "Mend" not in read_section("olga")


def test_nothing_live_hides_the_section_and_asks_nothing(team: Team) -> None:
    make_session(team, "old", last_at=timezone.now() - timedelta(hours=2))
    assert read_section("mia").split(">")[0].endswith(" hidden")
    actor = access.person(make_user("mia"))
    with CaptureQueriesContext(connection) as asked:
        assert list_live_gauges(actor, team, live_count=0, now=timezone.now()).gauges == ()
    assert len(asked) == 0


@pytest.mark.parametrize(
    ("columns", "words"),
    [({"model": "some-model"}, "unknown window"), ({"context_tokens": 0}, "no context size yet")],
)
def test_unknown_is_said_and_not_drawn_as_zero(team: Team, columns: dict[str, object], words: str) -> None:
    session = make_session(team, "one")
    AgentSession.objects.filter(pk=session.pk).update(**columns)
    (gauge,) = read_gauges(team).gauges
    assert gauge.chart is None
    section = read_section("mia")
    assert words in section
    assert "data-chart" not in section


def test_many_live_sessions_cost_two_queries(team: Team) -> None:
    actor = access.person(make_user("mia"))
    for number in (2, 40):
        AgentSession.objects.all().delete()
        make_many_sessions(team, number, last_at=lambda _: timezone.now())
        with CaptureQueriesContext(connection) as asked:
            list_live_gauges(actor, team, live_count=number, now=timezone.now())
        assert len(asked) == 2

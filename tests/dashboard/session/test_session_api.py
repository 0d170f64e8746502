"""The API of one session: the header's values, and its calls page by page."""

import pytest
from django.test import Client

from dashboard.models import AgentSession, Team
from tests.builders import make_session, make_team, make_user
from tests.session_builders import make_calls

pytestmark = pytest.mark.django_db


@pytest.fixture
def team() -> Team:
    return make_team("Harbour", viewer="vera", member="mia")


@pytest.fixture
def session(team: Team) -> AgentSession:
    return make_session(team, "s-1", title="Mend the crane", owner=make_user("mia"), forked_from="s-0", call_count=7)


def sign_in(name: str) -> Client:
    client = Client()
    client.force_login(make_user(name), backend="django.contrib.auth.backends.ModelBackend")
    return client


def test_header_holds_lines_with_formulas_and_relatives(team: Team, session: AgentSession) -> None:
    origin, fork = make_session(team, "s-0"), make_session(team, "s-2", forked_from="s-1")
    told = sign_in("vera").get(f"/api/v1/sessions/{session.pk}").json()
    lines = {line["name"]: line for line in told["lines"]}
    assert lines["auto-compact"]["formula"] == "auto = available - 13,000 = 167,000"
    assert (told["level"], told["percent_left"], told["window_tokens"]) == ("error", 10, 200_000)
    assert told["forked_from"] == {"external_id": "s-0", "id": origin.pk}
    assert told["forks"] == [{"external_id": "s-2", "id": fork.pk}]
    assert told["forecast"] is None
    assert told["forecast_reason"]
    assert told["title"] is None
    assert sign_in("mia").get(f"/api/v1/sessions/{session.pk}").json()["title"] == "Mend the crane"


def test_unknown_is_null_and_not_nothing(team: Team) -> None:
    session = make_session(team, "s-9", model="some-model", call_count=2, unpriced_count=2)
    told = sign_in("vera").get(f"/api/v1/sessions/{session.pk}").json()
    for name in ("window_tokens", "percent_left", "spent_usd", "lost_usd", "avoidable_usd", "hit_rate", "auto_state"):
        assert told[name] is None, name
    assert told["lines"] == []


@pytest.mark.parametrize("agent", [None, "", "a", "nobody"])
@pytest.mark.parametrize("limit", [1, 3, 100])
def test_pages_hold_every_call_once(session: AgentSession, agent: str | None, limit: int) -> None:
    made = make_calls(session, 4) + make_calls(session, 3, agent_id="a")
    asked: dict[str, str | int] = {"limit": limit} | ({} if agent is None else {"agent": agent})
    client, seen = sign_in("vera"), []
    while True:
        told = client.get(f"/api/v1/sessions/{session.pk}/calls", asked).json()
        seen += [call["id"] for call in told["calls"]]
        assert len(told["calls"]) <= limit
        if told["next"] is None:
            break
        asked["after"] = told["next"]
    assert seen == [call.pk for call in made if agent is None or call.agent_id == agent]


@pytest.mark.parametrize(
    ("asked", "status"), [("limit=0", 422), ("limit=501", 422), ("after=x", 422), ("after=1", 404)]
)
def test_bad_page_is_refused(session: AgentSession, asked: str, status: int) -> None:
    assert sign_in("vera").get(f"/api/v1/sessions/{session.pk}/calls?{asked}").status_code == status


def test_call_of_another_session_is_no_place_to_go_on(team: Team, session: AgentSession) -> None:
    foreign = make_calls(make_session(team, "s-9"), 1)[0]
    assert sign_in("vera").get(f"/api/v1/sessions/{session.pk}/calls?after={foreign.pk}").status_code == 404

"""The API of one session: the header's values, and its calls page by page."""

from decimal import Decimal

import pytest
from django.test import Client

from dashboard.models import AgentSession, CacheBreak, Team
from tests.builders import make_session, make_team, make_user
from tests.session_builders import make_calls
from tests.session_rows import make_breaks

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


def test_call_has_its_verdict_and_its_price_by_kind(session: AgentSession) -> None:
    calls = make_calls(session, 4, read_tokens=100_000, write_5m_tokens=2_000, cost_usd=Decimal("0.05"))
    lost, rebuilt = calls[2], calls[3]
    (loss,) = make_breaks(session, 1, cause="tools_changed")
    (rebuild,) = make_breaks(session, 1, kind="expected", cause="compacted")
    for row, call in ((loss, lost), (rebuild, rebuilt)):
        CacheBreak.objects.filter(pk=row.pk).update(call_id=call.call_id)
    told = sign_in("vera").get(f"/api/v1/sessions/{session.pk}/calls").json()["calls"]
    assert [call["verdict"]["kind"] for call in told] == ["first", "held", "break", "expected rebuild"]
    assert told[2]["verdict"]["break_id"] == loss.pk
    assert told[2]["verdict"]["title"] == "The tools changed."
    prices = {name: Decimal(usd) for name, usd in told[1]["prices"].items()}
    assert sum(prices.values()) == Decimal("0.05")
    assert prices["read_usd"] > 0
    assert told[1]["prices"]["write_1h_usd"].startswith("0")
    assert "E" not in "".join(told[1]["prices"].values())


def test_last_call_of_each_thread_tells_what_the_next_prompt_costs(session: AgentSession) -> None:
    make_calls(session, 2, read_tokens=100_000, write_5m_tokens=2_000)
    make_calls(session, 2, agent_id="a", read_tokens=10_000)
    told = sign_in("vera").get(f"/api/v1/sessions/{session.pk}/calls").json()["calls"]
    assert [call["next_prompt"] is not None for call in told] == [False, True, False, True]
    cost = told[1]["next_prompt"]
    assert Decimal(cost["cold_usd"]) - Decimal(cost["warm_usd"]) == Decimal(cost["extra_usd"]) > 0


def test_session_tells_what_the_next_prompt_costs(session: AgentSession) -> None:
    client = sign_in("vera")
    assert client.get(f"/api/v1/sessions/{session.pk}").json()["next_prompt"] is None
    assert "Next prompt" not in client.get(f"/sessions/{session.pk}/").content.decode()
    last = make_calls(session, 2, read_tokens=100_000, write_5m_tokens=2_000)[-1]
    AgentSession.objects.filter(pk=session.pk).update(context_tokens=last.context_tokens)
    cost = client.get(f"/api/v1/sessions/{session.pk}").json()["next_prompt"]
    assert Decimal(cost["warm_usd"]) < Decimal(cost["cold_usd"])
    page = client.get(f"/sessions/{session.pk}/").content.decode()
    assert "Next prompt" in page
    assert "if cold" in page or "if warm" in page


def test_list_has_the_lines_of_each_session_and_plain_dollars(team: Team, session: AgentSession) -> None:
    make_session(team, "s-9", model="some-model")
    answer = sign_in("vera").get("/api/v1/sessions")
    rows = {row["external_id"]: row for row in answer.json()["sessions"]}
    drawn = {
        line["name"]: line["tokens"] for line in sign_in("vera").get(f"/api/v1/sessions/{session.pk}").json()["lines"]
    }
    assert rows["s-1"]["lines"] == {name: drawn[name] for name in ("warning", "error", "auto-compact", "blocking")}
    assert rows["s-9"]["lines"] == {}
    assert b'"0E-8"' not in answer.content
    assert Decimal(rows["s-1"]["lost_usd"]) == 0
    assert rows["s-1"]["lost_usd"] == "0.00000000"

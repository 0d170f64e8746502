"""The session page: who sees what, page and fragment, every state in words, the same queries at any length."""

import html
import re
from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal

import pytest
from django.core.cache import cache
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from dashboard import access
from dashboard.models import AgentSession, Membership, Team, Thread
from dashboard.pages.live_state import LiveState, find_live_state
from dashboard.pages.session_page import read_header
from tests.builders import make_many_sessions, make_session, make_team, make_user
from tests.session_builders import add_break, add_compaction, make_calls
from tests.visitors import read_words

pytestmark = pytest.mark.django_db
TITLE = "Mend the <b>crane</b>"


@pytest.fixture
def team() -> Team:
    make_team("Marina", owner="stranger")
    return make_team("Harbour", owner="olga", viewer="vera", member="mia")


@pytest.fixture
def session(team: Team) -> AgentSession:
    owner = make_user("mia")
    return make_session(team, "s-1", title=TITLE, owner=owner, has_content=True, developer="mia", call_count=12)


def sign_in(name: str) -> Client:
    client = Client()
    client.force_login(make_user(name), backend="django.contrib.auth.backends.ModelBackend")
    return client


def htmx(target: str) -> dict[str, str]:
    return {"hx-request": "true", "hx-target": target}


# --- who -------------------------------------------------------------------------------------------------------------


def test_title_is_for_those_who_may_read_the_content(session: AgentSession) -> None:
    make_calls(session, 12)
    assert TITLE in read_words(sign_in("mia"), f"/sessions/{session.pk}/")  # her own
    for reader in ("vera", "olga"):
        words = read_words(sign_in(reader), f"/sessions/{session.pk}/")
        assert TITLE not in words
        assert "s-1" in words
        assert "You can see metrics only. Ask a team owner for content access." in words
    Membership.objects.filter(user__username="vera").update(content_grant=True)
    assert TITLE in read_words(sign_in("vera"), f"/sessions/{session.pk}/")


def test_title_of_others_is_nowhere_in_the_answers(session: AgentSession) -> None:
    client = sign_in("vera")
    make_calls(session, 3)
    for url in (f"/sessions/{session.pk}/", f"/sessions/{session.pk}/settings/", f"/api/v1/sessions/{session.pk}"):
        body = client.get(url).content.decode()
        assert "crane" not in body, url


def test_session_of_another_team_does_not_exist(session: AgentSession) -> None:
    client = sign_in("stranger")
    for url in (f"/sessions/{session.pk}/", f"/sessions/{session.pk}/settings/", f"/sessions/{session.pk}/?call=1"):
        assert client.get(url).status_code == 404


def test_unknown_tab_does_not_exist(session: AgentSession) -> None:
    assert sign_in("mia").get(f"/sessions/{session.pk}/nothing/").status_code == 404


def test_relatives_are_named_and_linked_where_they_are_here(team: Team, session: AgentSession) -> None:
    fork = make_session(team, "s-2", forked_from="s-1")
    stray = make_session(team, "s-3", forked_from="gone")
    elsewhere = make_session(Team.objects.get(slug="marina"), "s-1")
    client = sign_in("mia")
    assert (
        f'forked from <a href="/sessions/{session.pk}/">s-1</a>' in client.get(f"/sessions/{fork.pk}/").content.decode()
    )
    assert (
        f'forked into <a href="/sessions/{fork.pk}/">s-2</a>' in client.get(f"/sessions/{session.pk}/").content.decode()
    )
    assert "forked from gone (not in Plimsoll)" in read_words(client, f"/sessions/{stray.pk}/")
    assert f"/sessions/{elsewhere.pk}/" not in client.get(f"/sessions/{fork.pk}/").content.decode()


def test_neighbours_follow_the_order_of_the_list(team: Team) -> None:
    now = timezone.now()
    old, middle, new = (make_session(team, f"s-{n}", last_at=now - timedelta(hours=3 - n)) for n in range(3))
    page = sign_in("vera").get(f"/sessions/{middle.pk}/").content.decode()
    assert re.search(rf'href="/sessions/{new.pk}/" rel="prev" data-key="\["', page)
    assert re.search(rf'href="/sessions/{old.pk}/" rel="next" data-key="\]"', page)
    assert 'rel="next"' not in sign_in("vera").get(f"/sessions/{old.pk}/").content.decode()


# --- page and fragment -----------------------------------------------------------------------------------------------


def test_htmx_gets_the_part_it_asks_for(session: AgentSession) -> None:
    calls = make_calls(session, 60)
    client, url = sign_in("mia"), f"/sessions/{session.pk}/"
    whole = client.get(url).content.decode()
    assert "<html" in whole
    assert 'id="calls-table"' in whole
    tab = client.get(url, headers=htmx("tab-content")).content.decode()
    assert "<html" not in tab
    assert 'id="calls-table"' in tab
    table = client.get(f"{url}?before={calls[10].pk}", headers=htmx("calls-table")).content.decode()
    assert "Rows 51 to 60 of 60." in table
    assert "chart" not in table
    picked = client.get(f"{url}?call={calls[2].pk}", headers=htmx("call-details"))
    assert "Call 3" in picked.content.decode()
    assert "<table" in picked.content.decode()
    assert picked.headers["HX-Replace-Url"] == f"{url}?call={calls[2].pk}"


def test_picked_call_is_there_without_scripts(session: AgentSession) -> None:
    calls = make_calls(session, 60)
    words = read_words(sign_in("vera"), f"/sessions/{session.pk}/?call={calls[2].pk}")
    assert "Call 3" in words
    assert "msg_" in words


@pytest.mark.parametrize("call", ["0", "999999999", "-1", "x", "9" * 30])
def test_call_that_is_not_here_is_said(session: AgentSession, call: str) -> None:
    make_calls(session, 2)
    other = make_session(session.team, "s-9")
    foreign = make_calls(other, 1)[0]
    client = sign_in("vera")
    assert client.get(f"/sessions/{session.pk}/?call={call}").status_code == 200
    for picked in (call, str(foreign.pk)):
        answer = client.get(f"/sessions/{session.pk}/?call={picked}", headers=htmx("call-details"))
        assert answer.status_code == 404


def test_call_is_found_by_its_number_in_its_thread(session: AgentSession) -> None:
    main, agent = make_calls(session, 3), make_calls(session, 3, agent_id="agent-7f")
    client, url = sign_in("vera"), f"/sessions/{session.pk}/"
    assert client.get(f"{url}?number=2").headers["Location"] == f"{url}?call={main[1].pk}#call-details"
    assert client.get(f"{url}?agent=agent-7f&number=2").headers["Location"] == f"{url}?call={agent[1].pk}#call-details"
    for absent in ("number=4", "number=2&agent=other", f"number={'9' * 18}"):
        assert "Call not found" in read_words(client, f"{url}?{absent}")


def test_findings_and_timeline_name_a_call_alike(session: AgentSession) -> None:
    """The sub-agent made two calls before the main conversation's third, so that this is the fifth of the session."""
    main, agent = make_calls(session, 3), make_calls(session, 2, agent_id="agent-7f")
    add_break(main[2])
    add_break(agent[1])
    add_compaction(session, behind=3)
    client, url = sign_in("vera"), f"/sessions/{session.pk}/"
    assert "Call 3 main" in read_words(client, f"{url}?call={main[2].pk}", **htmx("call-details"))
    for page in (f"{url}breaks/", "/breaks/?days=90"):
        drawn = client.get(page).content.decode()
        assert f'<a href="{url}?number=3">call 3</a>' in drawn
        assert re.search(rf'<a href="{url}\?agent=agent-7f&(amp;)?number=2">call 2</a>, (Explore|sub-agent) 7f', drawn)
    compactions = client.get(f"{url}compactions/").content.decode()
    assert re.search(rf'after\s+<a href="{url}\?number=3">call 3</a>', compactions)


def test_call_whose_turn_and_length_are_not_known_says_so(session: AgentSession) -> None:
    call = make_calls(session, 2, turn=0, is_output_estimated=True)[1]
    client, url = sign_in("vera"), f"/sessions/{session.pk}/"
    words = read_words(client, f"{url}?call={call.pk}", **htmx("call-details"))
    assert "Turn" in words
    assert "unknown" in words.split("Stop reason")[0].rsplit("Client", 1)[1]
    assert "~36 ~$" in words
    assert "~$0.01" in words
    assert "Estimated from the text received (3.4 characters per token" in words
    AgentSession.objects.filter(pk=session.pk).update(call_count=2, spent_usd="0.02")
    page = read_words(client, url)
    assert "~$0.02 estimated" in page
    assert "their output is estimated from the text received" in page


def test_drawer_is_hidden_until_a_call_is_picked(session: AgentSession) -> None:
    calls = make_calls(session, 3)
    client, url = sign_in("mia"), f"/sessions/{session.pk}/"
    drawer = re.compile(r'<aside [^>]*id="call-drawer"[^>]*>')
    for path, is_hidden in ((url, True), (f"{url}?call={calls[1].pk}", False), (f"{url}?call=999999999", True)):
        (opening,) = drawer.findall(client.get(path).content.decode())
        assert opening.endswith(" hidden>") is is_hidden, path


def test_details_hold_what_the_header_leaves_out(session: AgentSession) -> None:
    AgentSession.objects.filter(pk=session.pk).update(
        project_path="/srv/harbour", branch="fix/crane", client_version="2.1.9", sources=["proxy"], break_count=2,
        rebuild_count=1, client_cost_usd=Decimal("1.50"),
    )  # fmt: skip
    page = sign_in("mia").get(f"/sessions/{session.pk}/").content.decode()
    details = page.split('id="session-about"')[1].split("</details>")[0]
    for value in ("/srv/harbour", "fix/crane", "Claude Code 2.1.9", "proxy", "s-1", "2 breaks, 1 expected rebuild",
                  "$1.50 reported by the client"):  # fmt: skip
        assert value in details, value
    assert "fix/crane" not in page.split('id="session-facts"')[1].split("</span>\n  <details")[0]


def test_break_is_picked_by_its_call(session: AgentSession) -> None:
    call = make_calls(session, 5)[3]
    broken = add_break(call)
    url = f"/sessions/{session.pk}/?break={call.pk}"
    assert f'href="/breaks/{broken.pk}/"' in sign_in("vera").get(url, headers=htmx("call-details")).content.decode()
    words = read_words(sign_in("vera"), url, **htmx("call-details"))
    assert "cache break" in words
    assert "$0.06" in words


# --- states ----------------------------------------------------------------------------------------------------------


def _no_calls(session: AgentSession) -> None:
    AgentSession.objects.filter(pk=session.pk).update(context_tokens=0, peak_tokens=0, call_count=0, model="")


def _sub_agent_only(session: AgentSession) -> None:
    make_calls(session, 5, agent_id="agent-7f")


def _unknown_model(session: AgentSession) -> None:
    AgentSession.objects.filter(pk=session.pk).update(model="some-model", has_content=False)
    session.model = "some-model"
    make_calls(session, 5, cost_usd=None)
    AgentSession.objects.filter(pk=session.pk).update(call_count=5, unpriced_count=5)


def _partly_priced(session: AgentSession) -> None:
    make_calls(session, 5)
    AgentSession.objects.filter(pk=session.pk).update(call_count=5, unpriced_count=1, spent_usd=Decimal("0.04"))


def _over_full(session: AgentSession) -> None:
    make_calls(session, 5)
    AgentSession.objects.filter(pk=session.pk).update(context_tokens=210_000, peak_tokens=210_000)


def _fork(session: AgentSession) -> None:
    calls = make_calls(session, 5, is_counted=False)
    calls[4].is_counted = True
    calls[4].save()


def _compacted_last(session: AgentSession) -> None:
    make_calls(session, 20)
    add_compaction(session, behind=20)
    AgentSession.objects.filter(pk=session.pk).update(context_tokens=9_000, pending_tokens=9_000)


STATES: dict[str, tuple[Callable[[AgentSession], None], list[str], list[str]]] = {
    "no calls": (
        _no_calls,
        ["No API calls yet", "No calls yet", "unknown model"],
        ["$0.00 0 breaks, 0 expected rebuilds 39%"],
    ),
    "sub-agents only": (_sub_agent_only, ["This session has only sub-agents", "Explore 7f"], []),
    "unknown model": (
        _unknown_model,
        ["unknown window", "Price unknown for 5 calls", "Spent list price", "No content is stored"],
        ["$0.00", "auto-compact threshold"],
    ),
    "price partly unknown": (_partly_priced, ["Price unknown for 1 call; not included in these totals.", "$0.04"], []),
    "over full": (_over_full, ["over the window", "10,000 tokens over the window"], []),
    "fork": (_fork, ["4 calls were first recorded in another session", "copy, not counted"], []),
    "compacted after the last call": (
        _compacted_last,
        ["About 9,000 of 200,000 tokens in use", "~9.0k of 200k estimated"],
        ["not drawn"],
    ),
}


@pytest.mark.parametrize("state", STATES)
def test_every_state_is_said_in_words(session: AgentSession, state: str) -> None:
    make, said, unsaid = STATES[state]
    make(session)
    response = sign_in("mia").get(f"/sessions/{session.pk}/")
    labels = " ".join(re.findall(r'aria-label="([^"]*)"', response.content.decode()))
    words = f"{read_words(sign_in('mia'), f'/sessions/{session.pk}/')} {html.unescape(labels)}"
    for each in said:
        assert each in words
    shown = words[words.index("Spent") : words.index("Keyboard")]
    for each in unsaid:
        assert each not in shown
    assert sign_in("mia").get(f"/sessions/{session.pk}/settings/").status_code == 200


def test_forecast_is_for_the_line_in_force_and_not_for_one_before_a_compaction(session: AgentSession) -> None:
    make_calls(session, 30, turn=1)
    AgentSession.objects.filter(pk=session.pk).update(context_tokens=35_000)
    # 35,000 to 167,000: 24 calls of 500 tokens beyond the opening, and 20 of the usual 1,100, come to 773 a call.
    assert "~171 calls (68-277)" in read_words(sign_in("mia"), f"/sessions/{session.pk}/")
    add_compaction(session, behind=30)
    AgentSession.objects.filter(pk=session.pk).update(context_tokens=17_000)
    assert "~194 calls (77-314)" in read_words(sign_in("mia"), f"/sessions/{session.pk}/")


def test_calls_beside_the_conversation_do_not_change_the_forecast(session: AgentSession) -> None:
    *_, aside = make_calls(session, 31, turn=1)
    AgentSession.objects.filter(pk=session.pk).update(context_tokens=35_000)
    aside.query_source, aside.context_tokens = "generate_session_title", 700
    aside.save()
    words = read_words(sign_in("mia"), f"/sessions/{session.pk}/")
    assert "~171 calls" in words
    assert "35.0k of 200k measured" in words


@pytest.mark.parametrize(
    ("context_tokens", "pending_tokens", "words"),
    [
        (17_000, 17_000, "~17.0k of 200k estimated"),
        (51_000, 0, "51.0k of 200k measured"),
        (52_000, 1_000, "~52.0k of 200k estimated"),
        (35_000, 0, "35.0k of 200k measured"),
    ],
)
def test_context_holds_an_estimate_of_what_arrived_since_it_was_measured(
    session: AgentSession, context_tokens: int, pending_tokens: int, words: str
) -> None:
    """What the client tells that it left, and what the last call left, are no estimates."""
    make_calls(session, 30)
    add_compaction(session, behind=30, after_tokens=51_000)
    AgentSession.objects.filter(pk=session.pk).update(context_tokens=context_tokens, pending_tokens=pending_tokens)
    client = sign_in("mia")
    assert words in read_words(client, f"/sessions/{session.pk}/")
    told = client.get(f"/api/v1/sessions/{session.pk}").json()["context_provenance"]
    assert words.endswith(told)
    assert words.split(" of ", maxsplit=1)[0] in read_words(client, f"/sessions/{session.pk}/context/")


def test_text_of_people_is_escaped(session: AgentSession) -> None:
    nasty = '"><script>alert(1)</script>{{ 7|add:7 }}'
    text = dict.fromkeys(
        ("title", "project_path", "branch", "developer", "model", "client_version", "forked_from"), nasty
    )
    AgentSession.objects.filter(pk=session.pk).update(**text, sources=[nasty])
    session.refresh_from_db()
    calls = make_calls(session, 3, stop_reason=nasty[:60], query_source=nasty, provenance={nasty: nasty})
    make_calls(session, 2, agent_id=nasty)
    Thread.objects.filter(session=session).exclude(agent_id="").update(agent_type=nasty)
    add_break(calls[2], cause=nasty[:60])
    add_compaction(session, behind=1, trigger=nasty[:20])
    client = sign_in("mia")
    for path in ("", "settings/", f"?call={calls[2].pk}", "?x=time"):
        body = client.get(f"/sessions/{session.pk}/{path}").content.decode()
        assert "<script>alert" not in body
        assert nasty not in body


# --- cost ------------------------------------------------------------------------------------------------------------

ASKED = {
    "timeline": ("/sessions/{pk}/", ""),
    "timeline by time": ("/sessions/{pk}/?x=time", ""),
    "picked": ("/sessions/{pk}/?call={call}", ""),
    "fragment of a call": ("/sessions/{pk}/?call={call}", "call-details"),
    "fragment of the table": ("/sessions/{pk}/?before={call}", "calls-table"),
    "settings": ("/sessions/{pk}/settings/", ""),
    "api": ("/api/v1/sessions/{pk}", ""),
    "api calls": ("/api/v1/sessions/{pk}/calls?after={call}", ""),
}


@pytest.mark.parametrize("asked", ASKED)
def test_queries_do_not_grow_with_the_session(
    team: Team, asked: str, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    path, target = ASKED[asked]
    counts = []
    for length in (10, 1000):
        session = make_session(team, f"s-{length}", call_count=length)
        calls = make_calls(session, length)
        make_calls(session, length // 2, agent_id="agent-1")
        for call in calls[3::5]:
            add_break(call)
        add_compaction(session, behind=4)
        client = sign_in("vera")
        url = path.format(pk=session.pk, call=calls[-2].pk)
        client.get(url)
        cache.clear()  # what every page remembers for a while about the installation
        with django_assert_max_num_queries(31) as asked_queries:
            assert client.get(url, headers=htmx(target) if target else {}).status_code == 200
        counts.append(len(asked_queries))
    assert counts[0] == counts[1]


# --- live ------------------------------------------------------------------------------------------------------------

NOW = timezone.now()
LIVE = {
    "just now": (timedelta(0), None, LiveState.LIVE),
    "five minutes": (timedelta(minutes=5), None, LiveState.LIVE),
    "longer": (timedelta(minutes=5, seconds=1), None, LiveState.IDLE),
    "an hour": (timedelta(hours=1), None, LiveState.IDLE),
    "longer than that": (timedelta(hours=1, seconds=1), None, LiveState.QUIET),
    "ended": (timedelta(minutes=1), timedelta(minutes=1), LiveState.ENDED),
    "resumed after its end": (timedelta(minutes=1), timedelta(hours=2), LiveState.LIVE),
    "a clock ahead": (timedelta(minutes=-3), None, LiveState.LIVE),
}


@pytest.mark.parametrize("case", LIVE)
def test_live_state_goes_by_silence_and_by_the_client(case: str) -> None:
    silence, ended, expected = LIVE[case]
    session = AgentSession(last_at=NOW - silence, ended_at=None if ended is None else NOW - ended)
    assert find_live_state(session, now=NOW) is expected


def test_fragment_asks_less_than_the_page(session: AgentSession) -> None:
    """The header is not in it: neither its neighbours nor its forecast are read."""
    make_calls(session, 3)
    client, counts = sign_in("mia"), {}
    for name, headers in (("page", {}), ("fragment", {"hx-request": "true", "hx-target": "tab-content"})):
        url = f"/sessions/{session.pk}/settings/"
        client.get(url, headers=headers)
        with CaptureQueriesContext(connection) as asked:
            answer = client.get(url, headers=headers)
        assert b"auto = available - 13,000 = 167,000" in answer.content
        counts[name] = len(asked)
    assert counts["fragment"] <= 8 < counts["page"]


def test_forks_are_found_without_reading_every_session(team: Team, session: AgentSession) -> None:
    """Nearly all sessions have no origin: averages kept by the database must not talk it out of the index."""
    make_many_sessions(team, 300)
    fork = make_session(team, "s-fork", forked_from=session.external_id)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    with CaptureQueriesContext(connection) as asked:
        lineage = read_header(access.person(make_user("mia")), session, now=timezone.now()).lineage
    assert [one.pk for one in lineage.forks] == [fork.pk]
    if connection.vendor == "sqlite":
        query = next(one["sql"] for one in asked.captured_queries if "BETWEEN" in one["sql"])
        with connection.cursor() as cursor:
            cursor.execute(f"EXPLAIN QUERY PLAN {query}")
            assert "session_forks" in str(cursor.fetchall())

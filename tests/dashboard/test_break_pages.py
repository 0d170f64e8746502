"""Cache breaks: the tab, the page of one, the diff of its requests, and the same over the API, for everybody."""

from datetime import timedelta
from decimal import Decimal

import pytest
from pytest_django import Settings

from compaction.cache.causes import CAUSES, Cause
from compaction.cache.conditions import CONDITIONS
from compaction.timeline.preceding import Condition
from dashboard.models import AgentSession, ApiCall, CacheBreak, Team
from dashboard.pages.keyset import Place, read_place
from tests.builders import make_session, make_user
from tests.recorded_talk import make_harbour, record_talk, write_recorded_talk
from tests.session_builders import make_calls
from tests.session_rows import START, make_breaks, make_compactions
from tests.visitors import ask, count_queries, read, sign_in

pytestmark = pytest.mark.django_db


@pytest.fixture
def team() -> Team:
    return make_harbour()


@pytest.fixture
def recorded(team: Team) -> AgentSession:
    return record_talk(team, make_user("alice"), write_recorded_talk())


def test_tab_keeps_breaks_and_expected_rebuilds_apart(recorded: AgentSession) -> None:
    page = read(sign_in("alice"), f"/sessions/{recorded.pk}/breaks/")
    breaks, rebuilds = page.split('id="rebuilds-title"')
    assert "MCP server jira added (1 tool)" in breaks
    assert "MCP server added: jira" in breaks
    assert "request diff" in breaks
    assert "avoidable" in breaks
    assert "The conversation was just compacted" in rebuilds
    assert "MCP server jira added" not in rebuilds


def test_fragment_holds_the_tab_alone(recorded: AgentSession) -> None:
    page = read(sign_in("alice"), f"/sessions/{recorded.pk}/breaks/", hx_request="true")
    assert 'id="breaks-title"' in page
    assert "<html" not in page


def test_session_without_losses_says_so(team: Team) -> None:
    session = make_session(team, "session-1")
    assert "No cache break" in read(sign_in("vera"), f"/sessions/{session.pk}/breaks/")


def test_causes_are_added_up_the_dearest_first(team: Team) -> None:
    session = make_session(team, "session-1", break_count=3, lost_usd=Decimal("1.75"))
    make_breaks(session, 2, cause="tools_changed", lost_usd=Decimal("0.50"))
    make_breaks(session, 1, cause="model_changed", lost_usd=Decimal("0.75"))
    page = read(sign_in("vera"), f"/sessions/{session.pk}/breaks/")
    table = page.split('id="causes-title"')[1].split("</table>")[0]
    assert table.index("The tools changed.") < table.index("The model changed.")
    assert "$1.00" in table


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"lost_usd": None}, "price unknown"),
        ({"gap_seconds": None}, "unknown"),
        ({"ttl": ""}, "unknown"),
        ({"is_counted": False}, "copy"),
        ({"is_avoidable": True, "cause": "tools_changed"}, "avoidable"),
        ({"grade": "api"}, "API report"),
        ({"grade": "of a later version"}, "unknown"),
        ({"cause": "of a later version"}, "Unknown cause"),
    ],
)
def test_every_state_of_a_break_has_words(team: Team, columns: dict[str, object], words: str) -> None:
    session = make_session(team, "session-1")
    (loss,) = make_breaks(session, 1, **columns)
    client = sign_in("vera")
    assert words in read(client, f"/sessions/{session.pk}/breaks/").split('id="breaks-title"')[1]
    read(client, f"/breaks/{loss.pk}/")
    ask(client, f"breaks/{loss.pk}")


def test_break_of_unknown_cause_is_not_said_to_be_outside_of_control(team: Team) -> None:
    (loss,) = make_breaks(make_session(team, "session-1"), 1)
    page = read(sign_in("vera"), f"/breaks/{loss.pk}/")
    assert "avoidability unknown" in page
    assert "outside your control" not in page


def test_page_tells_cause_numbers_evidence_and_advice(recorded: AgentSession) -> None:
    loss = CacheBreak.objects.get(session=recorded, kind="break")
    page = read(sign_in("alice"), f"/breaks/{loss.pk}/")
    note = CAUSES[Cause.TOOLS_CHANGED]
    places = [
        page.index(words)
        for words in (
            "MCP server jira added (1 tool)",
            "tokens re-written to cache",
            "request diff",
            note.advice,
            note.meaning,
        )
    ]
    assert places == sorted(places)
    assert "Predicted 0 tokens to survive; 0 did (within the tolerance of " in page
    for number in (2, 3):
        call = ApiCall.objects.get(session=recorded, agent_id="", number=number)
        assert f'<a href="/sessions/{recorded.pk}/?call={call.pk}">call {number}</a>, sdk' in page


def test_diff_shows_tools_with_server_and_words_that_changed(recorded: AgentSession) -> None:
    loss = CacheBreak.objects.get(session=recorded, kind="break")
    page = read(sign_in("alice"), f"/breaks/{loss.pk}/")
    diff = page.split('id="diff"')[1]
    assert "First divergence: tools[0] (Bash), character 13." in diff
    assert '<td class="tool">jira</td><td>added</td>' in diff
    assert "changed: description" in diff
    assert "<ins>" in diff
    assert "1 tool unchanged" in diff
    assert "1 system block unchanged" in diff
    assert "2 new messages at the end, as expected" in diff


def test_structure_is_for_everybody_and_text_for_those_who_may_read_it(recorded: AgentSession) -> None:
    loss = CacheBreak.objects.get(session=recorded, kind="break")
    for name, sees_text in (("alice", True), ("gina", True), ("vera", False)):
        client = sign_in(name)
        page = read(client, f"/breaks/{loss.pk}/")
        assert ("quickly" in page) == sees_text, name
        assert ("Charts of the harbour" in page) == sees_text, name
        assert "mcp__jira__search" in page
        assert "1 tool unchanged" in page
        diff = ask(client, f"breaks/{loss.pk}")["diff"]
        assert [(change["name"], change["how"]) for change in diff["changes"]] == [
            ("Bash", "changed"),
            ("mcp__jira__search", "added"),
        ]
        assert (diff["changes"][0]["lines"] is not None) == sees_text
        assert diff["first"]["path"] == "tools[0]"
    assert "A team owner can grant you" in read(sign_in("vera"), f"/breaks/{loss.pk}/")


def test_team_that_stores_no_content_still_has_the_structure(team: Team) -> None:
    session = record_talk(team, make_user("alice"), write_recorded_talk(), stores_content=False)
    loss = CacheBreak.objects.get(session=session, kind="break")
    page = read(sign_in("alice"), f"/breaks/{loss.pk}/")
    assert "mcp__jira__search" in page
    assert "Only names, sizes and positions are shown: the text is not stored." in page
    assert "quickly" not in page


def test_client_that_records_no_requests_is_named(team: Team) -> None:
    (loss,) = make_breaks(make_session(team, "session-1"), 1)
    page = read(sign_in("vera"), f"/breaks/{loss.pk}/")
    assert "This client version does not log its requests" in page
    assert "This call has been deleted." in page
    assert "Not available: both requests are needed." in page


def test_contradictions_and_further_causes_are_shown(team: Team) -> None:
    evidence = {
        "further": [["model_changed", "inferred", "opus to haiku"]],
        "conflicts": ["The API names tools, the requests do not differ in them."],
        "predicted": {"low": 10_000, "high": 12_000, "observed": 30_000, "agrees": False},
    }
    (loss,) = make_breaks(make_session(team, "session-1"), 1, evidence=evidence)
    page = read(sign_in("vera"), f"/breaks/{loss.pk}/")
    assert "opus to haiku" in page
    assert "The API names tools, the requests do not differ in them." in page
    assert "10,000 to 12,000 tokens to survive; 30,000 did (outside the tolerance)." in page


@pytest.mark.parametrize(
    ("cause", "observed", "words"),
    [
        ("ttl_expired_5m", 0, "0 did, because the cache entry had expired."),
        ("ttl_expired_1h", 99_000, "99,000 did (outside the tolerance)."),
        ("likely_server_side", 0, "0 did; the loss was not caused by the request."),
        ("effort_changed", 0, "0 did (outside the tolerance)."),
        ("ttl_expired_5m", 50_000, "50,000 did (within the tolerance)."),
    ],
)
def test_prediction_is_not_said_to_fail_where_no_request_could_show_the_cause(
    team: Team, cause: str, observed: int, words: str
) -> None:
    predicted = {"low": 50_000, "high": 50_000, "observed": observed, "agrees": "within" in words}
    (loss,) = make_breaks(make_session(team, "session-1"), 1, cause=cause, evidence={"predicted": predicted})
    assert f"50,000 tokens to survive; {words}" in read(sign_in("vera"), f"/breaks/{loss.pk}/")


def test_rebuild_leads_to_its_compaction(recorded: AgentSession) -> None:
    rebuild = CacheBreak.objects.get(session=recorded, kind="expected")
    compaction = recorded.compactions.get()
    client = sign_in("vera")
    assert f'href="/compactions/{compaction.pk}/"' in read(client, f"/breaks/{rebuild.pk}/")
    assert ask(client, f"breaks/{rebuild.pk}")["compaction_id"] == compaction.pk


def test_another_team_has_no_such_break(recorded: AgentSession) -> None:
    loss = CacheBreak.objects.filter(session=recorded).first()
    assert loss is not None
    charlie = sign_in("charlie")
    for url in (f"/breaks/{loss.pk}/", f"/sessions/{recorded.pk}/breaks/", f"/api/v1/breaks/{loss.pk}"):
        assert charlie.get(url).status_code == 404, url
    assert ask(charlie, "breaks") == {"items": [], "next": None}


def test_filters_cut_the_list(team: Team) -> None:
    session = make_session(team, "session-1")
    make_breaks(session, 2, cause="tools_changed")
    make_breaks(session, 1, kind="expected", cause="compacted", at=START + timedelta(days=2))
    client = sign_in("vera")
    since = (START + timedelta(days=1)).isoformat().replace("+00:00", "Z")
    for query, count in (
        ("", 3), ("kind=break", 2), ("kind=expected", 1), ("cause=tools_changed", 2), ("cause=none", 0),
        (f"since={since}", 1), ("team=harbour", 3), ("team=marina", 0), ("team=harbour&kind=break&cause=compacted", 0),
    ):  # fmt: skip
        assert len(ask(client, f"breaks?{query}")["items"]) == count, query
        assert len(ask(client, f"sessions/{session.pk}/breaks?{query}")["items"]) == count, query
    for query in ("kind=loss", "since=yesterday", "since=2026-01-01T00:00:00", "team=%00", "limit=0", "before=7"):
        assert client.get(f"/api/v1/breaks?{query}").status_code == 422, query


def test_pages_follow_each_other_without_gap_or_repeat(team: Team) -> None:
    make_breaks(make_session(team, "session-1"), 25, at=START)  # one moment: only the id tells them apart
    client, seen, following = sign_in("vera"), [], ""
    while True:
        page = ask(client, f"breaks?limit=10&before={following}")
        seen += [item["id"] for item in page["items"]]
        if page["next"] is None:
            break
        following = page["next"]
    assert seen == sorted(seen, reverse=True)
    assert len(seen) == len(set(seen)) == 25


def test_tab_pages_by_place(team: Team) -> None:
    session = make_session(team, "session-1")
    make_breaks(session, 60)
    client = sign_in("vera")
    first = read(client, f"/sessions/{session.pk}/breaks/")
    link = first.split('href="?before=')[1].split('"')[0]
    second = read(client, f"/sessions/{session.pk}/breaks/?before={link}")
    assert first.count("/breaks/") - second.count("/breaks/") == 40
    assert "Newest" in second
    assert first.count("<tr>") == read(client, f"/sessions/{session.pk}/breaks/?before=nonsense").count("<tr>")


def test_queries_do_not_grow_with_the_rows(team: Team) -> None:
    few, many = make_session(team, "few"), make_session(team, "many")
    make_breaks(few, 10)
    client = sign_in("vera")
    urls = ("/sessions/{}/breaks/", "/api/v1/breaks?limit=200", "/api/v1/sessions/{}/breaks?limit=200")
    before = [count_queries(client, url.format(few.pk)) for url in urls]
    make_breaks(many, 1000)
    make_breaks(many, 1000, kind="expected")
    assert [count_queries(client, url.format(many.pk)) for url in urls] == before


def test_one_break_asks_as_little_in_a_long_session(team: Team) -> None:
    client, counts = sign_in("vera"), []
    for length in (10, 1000):
        session = make_session(team, f"s-{length}")
        make_calls(session, length)
        *_, loss = make_breaks(session, length, cause="compacted")
        make_compactions(session, length, call_number=length - 1)
        counts.append([count_queries(client, url.format(loss.pk)) for url in ("/breaks/{}/", "/api/v1/breaks/{}")])
    assert counts[0] == counts[1]


@pytest.mark.parametrize("text", ["", "7", "~", "~x", "2026-01-01~1", "2026-01-01T00:00:00~1", "x~1", f"~{10**30}"])
def test_place_that_is_none_is_not_read(text: str) -> None:
    assert read_place(text) is None


@pytest.mark.parametrize("place", [Place(None, 7), Place(START, 9)])
def test_place_reads_as_it_is_written(place: Place) -> None:
    assert read_place(str(place)) == place
    assert "+" not in str(place)


UNKNOWN: dict[str, object] = {"evidence": {"place": "conversation", "unproven": ["long_turn", "of a later version"]}}


def test_unknown_break_shows_what_held_before_it_and_that_this_is_not_proven(team: Team) -> None:
    (lost,) = make_breaks(make_session(team, "session-1"), 1, **UNKNOWN)
    page = read(sign_in("vera"), f"/breaks/{lost.pk}/")
    rate = CONDITIONS[Condition.LONG_TURN].rate
    assert f"in {rate.breaks} of {rate.calls} such calls" in page
    assert page.count(">not proven<") == 1
    assert "Observed just before this call. Not proven" in page
    assert "The conversation was lost from its first message on; tools and system prompt stayed." in page
    told = ask(sign_in("vera"), f"breaks/{lost.pk}")
    assert told["unproven"] == [
        {"condition": "long_turn", "words": CONDITIONS[Condition.LONG_TURN].text, "breaks": rate.breaks,
         "calls": rate.calls},
    ]  # fmt: skip
    assert told["place"] == "conversation"


@pytest.mark.parametrize(
    ("columns", "is_offered"),
    [
        (UNKNOWN, True),
        ({"cause": "command_started", "grade": "inferred"}, True),
        ({"cause": "model_changed", "grade": "inferred"}, False),
        ({"cause": "compacted", "grade": "client", "kind": "expected"}, False),
    ],
)
def test_proxy_is_offered_where_requests_would_tell(
    team: Team, columns: dict[str, object], *, is_offered: bool
) -> None:
    (lost,) = make_breaks(make_session(team, "session-1"), 1, **columns)
    page = read(sign_in("alice"), f"/breaks/{lost.pk}/")
    assert ("ANTHROPIC_BASE_URL" in page) == is_offered
    assert "ANTHROPIC_BASE_URL" not in read(sign_in("vera"), f"/breaks/{lost.pk}/")  # may not send


@pytest.mark.parametrize("cause", [cause for cause, note in CAUSES.items() if note.needs_requests])
def test_advice_to_use_the_proxy_is_given_once(team: Team, cause: Cause) -> None:
    grade = min(CAUSES[cause].grades)
    (lost,) = make_breaks(make_session(team, "session-1"), 1, cause=cause, grade=grade)
    page = read(sign_in("alice"), f"/breaks/{lost.pk}/")
    assert page.count("it records every request") == 1
    assert CAUSES[cause].advice not in page
    assert '<a href="#next-time">Diagnose the next break</a>: record the requests' in page
    viewer = read(sign_in("vera"), f"/breaks/{lost.pk}/")  # may not send: has no commands to look at
    assert CAUSES[cause].advice in viewer
    assert "it records every request" not in viewer
    assert ("Diagnose the next break" in viewer) == (grade == "unknown")  # then with what was seen before the call
    assert 'href="#next-time"' not in viewer


def test_other_advice_stays_where_the_proxy_would_tell_too(team: Team) -> None:
    (lost,) = make_breaks(make_session(team, "session-1"), 1, cause="likely_server_side", grade="unknown")
    assert CAUSES[Cause.LIKELY_SERVER_SIDE].advice in read(sign_in("alice"), f"/breaks/{lost.pk}/")


def test_proxy_snippet_gets_its_key_from_the_connect_page(team: Team, settings: Settings) -> None:
    settings.LOCAL_MODE = False
    (lost,) = make_breaks(make_session(team, "session-1"), 1, **UNKNOWN)
    client = sign_in("alice")
    page = read(client, f"/breaks/{lost.pk}/")
    assert "X-Plimsoll-Key: YOUR_KEY" in page
    assert page.count('id="make-key"') == 1
    assert 'hx-target="#way-body-proxy"' in page
    answer = client.post("/connect/", secure=True).content.decode()
    filled = answer.split('id="way-body-proxy"')[1]
    assert "X-Plimsoll-Key: plk_" in filled
    Team.objects.filter(pk=team.pk).update(is_demo=True)
    assert 'id="make-key"' not in read(client, f"/breaks/{lost.pk}/")


MINOR: list[dict[str, object]] = [{"recreated_tokens": 1_999}, {"lost_usd": Decimal("0.0499")}]


@pytest.mark.parametrize("minor", [*MINOR, {"recreated_tokens": 1_999, "lost_usd": None}])
def test_minor_losses_of_a_session_are_folded_and_shown_when_asked_for(team: Team, minor: dict[str, object]) -> None:
    session = make_session(team, "session-1")
    make_breaks(session, 1, recreated_tokens=2_000, lost_usd=Decimal("0.05"))
    make_breaks(session, 1, lost_usd=None)
    folded = make_breaks(session, 2, **minor)
    rebuild = make_breaks(session, 1, kind="expected", cause="compacted", grade="client", **minor)
    page = read(sign_in("vera"), f"/sessions/{session.pk}/breaks/")
    hidden = [f"/breaks/{loss.pk}/" for loss in (*folded, *rebuild)]
    assert "2 minor breaks" in page
    assert "1 minor rebuild," in page
    assert not any(address in page for address in hidden)
    assert page.count("data-opens") == 2
    shown = read(sign_in("vera"), f"/sessions/{session.pk}/breaks/?minor=show")
    assert all(address in shown for address in hidden)
    assert "minor break" not in shown
    listed = ask(sign_in("vera"), f"sessions/{session.pk}/breaks?minor=true")["items"]
    assert {item["id"] for item in listed} == {loss.pk for loss in (*folded, *rebuild)}
    assert all(item["is_minor"] for item in listed)
    assert {
        item["is_minor"] for item in ask(sign_in("vera"), f"sessions/{session.pk}/breaks?minor=false")["items"]
    } == {False}

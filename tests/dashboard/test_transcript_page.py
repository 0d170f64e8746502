"""The transcript tab: who reads it, what a page holds and reads, links to entries and calls, search, findings."""

import re
from unittest.mock import patch

import pytest
from django.test import Client
from django.utils.html import escape

from dashboard.ingest import segments, stored_entries
from dashboard.ingest.intake import Origin, take_in
from dashboard.ingest.observed import Piece
from dashboard.models import AgentSession, EntrySegment, Team, User
from dashboard.pages.transcript_entry import LONGEST_TEXT, CallPart
from dashboard.pages.transcript_page import TranscriptAsked, TranscriptPage, entry_url, read_transcript_page
from dashboard.templatetags.transcripts import mark_words, said_text
from tests.dashboard.ingest.conversation import Conversation, make_agent
from tests.recorded_talk import make_harbour, record_talk, write_recorded_talk

pytestmark = pytest.mark.django_db
CALLS = [("Read", "/home/ann/chart.py"), ("Read", "/home/ann/chart.py"), ("Bash", "make chart")]


@pytest.fixture
def team() -> Team:
    return make_harbour()


@pytest.fixture
def alice(team: Team) -> User:
    return User.objects.get(username="alice")


@pytest.fixture
def session(team: Team, alice: User) -> AgentSession:
    return record_talk(team, alice, write_recorded_talk())


def _url(session: AgentSession, query: str = "") -> str:
    return f"/sessions/{session.pk}/transcript/{query}"


def _list_calls(page: TranscriptPage) -> list[CallPart]:
    return [part for each in page.entries for part in each.view.parts if isinstance(part, CallPart)]


def _list_uuids(page: TranscriptPage) -> list[str]:
    return [each.view.uuid for each in page.entries]


def test_words_are_for_the_owner_and_for_those_with_the_grant(session: AgentSession, client: Client) -> None:
    seen = {}
    for name in ("alice", "gina", "vera", "charlie"):
        client.force_login(User.objects.get(username=name))
        page, lines = client.get(_url(session)), client.get(f"/api/v1/sessions/{session.pk}/lines")
        seen[name] = (page.status_code, b"lighthouse" in page.content, lines.status_code)
        assert (b"lighthouse" in lines.content) == (lines.status_code == 200)
    assert seen == {
        "alice": (200, True, 200),
        "gina": (200, True, 200),
        "vera": (200, False, 403),
        "charlie": (404, False, 404),
    }
    client.force_login(User.objects.get(username="vera"))
    assert "A team owner can grant you content access." in client.get(_url(session, "?text=light")).text


def test_team_that_stores_no_words_shows_none(team: Team, alice: User, client: Client) -> None:
    session = record_talk(team, alice, write_recorded_talk(), stores_content=False)
    client.force_login(alice)
    assert "The transcript is not stored." in client.get(_url(session)).text
    answer = client.get(f"/api/v1/sessions/{session.pk}/lines").json()
    assert answer["total"] > 0
    assert not any(entry["parts"] or entry["is_stored"] for entry in answer["entries"])


def test_results_stand_inside_their_calls_and_boundaries_divide(session: AgentSession, client: Client) -> None:
    page = read_transcript_page(session, TranscriptAsked())
    calls = _list_calls(page)
    assert [(call.tool, call.about) for call in calls] == CALLS
    assert [call.result is not None and call.result.is_error for call in calls] == [False, False, True]
    assert not any(part.kind == "result" for each in page.entries for part in each.view.parts)
    (divider,) = [each.divider for each in page.entries if each.divider]
    assert (divider.row.sentence, divider.restored) == (
        "167.0k → 30.0k, 137.0k freed",
        (("file", "/home/ann/chart.py", 7),),
    )
    client.force_login(User.objects.get(username="gina"))
    assert f'href="/compactions/{divider.row.id}/"' in client.get(_url(session)).text


def test_pages_follow_one_another_and_no_page_begins_with_a_result(session: AgentSession) -> None:
    whole = _list_uuids(read_transcript_page(session, TranscriptAsked()))
    for size in (1, 2, 3):
        page, seen = read_transcript_page(session, TranscriptAsked(), size=size), []
        seen.append(_list_uuids(page))
        while page.next is not None:
            page = read_transcript_page(session, TranscriptAsked(after=page.next), size=size)
            assert all(call.result is not None for call in _list_calls(page))
            seen.append(_list_uuids(page))
        assert [uuid for uuids in seen for uuid in uuids] == whole
        back = read_transcript_page(session, TranscriptAsked(is_last=True), size=size)
        count = len(back.entries)
        while back.previous is not None:
            back = read_transcript_page(session, TranscriptAsked(before=back.previous), size=size)
            count += len(back.entries)
        assert count == len(whole)


def test_place_of_a_page_stays_when_lines_arrive(team: Team, alice: User) -> None:
    talk = Conversation("growing")
    for number in range(6):
        talk.ask(f"Tide {number}")
    session = record_talk(team, alice, talk)
    first = read_transcript_page(session, TranscriptAsked(), size=3)
    talk.ask("Tide 6")
    take_in(Origin(team, alice, "import"), Piece(talk.data, "talk", talk.session_id))
    following = read_transcript_page(session, TranscriptAsked(after=first.next or ""), size=3)
    assert (following.first, following.last, following.total) == (4, 6, 7)


def test_link_to_an_entry_opens_its_page_and_its_call(session: AgentSession, client: Client) -> None:
    whole = read_transcript_page(session, TranscriptAsked())
    result = _list_calls(whole)[2].result
    assert result is not None
    client.force_login(User.objects.get(username="alice"))
    shown = client.get(entry_url(session.pk, result.entry_uuid)).text
    assert f'<div id="entry-{result.entry_uuid}" class="is-wanted">' in shown
    assert shown.count('<details class="said tool-call" open>') == 1
    small = read_transcript_page(session, TranscriptAsked(entry=whole.entries[-1].view.uuid), size=3)
    assert small.first > 1
    assert [each.view.uuid for each in small.entries if each.is_wanted] == [whole.entries[-1].view.uuid]


@pytest.mark.parametrize("query", ["?entry=nowhere", "?call=nowhere", "?entry=%00", "?after=nowhere&before=x&agent=y"])
def test_line_that_is_not_there_leads_to_the_beginning(session: AgentSession, client: Client, query: str) -> None:
    client.force_login(User.objects.get(username="alice"))
    shown = client.get(_url(session, query)).text
    assert "Never touch the lighthouse module." in shown
    assert ("The linked line was not found." in shown) == query.startswith(("?entry", "?call"))


def test_call_is_found_by_its_message(session: AgentSession) -> None:
    page = read_transcript_page(session, TranscriptAsked(call="recorded-4"), size=2)
    assert [call.tool for call in _list_calls(page)] == ["Bash"]
    assert page.entries[-1].is_wanted


def test_sub_agent_is_chosen_and_found_by_an_entry_alone(team: Team, alice: User, client: Client) -> None:
    agent = make_agent("recorded")
    session = record_talk(team, alice, write_recorded_talk())
    take_in(Origin(team, alice, "import"), Piece(agent.data, "agent", agent.session_id, agent.agent_id))
    page = read_transcript_page(session, TranscriptAsked(agent="a1b2c3"))
    assert [(each.agent_id, each.is_current) for each in page.threads] == [("", False), ("a1b2c3", True)]
    assert page.entries[0].view.parts[0].kind == "text"
    assert read_transcript_page(session, TranscriptAsked(entry=page.entries[0].view.uuid)).agent_id == "a1b2c3"
    client.force_login(alice)
    assert 'href="?agent=a1b2c3"' in client.get(_url(session)).text


def test_words_are_looked_for_and_each_hit_leads_to_its_entry(session: AgentSession, client: Client) -> None:
    client.force_login(User.objects.get(username="alice"))
    shown = client.get(_url(session, "?text=LIGHTHOUSE+module")).text
    first = read_transcript_page(session, TranscriptAsked()).entries[0].view.uuid
    link = escape(entry_url(session.pk, first, "LIGHTHOUSE module"))
    assert f'<a href="{link}">Never touch the <mark>lighthouse module</mark>.' in shown
    assert "No matching lines in this session." in client.get(_url(session, "?text=submarine")).text


def test_search_stays_in_the_address_and_its_words_are_marked(session: AgentSession, client: Client) -> None:
    client.force_login(User.objects.get(username="alice"))
    first = read_transcript_page(session, TranscriptAsked()).entries[0].view.uuid
    reached = client.get(entry_url(session.pk, first, "lighthouse module")).text
    assert 'value="lighthouse module"' in reached
    assert "Never touch the <mark>lighthouse module</mark>." in reached.split('class="transcript"')[1]
    assert "Match 1 of " in reached
    assert "text=lighthouse%20module#entry-" in reached.split("Next match")[0]
    pages = client.get(_url(session, "?text=chart&after=nothing")).text
    assert all("text=chart" in link for link in re.findall(r'href="([^"]+)" rel="(?:next|prev)"', pages))


def test_search_goes_on_behind_the_first_fifty(team: Team, alice: User, client: Client) -> None:
    talk = Conversation("long")
    for number in range(120):
        talk.ask(f"Tide {number}")
    session = record_talk(team, alice, talk)
    client.force_login(alice)
    shown = client.get(_url(session, "?text=tide")).text
    assert "120 lines with" in shown
    assert "Lines 1 to 50" in shown
    assert 'href="?text=tide&amp;found=51">Later matches' in shown
    last = client.get(_url(session, "?text=tide&found=101")).text
    assert "Lines 101 to 120" in last
    assert "found=51" in last
    assert "<mark>Tide</mark> 119" in last


def test_marked_words_stay_text() -> None:
    assert mark_words("a <b> & <B>", "<b>") == "a <mark>&lt;b&gt;</mark> &amp; <mark>&lt;B&gt;</mark>"
    assert mark_words("two\n  lines", "two lines") == "<mark>two\n  lines</mark>"
    assert mark_words("<i>", "") == mark_words("<i>", " ") == "&lt;i&gt;"
    assert mark_words("a+b (c", "+b (") == "a<mark>+b (</mark>c"


def test_conversation_without_a_prompt_is_shown(team: Team, alice: User, client: Client) -> None:
    talk = Conversation("unprompted")
    talk.answer("msg_1", words="The tide turns at noon.")
    session = record_talk(team, alice, talk)
    client.force_login(alice)
    assert "The tide turns at noon." in client.get(_url(session)).content.decode()


def test_page_unpacks_only_the_segments_it_shows(team: Team, alice: User) -> None:
    talk = Conversation("long")
    for number in range(60):
        talk.ask(f"Tide {number} " + "x" * 200)
    with patch.object(segments, "SEGMENT_BYTES", 2_000):
        session = record_talk(team, alice, talk)
    assert EntrySegment.objects.filter(session=session).count() > 8
    unpack = segments.read_segment_lines
    with patch.object(stored_entries, "read_segment_lines", side_effect=unpack) as unpacking:
        page = read_transcript_page(session, TranscriptAsked(is_last=True), size=3)
    assert (page.first, page.last) == (58, 60)
    assert unpacking.call_count <= 2


def test_long_text_is_cut_and_says_so(team: Team, alice: User, client: Client) -> None:
    talk = Conversation("wordy")
    talk.ask("tide " * LONGEST_TEXT)
    session = record_talk(team, alice, talk)
    client.force_login(alice)
    assert "The full text has 100,000 characters" in client.get(_url(session)).text
    (entry,) = client.get(f"/api/v1/sessions/{session.pk}/lines").json()["entries"]
    assert (len(entry["parts"][0]["said"]["text"]), entry["parts"][0]["said"]["length"]) == (LONGEST_TEXT, 100_000)


def test_findings_lead_to_their_entries_for_those_who_may_read(session: AgentSession, client: Client) -> None:
    compaction, loss = session.compactions.get(), session.breaks.filter(kind="break").first()
    assert loss is not None
    pages = {
        f"/compactions/{compaction.pk}/": 4,  # a loss, messages, what came back, the boundary
        f"/breaks/{loss.pk}/": 2,
        f"/sessions/{session.pk}/context/": 1,
        f"/sessions/{session.pk}/?call={session.calls.order_by('number')[0].pk}": 1,
    }
    for name, reads in (("alice", True), ("vera", False)):
        client.force_login(User.objects.get(username=name))
        for url, least in pages.items():
            count = client.get(url).text.count(f"/sessions/{session.pk}/transcript/?")
            assert count >= least if reads else count == 0, (name, url, count)


def test_duplicate_read_leads_to_the_last_reading(team: Team, alice: User, client: Client) -> None:
    talk = write_recorded_talk("twice")
    talk.read_file("toolu_8", "/home/ann/tide.py", at_call="twice-8", read=30_000, written=2_000)
    talk.read_file("toolu_9", "/home/ann/tide.py", at_call="twice-9", read=32_000, written=2_000)
    last = talk.parent
    assert last is not None
    session = record_talk(team, alice, talk)
    client.force_login(alice)
    link = f'<a href="{entry_url(session.pk, last)}" title="View the last read in the transcript">/home/ann/tide.py</a>'
    assert link in client.get(f"/sessions/{session.pk}/context/").text


def test_redaction_marks_link_to_their_rule_beside_words_that_were_looked_for() -> None:
    team = Team(slug="harbour")
    link = '<a class="redacted" href="/teams/harbour/redaction/?rule=jwt" title="Rule jwt">[redacted:jwt]</a>'
    assert said_text("<i> [redacted:jwt], jwt", "jwt", team) == f"&lt;i&gt; {link}, <mark>jwt</mark>"
    for text in ("[redacted:<b>]", "[redacted:JWT]", "no mark"):
        assert said_text(text, "", team) == mark_words(text, "")

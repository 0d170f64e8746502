"""The transcript page: tool calls folded into one row, Markdown of models, and links between prompts."""

import re
from html.parser import HTMLParser

import pytest
from django.test import Client

from dashboard.models import AgentSession, Team, User
from dashboard.pages.transcript_entry import CallPart
from dashboard.pages.transcript_page import PromptPlace, TranscriptAsked, entry_url, read_transcript_page
from dashboard.pages.transcript_rows import TranscriptRow, compile_search, group_tool_calls
from dashboard.templatetags.transcripts import MAX_MARKDOWN_CHARACTERS, said_markdown
from tests.dashboard.ingest.conversation import Conversation
from tests.recorded_talk import RecordedTalk, make_harbour, record_talk, write_recorded_talk

pytestmark = pytest.mark.django_db


@pytest.fixture
def team() -> Team:
    return make_harbour()


@pytest.fixture
def alice(team: Team, client: Client) -> User:
    alice = User.objects.get(username="alice")
    client.force_login(alice)
    return alice


@pytest.fixture
def session(team: Team, alice: User) -> AgentSession:
    return record_talk(team, alice, write_recorded_talk())


def _show(session: AgentSession, client: Client, query: str = "") -> str:
    return client.get(f"/sessions/{session.pk}/transcript/{query}").text


def _list_groups(session: AgentSession, words: str = "", entry: str = "") -> list[TranscriptRow]:
    entries = read_transcript_page(session, TranscriptAsked(entry=entry)).entries
    return [row for row in group_tool_calls(entries, compile_search(words)) if row.is_group]


class _MarkupReader(HTMLParser):
    """Collects tags, attributes and text as a browser would read them."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes += attrs

    def handle_data(self, data: str) -> None:
        self.text += data


def _answer(team: Team, owner: User, words: str) -> AgentSession:
    talk = RecordedTalk("answering")
    talk.ask("Is it *deep* enough?\n- yes\n- no")
    talk.reply("answering-1", {"type": "text", "text": words}, read=0, written=30_000)
    return record_talk(team, owner, talk)


def test_consecutive_calls_share_a_row_and_a_single_call_has_its_own(session: AgentSession, client: Client) -> None:
    (group,) = _list_groups(session)
    parts = [part for each in group.entries for part in each.view.parts]
    results = [part.result for part in parts if isinstance(part, CallPart)]
    assert (group.calls, group.error_count, group.is_open) == ((("Read", 2),), 0, False)
    assert group.tokens > sum(result.tokens for result in results if result) > 0
    shown = _show(session, client)
    assert shown.count('class="entry tool-group"') == 1
    assert '<b class="tool">Read</b> \u00d72' in shown
    assert shown.count('class="said tool-call"') == 3


def test_row_keeps_the_order_of_lines_and_leaves_none_out(session: AgentSession) -> None:
    entries = read_transcript_page(session, TranscriptAsked()).entries
    assert tuple(each for row in group_tool_calls(entries, None) for each in row.entries) == entries


def test_row_is_open_where_a_link_or_a_match_leads_inside(session: AgentSession, client: Client) -> None:
    (group,) = _list_groups(session)
    inside = group.entries[1].view.uuid
    assert [row.is_open for row in _list_groups(session, entry=inside)] == [True]
    assert [row.is_open for row in _list_groups(session, words="DEPTH  12")] == [True]
    assert [row.is_open for row in _list_groups(session, words="lighthouse")] == [False]
    opened = '<li class="entry tool-group"><details class="said" open>'
    assert opened in client.get(entry_url(session.pk, inside)).text
    assert opened not in _show(session, client)


def test_answers_are_rendered_and_prompts_stay_as_written(team: Team, alice: User, client: Client) -> None:
    shown = _show(_answer(team, alice, "# Depth\n\n**12 m** in `chart.py`"), client)
    assert re.search(r"<h3>Depth</h3>\s*<p><strong>12 m</strong> in <code>chart.py</code></p>", shown)
    assert "Is it *deep* enough?\n- yes\n- no" in shown


def test_answer_with_a_match_is_shown_as_written_with_its_words_marked(team: Team, alice: User, client: Client) -> None:
    session = _answer(team, alice, "**12 m** below the [pier](https://example.com)")
    assert "<mark>**12 m**</mark> below" in _show(session, client, "?text=**12 m**")
    assert "<strong>12 m</strong> below" in _show(session, client, "?text=lighthouse")


def test_answer_with_a_redaction_or_a_very_long_one_is_shown_as_written(
    team: Team, alice: User, client: Client
) -> None:
    redacted = _show(_answer(team, alice, "**Key** [redacted:jwt]"), client)
    assert re.search(r'\*\*Key\*\* <a class="redacted" href="[^"]+\?rule=jwt"', redacted)
    assert str(said_markdown("**a** " * 10, "", team)).count("<strong>") == 10
    assert "<strong>" not in said_markdown("**a** " * MAX_MARKDOWN_CHARACTERS, "", team)


@pytest.mark.parametrize(
    "hostile",
    [
        "<script>hacked()</script>",
        "<img src=x onerror=hacked()>",
        "[go](javascript:hacked())",
        "![x](javascript:hacked())",
        '[hacked()](https://example.com "\\" onclick=hacked()")',
        "<javascript:hacked()>",
        "```<script>\nhacked()\n```",
    ],
)
@pytest.mark.parametrize("query", ["", "?text=hacked"])
def test_answers_bring_no_markup_of_their_own(
    team: Team, alice: User, client: Client, hostile: str, query: str
) -> None:
    conversation = _show(_answer(team, alice, hostile), client, query).partition('<ol class="transcript"')[2]
    reader = _MarkupReader()
    reader.feed(conversation.partition("</ol>")[0])
    assert "hacked()" in reader.text.replace("\n", "")
    assert not reader.tags & {"script", "img", "iframe"}
    assert not {name for name, _ in reader.attributes if name.startswith("on")}
    assert not [value for _, value in reader.attributes if value and value.startswith("javascript:")]


def test_every_prompt_leads_to_the_ones_beside_it_across_pages(team: Team, alice: User, client: Client) -> None:
    talk = Conversation("long")
    uuids = [talk.ask(f"Tide {number}") for number in range(60)]
    session = record_talk(team, alice, talk)
    first = read_transcript_page(session, TranscriptAsked())
    assert (first.prompt_count, first.prompt_before, first.prompt_after) == (60, uuids[0], uuids[0])
    assert first.entries[0].prompt == PromptPlace(1, 60, None, uuids[1])
    assert first.entries[49].prompt == PromptPlace(50, 60, uuids[48], uuids[50])
    last = read_transcript_page(session, TranscriptAsked(after=uuids[49]))
    assert (last.prompt_before, last.prompt_after) == (uuids[49], uuids[50])
    shown = _show(session, client)
    assert f'<a href="{entry_url(session.pk, uuids[50])}" rel="next">Next prompt</a>' in shown
    assert "prompt 50 of 60" in shown


def test_page_without_prompts_leads_to_those_of_other_pages(session: AgentSession, client: Client) -> None:
    whole = read_transcript_page(session, TranscriptAsked())
    assert [each.prompt.number for each in whole.entries if each.prompt] == [1, 2]
    between = read_transcript_page(session, TranscriptAsked(after=whole.entries[0].view.uuid), size=2)
    prompts = [each.view.uuid for each in whole.entries if each.prompt]
    assert not any(each.prompt for each in between.entries)
    assert [between.prompt_before, between.prompt_after] == prompts
    assert 'data-key="n"' in _show(session, client)

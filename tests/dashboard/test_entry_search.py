import pytest
from django.test import Client

from dashboard.ingest.intake import Origin, take_in
from dashboard.ingest.observed import Piece
from dashboard.models import AgentSession, Membership, Team, TeamPolicy, User
from dashboard.pages.entry_search import find_entries
from tests.builders import make_team
from tests.dashboard.ingest.conversation import Conversation, make_conversation

pytestmark = pytest.mark.django_db


@pytest.fixture
def team() -> Team:
    team = make_team("Harbour", owner="alice", member="mia", viewer="vera")
    TeamPolicy.objects.create(team=team, version=1, stores_content=True)
    return team


def _take_in(team: Team, talk: Conversation) -> AgentSession:
    take_in(Origin(team, User.objects.get(username="mia"), "api"), Piece(talk.data, "x", talk.session_id))
    return AgentSession.objects.get(external_id=talk.session_id)


@pytest.mark.parametrize(
    ("words", "types"),
    [
        ("draw the CHART", ["user"]),
        ("depth 12", ["user"]),
        ("long words", ["assistant", "assistant"]),
        ("What happened so far", ["user"]),
        ("claude-opus", []),  # the name of a model is no word of the conversation
        ("no such words", []),
    ],
)
def test_words_are_found_where_the_conversation_says_them(team: Team, words: str, types: list[str]) -> None:
    found = find_entries(_take_in(team, make_conversation()), words, limit=10)
    assert [entry.type for entry in found.entries] == types
    assert found.next is None
    assert all(" ".join(words.lower().split()) in entry.excerpt.lower() for entry in found.entries)


def test_escaped_text_is_found_and_a_long_list_says_so(team: Team) -> None:
    talk = Conversation()
    for number in range(4):
        talk.ask(f'The "Grüße" of tide {number}\nin two lines')
    session = _take_in(team, talk)
    found = find_entries(session, 'the "grüße" of tide', limit=3)
    assert (len(found.entries), found.total, found.next) == (3, 4, 4)
    assert [entry.uuid for entry in find_entries(session, "tide 2 in two", limit=3).entries] == [found.entries[2].uuid]


def test_list_goes_on_to_its_end_and_back(team: Team, client: Client) -> None:
    talk = Conversation()
    for number in range(7):
        talk.ask(f"Tide {number}")
    session = _take_in(team, talk)
    client.force_login(User.objects.get(username="mia"))
    seen, first = [], 1
    while first:
        told = client.get(f"/api/v1/sessions/{session.pk}/entries?text=tide&limit=3&first={first}").json()
        seen += [entry["excerpt"] for entry in told["entries"]]
        assert told["total"] == 7
        first = told["next"]
    assert seen == [f"Tide {number}" for number in range(7)]
    found = find_entries(session, "tide", limit=3)
    reached = find_entries(session, "tide", limit=3, reached=find_entries(session, "tide 4", limit=3).entries[0].uuid)
    assert (reached.first, reached.place, reached.previous) == (4, 5, 1)
    assert reached.before == reached.entries[0].uuid
    assert reached.after == reached.entries[2].uuid
    assert found.place is None
    assert find_entries(session, "tide", limit=3, first=99).first == 7


def test_words_are_for_the_owner_and_for_those_with_the_grant(team: Team, client: Client) -> None:
    session = _take_in(team, make_conversation())
    url = f"/api/v1/sessions/{session.pk}/entries?text=depth"
    statuses = {}
    for name in ("alice", "mia", "vera"):
        client.force_login(User.objects.get(username=name))
        statuses[name] = client.get(url).status_code
    assert statuses == {"alice": 403, "mia": 200, "vera": 403}
    Membership.objects.filter(user__username="vera").update(content_grant=True)
    client.force_login(User.objects.get(username="vera"))
    assert client.get(url).json()["entries"][0]["excerpt"] == "depth 12 m"

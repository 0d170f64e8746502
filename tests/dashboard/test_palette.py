"""The command palette and the glossary on the server: whose sessions are found, by which words, how many queries."""

import pytest
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from dashboard.models import Membership, Team, User
from dashboard.pages.glossary import GLOSSARY
from dashboard.pages.palette import MOST_SESSIONS
from tests.builders import make_many_sessions, make_session, make_team

pytestmark = pytest.mark.django_db


@pytest.fixture
def team() -> Team:
    team = make_team("Harbour", owner="alice", viewer="vera")
    make_team("Marina", owner="charlie")
    make_many_sessions(team, 20, title=lambda number: f"Fix login {number}", project="webshop", developer="mia")
    make_session(team, "risky-one", title="Migrate billing", project="ledger", developer="mia")
    Membership.objects.filter(user__username="alice").update(content_grant=True)
    return team


def _find(client: Client, name: str, text: str) -> list[str]:
    client.force_login(User.objects.get(username=name))
    return [each["name"] for each in client.get("/palette/sessions", {"text": text}).json()["sessions"]]


@pytest.mark.parametrize(
    ("name", "text", "found"),
    [
        ("alice", "billing", ["Migrate billing"]),
        ("alice", "BILLING led", ["Migrate billing"]),
        ("vera", "billing", []),  # a title is content
        ("vera", "ledger", ["risky-on"]),
        ("charlie", "ledger", []),
        ("alice", "bi", []),  # too short for the index
        ("alice", "nowhere", []),
        ("alice", "\x00", None),
    ],
)
def test_sessions_are_found_as_the_list_finds_them(
    team: Team, client: Client, name: str, text: str, found: list[str] | None
) -> None:
    names = _find(client, name, text)
    if found is None:
        assert len(names) == MOST_SESSIONS  # no words: those active last
    else:
        assert names == found


def test_few_queries_answer_however_many_sessions(
    team: Team, client: Client, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    client.force_login(User.objects.get(username="alice"))
    with django_assert_max_num_queries(7):
        assert len(client.get("/palette/sessions", {"text": "login"}).json()["sessions"]) == MOST_SESSIONS


def test_every_term_is_on_the_glossary_page(team: Team, client: Client) -> None:
    client.force_login(User.objects.get(username="vera"))
    shown = client.get("/glossary/").text
    assert shown.count("<dt id=") == len(GLOSSARY)
    assert 'id="term-auto-compact-line"' in shown

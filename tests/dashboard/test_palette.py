"""The command palette and the glossary on the server: whose sessions and pages are found, by which words, how many
queries."""

import re
from contextlib import suppress
from typing import Any

import pytest
from django.test import Client
from django.urls import NoReverseMatch, reverse
from pytest_django import DjangoAssertNumQueries, Settings

from dashboard.models import Membership, SavedView, Team, User
from dashboard.pages.glossary import GLOSSARY
from dashboard.pages.palette import MOST_SESSIONS
from tests.builders import make_many_sessions, make_session, make_team
from tests.dashboard.expectations import PAGES

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


ROLES = {"vera": "viewer", "mia": "member", "adam": "admin", "alice": "owner"}
# Addresses without a name in them that are no pages, or pages of somebody who is not signed in.
NO_PAGES = {"sign_in", "health_live", "health_ready", "openapi", "demo_progress", "palette_sessions", "palette_places"}


def _list_places(client: Client, name: str) -> list[dict[str, Any]]:
    client.force_login(User.objects.get(username=name))
    places: list[dict[str, Any]] = client.get("/palette/places").json()["places"]
    return places


@pytest.fixture
def people(settings: Settings) -> Team:
    settings.LOCAL_MODE = False
    return make_team("Harbour", **{role: name for name, role in ROLES.items()})


@pytest.mark.parametrize("name", ROLES)
def test_palette_knows_every_page_that_a_person_may_open(people: Team, client: Client, name: str) -> None:
    places = _list_places(client, name)
    urls = [place["url"] for place in places if place["group"] == "Pages"]
    assert len(urls) == len(set(urls))
    for url in urls:
        assert client.get(url).status_code == 200, url
    for key, row in PAGES.items():
        method, _, view = key.partition(" ")
        if (
            method == "GET"
            and getattr(row, ROLES[name]) == 200
            and view not in NO_PAGES
            and not view.startswith("live_")
        ):
            with suppress(NoReverseMatch):  # it names a thing: a session, a run
                assert reverse(view) in urls
    tabs = re.findall(
        r'<a href="([^"]+)"', client.get("/teams/harbour/").text.partition('id="tabs"')[2].partition("</nav>")[0]
    )
    assert len(tabs) > 1
    assert set(tabs) == {url for url in urls if url.startswith("/teams/harbour/")}


def test_pages_of_a_team_say_its_name(people: Team, client: Client) -> None:
    make_team("Marina", owner="alice")
    keys = [(place["note"], place["url"]) for place in _list_places(client, "alice") if place["name"] == "API keys"]
    assert keys == [("Harbour", "/teams/harbour/keys/"), ("Marina", "/teams/marina/keys/")]
    assert not [place for place in _list_places(client, "mia") if "marina" in place["url"]]


def test_saved_views_are_found_by_those_who_see_them(people: Team, client: Client) -> None:
    alice = User.objects.get(username="alice")
    SavedView.objects.create(owner=alice, list_name="sessions", name="Mine", query="project=web")
    SavedView.objects.create(owner=alice, list_name="breaks", name="Ours", team=people)
    make_team("Marina", owner="charlie")

    def list_views(name: str) -> list[tuple[str, str, str]]:
        found = [place for place in _list_places(client, name) if place["group"] == "Saved views"]
        return [(place["name"], place["url"], place["note"]) for place in found]

    ours = ("Ours", "/breaks/", "cache breaks, Harbour")
    assert list_views("alice") == [("Mine", "/sessions/?project=web", "sessions"), ours]
    assert list_views("vera") == [ours]
    assert list_views("charlie") == []


def test_demo_is_made_and_removed_from_anywhere(people: Team, client: Client) -> None:
    def list_actions(name: str) -> list[tuple[str, str]]:
        found = [place for place in _list_places(client, name) if place["is_posted"]]
        return [(place["name"], place["url"]) for place in found]

    assert list_actions("adam") == [("Load demo data", "/demo/")]
    assert list_actions("mia") == []
    Membership.objects.create(team=make_team("Show"), user=User.objects.get(username="adam"), role="admin")
    Team.objects.filter(slug="show").update(is_demo=True)
    assert list_actions("adam") == [("Remove demo data", "/demo/remove/")]


def test_places_cost_few_queries_however_many_teams(
    people: Team, client: Client, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    for number in range(10):
        make_team(f"Team {number}", owner="alice")
    client.force_login(User.objects.get(username="alice"))
    with django_assert_max_num_queries(5):
        client.get("/palette/places")


def test_every_term_is_on_the_glossary_page(team: Team, client: Client) -> None:
    client.force_login(User.objects.get(username="vera"))
    shown = client.get("/glossary/").text
    assert shown.count("<dt id=") == len(GLOSSARY)
    assert 'id="term-auto-compact-threshold"' in shown

"""Saved views and the columns of the sessions list: kept per person, shared with a team, harmless."""

import re

import pytest
from django.test import Client

from dashboard.accounts.saved_views import MOST_VIEWS
from dashboard.models import ListName, SavedView, Team, User
from dashboard.pages.session_columns import ALL_COLUMNS, COLUMN_WORDS, DEFAULT_COLUMNS
from tests.builders import make_many_sessions, make_session, make_team, make_user
from tests.visitors import count_queries, read, sign_in

pytestmark = pytest.mark.django_db


@pytest.fixture
def team() -> Team:
    team = make_team("Harbour", owner="alice", admin="anna", member="mia", viewer="vera")
    make_session(team, "s", project="web", developer="mia")
    return team


def save(client: Client, name: str, query: str = "", *, list_name: str = "sessions", share: str = "") -> str:
    answer = client.post(f"/views/{list_name}/save/", {"name": name, "query": query, "share": share})
    assert answer.status_code == 302
    return answer.headers["Location"]


def list_chips(client: Client, url: str) -> list[str]:
    page = read(client, url)
    if 'aria-label="Saved views"' not in page:
        return []
    chips = page.split('aria-label="Saved views"')[1].split("</ul>")[0]
    return [part.split("</a>")[0].rsplit(">", 1)[1] for part in chips.split('<li class="chip')[1:]]


def test_view_leads_back_to_its_filters(team: Team) -> None:
    mia = sign_in("mia")
    # The place in the list and what the page does not know are left out.
    where = save(mia, "  Web   by risk ", "project=web&sort=risk&after=1.2&colour=red")
    assert where == "/sessions/?project=web&sort=risk"
    page = read(mia, where)
    assert "View Web by risk saved." in page
    assert 'href="/sessions/?project=web&amp;sort=risk" aria-current="true">Web by risk</a>' in page
    assert list_chips(mia, "/breaks/") == []


def test_own_views_are_ones_own_and_shared_ones_the_teams(team: Team) -> None:
    make_team("Marina", owner="charlie")
    mia = sign_in("mia")
    save(mia, "Mine", "sort=lost")
    save(mia, "Ours", "sort=risk", share="harbour")
    assert list_chips(mia, "/sessions/") == ["Mine", "Ours"]
    assert list_chips(sign_in("vera"), "/sessions/") == ["Ours"]
    assert "mia shares this view with Harbour." in read(sign_in("vera"), "/sessions/")
    stranger = sign_in("charlie")
    assert list_chips(stranger, "/sessions/") == []
    assert stranger.post("/views/sessions/save/", {"name": "x", "share": "harbour"}).status_code == 404


def test_same_name_gets_the_new_filters(team: Team) -> None:
    mia = sign_in("mia")
    save(mia, "Costly", "sort=spend", share="harbour")
    save(mia, "Costly", "sort=lost")
    assert [(view.query, view.team) for view in SavedView.objects.all()] == [("sort=lost", None)]
    save(sign_in("vera"), "Costly", "sort=risk")
    save(mia, "Costly", "by=model", list_name="breaks")
    assert SavedView.objects.count() == 3


def test_ledger_keeps_its_team_and_period(team: Team) -> None:
    vera = sign_in("vera")
    where = save(vera, "Models", "days=7&by=model&before=x", list_name="breaks")
    assert where == "/breaks/?team=harbour&days=7&by=model"
    assert list_chips(vera, where) == ["Models"]
    outsider = sign_in("charlie")
    assert outsider.post("/views/breaks/save/", {"name": "x", "query": "team=harbour"}).status_code == 404
    assert outsider.post("/views/breaks/save/", {"name": "x"}).status_code == 404  # of no team at all
    assert outsider.post("/views/jobs/save/", {"name": "x"}).status_code == 404


@pytest.mark.parametrize("name", ["", "   ", "x" * 61, "a\x00b", "a\u202eb"])
def test_name_that_says_nothing_is_refused(team: Team, name: str) -> None:
    mia = sign_in("mia")
    save(mia, name)
    assert not SavedView.objects.exists()
    assert "Enter a name of at most" in read(mia, "/sessions/")


def test_so_many_views_and_no_more(team: Team) -> None:
    owner = make_user("mia")
    SavedView.objects.bulk_create(
        SavedView(owner=owner, list_name=ListName.SESSIONS, name=f"view {number}") for number in range(MOST_VIEWS)
    )
    mia = sign_in("mia")
    save(mia, "one more")
    assert SavedView.objects.count() == MOST_VIEWS
    save(mia, "view 7", "sort=risk")  # one that is there can change
    assert SavedView.objects.get(name="view 7").query == "sort=risk"
    save(mia, "of the ledger", list_name="breaks")


def test_view_is_removed_by_its_owner_or_an_admin(team: Team) -> None:
    mia = sign_in("mia")
    save(mia, "Mine")
    save(mia, "Ours", share="harbour")
    mine, ours = SavedView.objects.get(name="Mine"), SavedView.objects.get(name="Ours")
    assert sign_in("vera").post(f"/views/{ours.pk}/remove/").status_code == 403
    assert sign_in("anna").post(f"/views/{mine.pk}/remove/").status_code == 404
    assert f"/views/{ours.pk}/remove/" not in read(sign_in("vera"), "/sessions/")
    assert sign_in("anna").post(f"/views/{ours.pk}/remove/").status_code == 302
    assert mia.post(f"/views/{mine.pk}/remove/").status_code == 302
    assert not SavedView.objects.exists()


def test_team_that_ends_leaves_the_view_to_its_owner(team: Team) -> None:
    other = make_team("Quay", member="mia")
    save(sign_in("mia"), "Ours", share="quay")
    other.delete()
    assert SavedView.objects.get().team is None


def choose(client: Client, *columns: str, **more: str) -> str:
    answer = client.post("/sessions/columns/", {"column": columns, "query": "project=web", **more})
    assert answer.status_code == 302
    return read(client, answer.headers["Location"])


def list_headings(page: str) -> list[str]:
    head = page.split('<table class="session-table">')[1].split("</thead>", maxsplit=1)[0]
    return [re.sub('<span class="tip".*?</span>|<[^>]+>', "", f"<th{part}").strip() for part in head.split("<th")[2:]]


def test_columns_are_chosen_and_stay_so(team: Team) -> None:
    mia = sign_in("mia")
    everything = list_headings(read(mia, "/sessions/"))
    assert everything[0] == "Session, project"
    assert everything[1:] == [COLUMN_WORDS[name] for name in DEFAULT_COLUMNS]
    page = choose(mia, "breaks", "context", "magic")
    assert list_headings(page) == ["Session, project", "Context", "Breaks"]
    assert page.split("<tbody data-rows")[1].split("</tbody>")[0].count("<td") == 3
    assert list_headings(read(mia, "/sessions/?sort=risk")) == ["Session, project", "Context", "Breaks"]
    assert list_headings(read(sign_in("vera"), "/sessions/")) == everything
    assert list_headings(read(mia, "/")) == ["Session", *everything[1:]]  # the overview shows the default
    assert User.objects.get(username="mia").session_columns == ["context", "breaks"]


@pytest.mark.parametrize(("columns", "more"), [((), {}), (("magic",), {}), (("spent",), {"reset": "yes"})])
def test_no_column_means_the_default(team: Team, columns: tuple[str, ...], more: dict[str, str]) -> None:
    mia = sign_in("mia")
    choose(mia, "spent")
    assert len(list_headings(choose(mia, *columns, **more))) == 1 + len(DEFAULT_COLUMNS)
    assert User.objects.get(username="mia").session_columns == []
    assert len(list_headings(choose(mia, *ALL_COLUMNS))) == 1 + len(ALL_COLUMNS)


def test_columns_are_chosen_on_the_page_that_is_shown(team: Team) -> None:
    make_many_sessions(team, 60)
    mia = sign_in("mia")
    after = read(mia, "/sessions/").split('rel="next" href="')[1].split("after=")[1].split('"')[0]
    answer = mia.post("/sessions/columns/", {"column": ["spent"], "query": f"sort=active&after={after}"})
    assert answer.headers["Location"] == f"/sessions/?after={after}"
    asked = {"hx-request": "true", "hx-target": "session-list", "hx-trigger": "session-columns"}
    part = mia.get(answer.headers["Location"], headers=asked).content.decode()
    assert part.count("<tr data-session") == 11
    assert '<details class="menu" open>' in part
    assert f'name="query" value="&amp;after={after}"' in part


def test_queries_do_not_grow_with_views(team: Team) -> None:
    mia = sign_in("mia")
    few = count_queries(mia, "/sessions/")
    make_many_sessions(team, 60)
    owner = make_user("mia")
    SavedView.objects.bulk_create(
        SavedView(owner=owner, team=team, list_name=ListName.SESSIONS, name=f"view {number}") for number in range(40)
    )
    assert count_queries(mia, "/sessions/") == few

"""Text search of sessions: what everybody finds, what only readers of content find, and an index that stays in step."""

import pytest
from django.core.management import call_command
from django.db import connection
from django.utils import timezone

from dashboard import access
from dashboard.access import Actor
from dashboard.models import AgentSession, Membership, Scope, Team
from dashboard.pages.gauges import list_sessions
from dashboard.pages.search_index import INDEX, SESSIONS
from dashboard.pages.session_filters import SessionFilters
from dashboard.pages.session_search import search_for
from tests.builders import make_key, make_many_sessions, make_session, make_team, make_user

pytestmark = pytest.mark.django_db
on_sqlite = pytest.mark.sqlite_only  # FTS5 is its own


@pytest.fixture
def team() -> Team:
    team = make_team("Harbour", owner="alice", member="mia", viewer="vera")
    Membership.objects.filter(user__username="alice").update(content_grant=True)
    return team


def find(actor: Actor, text: str) -> set[str]:
    found = list_sessions(actor, SessionFilters(text=text), now=timezone.now())
    return {row.session.external_id for row in found.rows}


def person(name: str) -> Actor:
    return access.person(make_user(name))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("login", {"one", "two"}),
        ("LOG", {"one", "two"}),
        ("ogi", {"one", "two"}),
        ("flaky login", {"one"}),
        ("login shop", {"one"}),  # a word of the title and one of the project
        ("shop fi", {"one"}),  # a short word counts beside a longer one
        ("developer-7", {"two"}),
        ("release/2", {"two"}),
        ("three-id", {"three-id"}),
        ("ärger", {"three-id"}),
        ("ÄRGER", {"three-id"}),
        ("100%", {"three-id"}),
        ("l_gin", set()),
        ("%%%", set()),
        ('"login"', set()),
        ("login OR webshop", set()),
        ("title:login", set()),
        ("NEAR(flaky login)", set()),
        ("login*", set()),
        ("'; DROP TABLE", set()),
        ("login\x00", {"one", "two"}),
    ],
)
def test_words_are_found_anywhere_and_mean_nothing_else(team: Team, text: str, expected: set[str]) -> None:
    make_session(team, "one", title="Fix flaky Login tests", project="webshop")
    make_session(team, "two", title="Explain login", developer="developer-7", branch="release/2")
    make_session(team, "three-id", title="100% Ärger")
    assert find(person("alice"), SessionFilters.read({"text": text}).text) == expected


def test_titles_are_found_only_by_who_may_read_them(team: Team) -> None:
    make_session(team, "hers", title="Fix secret merger", project="web", owner=make_user("mia"))
    make_session(team, "his", title="Plan secret merger", project="web", owner=make_user("alice"))
    assert find(person("alice"), "merger") == {"hers", "his"}  # by grant
    assert find(person("mia"), "merger") == {"hers"}  # her own
    assert find(person("vera"), "merger") == set()
    assert find(person("vera"), "web") == {"hers", "his"}
    assert find(person("mia"), "plan web") == set()  # one word of a title she may not read, one she may
    assert find(person("mia"), "fix web") == {"hers"}
    for scopes, expected in (((Scope.READ,), set()), ((Scope.READ, Scope.CONTENT), {"hers", "his"})):
        key, _ = make_key(team, make_user("alice"), *scopes)
        assert find(access.program(key), "merger") == expected


def test_titles_stay_hidden_among_many_matches(team: Team) -> None:
    """More matches than are fetched at once: then sessions are walked, which must not be laxer."""
    make_many_sessions(team, 1100, title="secret merger", project="web")
    assert find(person("vera"), "merger") == set()
    assert len(find(person("vera"), "web")) == 50


def test_another_teams_sessions_are_not_found(team: Team) -> None:
    marina = make_team("Marina", owner="charlie")
    make_session(marina, "theirs", title="Fix login", project="webshop", owner=make_user("charlie"))
    assert find(person("alice"), "webshop") == set()
    assert find(person("charlie"), "webshop") == {"theirs"}


def test_index_follows_changes_and_deletions(team: Team) -> None:
    alice = person("alice")
    session = make_session(team, "one", title="Fix login", project="webshop")
    AgentSession.objects.filter(pk=session.pk).update(title="Fix upload", branch="main/line")
    assert (find(alice, "login"), find(alice, "upload"), find(alice, "main/line")) == (set(), {"one"}, {"one"})
    session.refresh_from_db()
    session.save()  # nothing changed
    session.project = "harbour"
    session.save()
    assert (find(alice, "webshop"), find(alice, "harbour")) == (set(), {"one"})
    session.delete()
    assert find(alice, "upload") == set()
    make_session(team, "two", title="upload again")
    assert find(alice, "upload") == {"two"}


@on_sqlite
def test_index_answers_before_any_session_is_read(team: Team) -> None:
    make_session(team, "one", title="Fix login")
    search = search_for(person("alice"), "login")
    assert search is not None
    assert len(search.find_candidates(10) or ()) == 1
    make_many_sessions(team, 10, title="login")
    assert search.find_candidates(10) is None


@on_sqlite
@pytest.mark.django_db(transaction=True)
def test_migrating_again_mends_a_lost_index(team: Team) -> None:
    """What Django does to a table it alters on SQLite: the triggers are gone with the old table."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT name FROM sqlite_master WHERE type = 'trigger' AND tbl_name = %s", [SESSIONS])
        triggers = [name for (name,) in cursor.fetchall()]
        assert len(triggers) == 3
        for name in triggers:
            cursor.execute(f"DROP TRIGGER {name}")
    make_session(team, "one", title="Fix login")
    assert find(person("alice"), "login") == set()
    call_command("migrate", verbosity=0)
    assert find(person("alice"), "login") == {"one"}
    with connection.cursor() as cursor:
        cursor.execute(f"INSERT INTO {INDEX} ({INDEX}) VALUES ('integrity-check')")  # raises where it is not in step

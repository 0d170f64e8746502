"""The remaining pages: overview, audit log, health, theme, documentation."""

from unittest.mock import patch

import pytest
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from dashboard import health
from dashboard.accounts import audit
from dashboard.models import AuditAction, AuditEvent, Scope
from tests.builders import make_key, make_team, make_user

pytestmark = pytest.mark.django_db
BACKEND = "django.contrib.auth.backends.ModelBackend"


@pytest.fixture
def owner(client: Client) -> Client:
    make_team("Harbour", owner="alice", member="mia")
    client.force_login(make_user("alice"), backend=BACKEND)
    return client


def test_overview_ticks_off_what_is_done(owner: Client) -> None:
    assert "2 of 3 done" in owner.get("/").content.decode()
    alice = make_user("alice")
    make_key(alice.memberships.get().team, alice, Scope.READ)
    assert "3 of 3 done" in owner.get("/").content.decode()


def test_overview_offers_only_what_the_person_may_do(client: Client) -> None:
    make_team("Harbour", viewer="vera")
    client.force_login(make_user("vera"), backend=BACKEND)
    page = client.get("/").content.decode()
    assert "Set a password" in page
    assert "Make an API key" not in page
    assert "Invite a team mate" not in page
    assert "Health" not in page


def test_no_link_on_a_page_leads_nowhere(owner: Client) -> None:
    seen, queue = set(), ["/"]
    while queue:
        url = queue.pop()
        answer = owner.get(url)
        assert answer.status_code == 200, url
        if "text/html" not in answer.headers["Content-Type"]:
            continue
        for part in answer.content.decode().split('href="')[1:]:
            target = part.split('"')[0].split("#")[0]
            assert target.startswith(("/", "?")) or not target, f"{url} links to {target}"
            if target.startswith("/") and not target.startswith("/static/") and target not in seen:
                seen.add(target)
                queue.append(target)
    assert {"/teams/harbour/audit/", "/styleguide/", "/api/docs/"} <= seen


def test_audit_log_pages_by_id_and_counts_queries(
    owner: Client, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    alice = make_user("alice")
    team = alice.memberships.get().team
    for number in range(120):
        audit.note(team, AuditAction.KEY_CREATED, by=alice, subject=f"key {number}", scopes=["read", "ingest"])
    with django_assert_max_num_queries(6):
        first = owner.get("/teams/harbour/audit/").content.decode()
    assert "key 119" in first
    assert "key 70<" in first
    assert "key 69<" not in first
    assert "scopes: read, ingest" in first
    oldest = AuditEvent.objects.order_by("-id")[49].pk
    second = owner.get(f"/teams/harbour/audit/?before={oldest}").content.decode()
    assert "key 69<" in second
    assert owner.get("/teams/harbour/audit/?before=1").status_code == 200
    for odd in ("x", "-1", "9" * 40, "\u0661"):
        assert owner.get("/teams/harbour/audit/", {"before": odd}).status_code == 200


@pytest.mark.parametrize(("url", "queries"), [("/", 8), ("/teams/harbour/", 6), ("/teams/harbour/keys/", 6)])
def test_number_of_queries_does_not_grow_with_rows(
    owner: Client, django_assert_max_num_queries: DjangoAssertNumQueries, url: str, queries: int
) -> None:
    team = make_user("alice").memberships.get().team
    for number in range(25):
        person = make_user(f"person-{number}")
        team.memberships.create(user=person, role="viewer")
        make_key(team, person, Scope.READ)
    owner.get(url)  # remembers the team in the session
    with django_assert_max_num_queries(queries):
        assert owner.get(url).status_code == 200


def test_health_tells_what_fails(owner: Client) -> None:
    assert owner.get("/health/ready").json()["status"] == "ready"
    with patch.object(health, "LOW_DISK_BYTES", 2**62):
        probe = owner.get("/health/ready")
        page = owner.get("/health/").content.decode()
    assert probe.status_code == 503
    assert probe.json()["checks"]["disk"]["ok"] is False
    assert "MB free in the data folder" in page
    assert "Not ready" in page


def test_theme_is_remembered_and_known_to_the_first_byte(client: Client) -> None:
    assert "data-theme" not in client.get("/sign-in/").content.decode().split(">")[1]
    answer = client.post("/theme/", {"theme": "dark", "next": "/sign-in/"})
    assert answer.headers["Location"] == "/sign-in/"
    assert '<html lang="en" data-theme="dark">' in client.get("/sign-in/").content.decode()
    client.post("/theme/", {"theme": "system", "next": "https://evil.example/"})
    assert '<html lang="en">' in client.get("/sign-in/").content.decode()


@pytest.mark.parametrize("theme", ['"><script>', "blue", ""])
def test_theme_nobody_offers_is_ignored(client: Client, theme: str) -> None:
    client.cookies["plimsoll_theme"] = theme
    assert '<html lang="en">' in client.get("/sign-in/").content.decode()


def test_team_looked_at_last_is_the_current_one(owner: Client) -> None:
    make_team("Zebra", owner="alice")
    assert '<dd><a href="/teams/harbour/">' in owner.get("/").content.decode()
    owner.get("/teams/zebra/")
    assert '<dd><a href="/teams/zebra/">' in owner.get("/").content.decode()

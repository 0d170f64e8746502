"""The remaining pages: overview, audit log, health, theme, documentation."""

import html
import re
import socket
from datetime import timedelta
from pathlib import Path
from unittest.mock import patch
from urllib.parse import parse_qs, urlsplit

import pytest
from django.core.cache import cache
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries, Settings

from dashboard import access, health
from dashboard.accounts import audit
from dashboard.jobs.beat import note_beat
from dashboard.models import AuditAction, AuditEvent, Beat, Drop, FollowedFile, Job, JobState, Scope, Team, User
from tests.builders import make_key, make_team, make_user
from tests.visitors import read, sign_in

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
    assert "Create an API key" not in page
    assert "Invite a teammate" not in page
    assert 'href="/health/"' not in page


def test_no_link_on_a_page_leads_nowhere(owner: Client) -> None:
    Beat.objects.create(name="sweeper here", at=timezone.now())  # without it /health/ready is 503
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
            address = urlsplit(target)
            kind = "?".join([address.path, *sorted(parse_qs(address.query, keep_blank_values=True))])
            if target.startswith("/") and not target.startswith("/static/") and kind not in seen:
                seen.add(kind)  # of a hundred links to one call each, one is followed
                queue.append(html.unescape(target))
    assert {"/teams/harbour/audit/", "/styleguide/", "/api/docs/"} <= seen


def test_audit_log_pages_by_id_and_counts_queries(
    owner: Client, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    alice = make_user("alice")
    team = alice.memberships.get().team
    for number in range(120):
        audit.note(team, AuditAction.KEY_CREATED, by=alice, subject=f"key {number}", scopes=["read", "ingest"])
    owner.get("/")  # what every page asks once in a while
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


@pytest.mark.parametrize(("url", "queries"), [("/", 10), ("/teams/harbour/", 6), ("/teams/harbour/keys/", 6)])
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
    Beat.objects.create(name="sweeper here", at=timezone.now())
    assert owner.get("/health/ready").json()["status"] == "ready"
    with patch.object(health, "LOW_DISK_BYTES", 2**62):
        probe = owner.get("/health/ready")
        page = owner.get("/health/").content.decode()
    assert probe.status_code == 503
    assert probe.json()["checks"]["disk"]["ok"] is False
    assert " free in the data folder" in page
    assert "Not ready" in page


@pytest.mark.parametrize(
    ("waits_seconds", "swept_seconds_ago", "stands_still"), [(5, 2, False), (31, 2, True), (5, 40, True)]
)
def test_work_that_stands_still_is_told_to_probes_and_people(
    owner: Client, waits_seconds: int, swept_seconds_ago: int, *, stands_still: bool
) -> None:
    now = timezone.now()
    Beat.objects.create(name="sweeper here", at=now - timedelta(seconds=swept_seconds_ago))
    Job.objects.create(kind="forget_expired", key="due", created_at=now - timedelta(seconds=waits_seconds))
    Job.objects.create(
        kind="forget_expired", key="later", due_at=now + timedelta(hours=1), created_at=now - timedelta(days=1)
    )
    Job.objects.create(kind="of a newer version", key="new", created_at=now - timedelta(days=1))
    assert (owner.get("/health/ready").status_code == 503) == stands_still
    assert ("Background work is delayed" in owner.get("/").content.decode()) == stands_still


def test_jobs_page_shows_filters_cancels_and_retries(owner: Client) -> None:
    team = make_user("alice").memberships.get().team
    now = timezone.now()
    dead = Job.objects.create(
        kind="forget_expired", team=team, key="a", state=JobState.DEAD, attempts=5, finished_at=now
    )
    waiting = Job.objects.create(kind="from_tomorrow", key="b", progress_done=3, progress_total=9)
    page = owner.get("/jobs/").content.decode()
    assert "Delete expired links and invitations" in page
    assert "from_tomorrow" in page
    assert "3 of 9" in page
    assert "from_tomorrow" not in owner.get("/jobs/?state=dead").content.decode()
    assert "<html" not in owner.get("/jobs/", headers={"HX-Request": "true"}).content.decode()
    owner.post(f"/jobs/{dead.pk}/retry/")
    owner.post(f"/jobs/{waiting.pk}/cancel/")
    assert dict(Job.objects.values_list("key", "state")) == {"a": "queued", "b": "cancelled"}
    assert "has already ended" in owner.post(f"/jobs/{waiting.pk}/cancel/", follow=True).content.decode()


@pytest.mark.parametrize(("act", "state"), [("cancel", JobState.QUEUED), ("retry", JobState.DEAD)])
def test_jobs_of_the_installation_are_for_owners_and_every_act_is_audited(act: str, state: JobState) -> None:
    harbour, marina = make_team("Harbour", owner="olga", admin="anna"), make_team("Marina", owner="mona")
    of_installation = Job.objects.create(kind="keep_backup", key="a", state=state)
    of_team = Job.objects.create(kind="take_notes", team=harbour, key="b", state=state)
    admin, owner = sign_in("anna"), sign_in("olga")
    assert f"/jobs/{of_installation.pk}/{act}/" not in read(admin, "/jobs/")
    assert admin.post(f"/jobs/{of_installation.pk}/{act}/").status_code == 403
    assert Job.objects.get(pk=of_installation.pk).state == state
    assert not AuditEvent.objects.exists()
    assert f"/jobs/{of_installation.pk}/{act}/" in read(owner, "/jobs/")
    assert owner.post(f"/jobs/{of_installation.pk}/{act}/").status_code == 302
    assert admin.post(f"/jobs/{of_team.pk}/{act}/").status_code == 302
    action = {"cancel": "job cancelled", "retry": "job retried"}[act]
    events = AuditEvent.objects.order_by("pk").values_list("team", "actor_name", "action", "subject")
    backup, notes = "Back up the database to the data folder", "Take notes of a session"
    assert list(events) == [
        (harbour.pk, "olga", action, f"{backup} ({of_installation.pk})"),
        (marina.pk, "olga", action, f"{backup} ({of_installation.pk})"),
        (harbour.pk, "anna", action, f"{notes} ({of_team.pk})"),
    ]
    assert action in read(owner, "/teams/harbour/audit/")


def test_job_that_had_ended_leaves_no_trace_in_the_audit_log(owner: Client) -> None:
    job = Job.objects.create(kind="keep_backup", key="a", state=JobState.DONE)
    owner.post(f"/jobs/{job.pk}/cancel/")
    owner.post(f"/jobs/{job.pk}/retry/")
    assert not AuditEvent.objects.filter(action__startswith="job").exists()


def test_owner_of_the_demo_alone_does_not_govern_the_installation() -> None:
    make_team("Harbour", admin="anna")
    Team.objects.filter(pk=make_team("Demo", owner="anna").pk).update(is_demo=True)
    job = Job.objects.create(kind="keep_backup", key="a", state=JobState.DEAD)
    assert sign_in("anna").post(f"/jobs/{job.pk}/retry/").status_code == 403
    assert not access.may_create_team(access.person(make_user("anna")), local_mode=False)


def test_jobs_of_another_team_are_not_listed(owner: Client) -> None:
    Job.objects.create(kind="forget_expired", team=make_team("Marina"), key="secret", last_error="of the marina")
    page = owner.get("/jobs/").content.decode()
    assert "of the marina" not in page
    assert "No jobs yet" in page


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


def test_silent_follower_is_told_where_transcripts_are_followed(owner: Client, settings: Settings) -> None:
    now = timezone.now()
    Beat.objects.create(name="sweeper here", at=now)
    assert "follower" not in owner.get("/health/ready").json()["checks"]
    settings.FOLLOW_ROOTS = (Path("/transcripts"),)
    never = owner.get("/health/ready").json()["checks"]["follower"]
    assert never == {"ok": False, "finding": "has not run yet"}
    beat = Beat.objects.create(name="follower here", at=now - timedelta(seconds=5))
    assert owner.get("/health/ready").json()["checks"]["follower"]["ok"] is True
    assert "last run" in owner.get("/health/").content.decode()
    cache.clear()
    Beat.objects.filter(pk=beat.pk).update(at=now - timedelta(seconds=40))
    assert owner.get("/health/ready").status_code == 503
    assert "follower: last run 4" in owner.get("/").content.decode()


@pytest.mark.parametrize(
    ("columns", "sentence"),
    [
        ({"open_line_bytes": 40, "is_open_line_read": True}, "1</span> file followed, all read</span>"),
        ({"open_line_bytes": 40}, "all read, 1 file ends in an incomplete line (40 bytes waiting)"),
        ({}, "40 bytes not read yet"),
    ],
)
def test_health_page_tells_unread_lines_from_an_incomplete_one(
    client: Client, columns: dict[str, int], sentence: str
) -> None:
    team = make_team("Harbour", owner="alice")
    FollowedFile.objects.create(team=team, path="/x.jsonl", path_digest="x", size_bytes=90, offset=50, **columns)
    client.force_login(User.objects.get(username="alice"))
    text = re.sub(r", last read <time.*?</time>", "", client.get("/health/").content.decode()).replace("\xa0", " ")
    assert sentence in text


@pytest.mark.parametrize("other", ["another name", "the same name"])
def test_heartbeat_of_another_host_does_not_stand_in_for_our_own(
    owner: Client, settings: Settings, monkeypatch: pytest.MonkeyPatch, other: str
) -> None:
    now, own_id = timezone.now(), settings.HOST_ID
    note_beat("sweeper", now - timedelta(seconds=40))
    settings.HOST_ID = "another data folder"
    with monkeypatch.context() as elsewhere:
        if other == "another name":
            elsewhere.setattr(socket, "gethostname", lambda: "another-host")
        note_beat("sweeper", now)
        note_beat("recorder", now)
    settings.HOST_ID = own_id
    probe = owner.get("/health/ready")
    assert probe.status_code == 503
    assert probe.json()["checks"]["sweeper"]["ok"] is False
    assert "not running" in probe.json()["checks"]["recorder"]["finding"]


def test_host_without_a_sweeper_is_ready_while_another_host_sweeps(owner: Client) -> None:
    Beat.objects.create(name="sweeper another-host 0123456789abcdef", at=timezone.now())
    probe = owner.get("/health/ready")
    assert probe.status_code == 200
    assert "on another host" in probe.json()["checks"]["sweeper"]["finding"]


def test_health_page_shows_what_was_dropped_and_why(client: Client) -> None:
    team, other = make_team("Harbour", owner="alice"), make_team("Quay", owner="olga")
    Drop.objects.create(team=team, source="api", reason="line without a session", count=7, last_detail="notes.jsonl")
    Drop.objects.create(team=other, source="api", reason="line too long to keep", count=3)
    client.force_login(User.objects.get(username="alice"))
    text = client.get("/health/").content.decode()
    assert "line without a session" in text
    assert "notes.jsonl" in text
    assert "line too long to keep" not in text

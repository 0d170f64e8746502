"""A NUL where PostgreSQL takes none: in keys, cookies, addresses, query strings and form fields. Never a 500."""

import re
from pathlib import Path

import pytest
from django.db import transaction
from django.test import Client
from django.urls import reverse

import dashboard.views
from dashboard.live import room
from dashboard.models import Membership, Role, Team
from dashboard.proxy.callers import look_up_key
from dashboard.proxy.refusals import UNKNOWN_KEY
from tests.builders import make_team
from tests.dashboard.expectations import PAGES
from tests.dashboard.furniture import furnish
from tests.dashboard.test_expectations import page_url
from tests.visitors import sign_in

pytestmark = pytest.mark.django_db
KEY = "plk_\0" + "x" * 42
COOKIE = "\0" + "a" * 31
VIEWS = Path(dashboard.views.__file__).parent
# What views read by themselves; forms refuse a NUL in every text field.
NAMES = sorted({name for path in VIEWS.glob("*.py") for name in re.findall(r'\.get\("(\w+)"', path.read_text())})
ENDLESS_OR_NOT_READY = ("GET live_stream", "GET health_ready")


@pytest.fixture
def team() -> Team:
    return make_team("Harbour", owner="alice")


@pytest.mark.parametrize(
    ("path", "header", "value"),
    [
        ("/v1/logs", "authorization", f"Bearer {KEY}".replace("\0", "%00")),
        ("/v1/logs", "authorization", f"Bearer {KEY}"),
        ("/v1/logs", "X-Plimsoll-Key", KEY),
        ("/api/v1/ingest/lines", "authorization", f"Bearer {KEY}"),
        ("/api/v1/ingest/lines", "authorization", "Basic \0"),
    ],
)
def test_key_with_a_nul_is_not_known(client: Client, path: str, header: str, value: str) -> None:
    assert client.post(path, b"{}", content_type="application/json", headers={header: value}).status_code == 401


def test_proxy_key_with_a_nul_is_not_known() -> None:
    assert look_up_key(KEY) is UNKNOWN_KEY


@pytest.mark.parametrize("name", ["plimsoll_session", "plimsoll_csrf", "messages", "plimsoll_zone", "plimsoll_theme"])
@pytest.mark.parametrize(
    ("path", "status"), [("/", 302), ("/sign-in/", 200), ("/api/v1/me", 401), ("/health/ready", 0)]
)
def test_cookie_with_a_nul_signs_nobody_in(client: Client, name: str, path: str, status: int) -> None:
    client.cookies[name] = COOKIE
    answer = client.get(path)
    assert answer.status_code == (status or Client().get(path).status_code)


def test_session_cookie_with_a_nul_can_be_signed_out(client: Client) -> None:
    client.cookies["plimsoll_session"] = COOKIE
    assert client.post("/sign-out/").status_code == 302


def test_open_page_with_a_nul_in_its_cookie_is_sent_to_sign_in(client: Client) -> None:
    room.forget()
    client.cookies["plimsoll_session"] = COOKIE
    assert client.get("/live/changes").status_code == 302


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/sign-in/link/pls_%00/", 410),
        ("/invitations/pli_%00/", 410),
        ("/teams/a%00b/", 404),
        ("/sessions/1%00/", 404),
        ("/%00", 404),
        ("/api/v1/teams/a%00b", 404),
        ("/api/v1/sessions?project=a%00b&developer=%00", 200),
    ],
)
def test_address_with_a_nul_leads_nowhere(team: Team, path: str, status: int) -> None:
    client = Client() if status == 410 else sign_in("alice")
    assert client.get(path).status_code == status


@pytest.mark.parametrize("next_page", ["a\0b", "/a\0b", "overview", "nothing"])
def test_next_page_that_is_no_address_leads_to_a_page_of_this_site(team: Team, next_page: str) -> None:
    answers = [
        sign_in("alice").get("/sign-in/", {"next": next_page}),
        Client().post("/theme/", {"next": next_page, "theme": "dark"}),
    ]
    for answer in answers:
        assert answer.status_code == 302
        assert answer.headers["Location"] in ("/", "/a%00b")


def test_wrong_password_with_a_nul_beside_it_is_refused(client: Client) -> None:
    fields = {"username": "alice", "password": "wrong\0", "other": "\0"}
    assert client.post("/sign-in/?a=%00&next=%00", fields, headers={"User-Agent": "a\0b"}).status_code == 422
    assert client.post("/sign-in/", {"username": "a\0lice", "password": "wrong"}).status_code == 422


@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("allow_session", {"session": "a\0b"}),
        ("reset_breaker", {"agent_id": "a\0b"}),
        ("save_view", {"name": "mine", "query": "project=a%00b&developer=%00"}),
        ("revoke_key", {"\0": "\0"}),
    ],
)
def test_form_field_with_a_nul_is_answered(team: Team, name: str, fields: dict[str, str]) -> None:
    assert sign_in("alice").post(page_url(name, furnish(team)), fields).status_code == 302


def test_call_of_an_agent_with_a_nul_is_not_found(team: Team) -> None:
    url = reverse("session_tab", args=[furnish(team)["session_id"], "timeline"])
    assert sign_in("alice").get(url, {"number": "1", "agent": "a\0b"}).status_code == 200


@pytest.mark.parametrize("row", [row for row in PAGES if row not in ENDLESS_OR_NOT_READY])
def test_every_field_of_a_page_with_a_nul_is_answered(team: Team, row: str) -> None:
    """All at once, as a query string and as a form."""
    things = furnish(team)
    Membership.objects.filter(role=Role.OWNER).update(content_grant=True)
    method, name = row.split()
    client, url = sign_in("alice"), page_url(name, things)
    with transaction.atomic():
        answer = getattr(client, method.lower())(url, dict.fromkeys(NAMES, "1\0a"))
        transaction.set_rollback(True)
    assert answer.status_code < 500

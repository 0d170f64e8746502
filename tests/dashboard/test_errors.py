"""Error pages: what failed is said, what can be tried again is 503, nothing needs the database."""

from unittest.mock import patch

import pytest
from django.db import IntegrityError, OperationalError, connection
from django.test import Client, override_settings

from dashboard import access
from tests.builders import make_team, make_user

pytestmark = pytest.mark.django_db
BACKEND = "django.contrib.auth.backends.ModelBackend"


@pytest.fixture
def owner(client: Client) -> Client:
    make_team("Harbour", owner="alice")
    client.force_login(make_user("alice"), backend=BACKEND)
    client.raise_request_exception = False
    return client


@pytest.mark.parametrize(("url", "is_json"), [("/teams/harbour/", False), ("/api/v1/teams/harbour/members", True)])
def test_database_that_does_not_answer_is_503_and_says_when_to_come_back(
    owner: Client, url: str, *, is_json: bool
) -> None:
    with patch.object(access, "members", side_effect=OperationalError("database or disk is full")):
        answer = owner.get(url)
    assert answer.status_code == 503
    assert answer.headers["Retry-After"] == "5"
    assert answer.headers["Content-Security-Policy"]
    assert answer.headers["Content-Type"].startswith("application/json") == is_json
    assert "disk is full" not in answer.content.decode()


def test_database_gone_before_the_view_is_503_too(owner: Client) -> None:
    with patch.object(connection, "cursor", side_effect=OperationalError("no connection")):
        for url in ("/", "/account/", "/teams/harbour/", "/api/v1/me", "/health/ready"):
            assert owner.get(url).status_code == 503, url
        assert owner.get("/health/live").status_code == 200


def test_bug_is_500_without_its_words(owner: Client) -> None:
    with patch.object(access, "members", side_effect=IntegrityError("Failing row contains (secret)")):
        answer = owner.get("/teams/harbour/")
    assert answer.status_code == 500
    assert "secret" not in answer.content.decode()
    assert answer.headers["Content-Security-Policy"]


def test_forbidden_page_says_which_right_is_missing(client: Client) -> None:
    make_team("Harbour", viewer="vera")
    client.force_login(make_user("vera"), backend=BACKEND)
    assert "You need permission to manage members" in client.get("/teams/harbour/invitations/").content.decode()


def test_foreign_host_name_is_refused_with_headers(client: Client) -> None:
    with override_settings(ALLOWED_HOSTS=["plimsoll.example"]):
        answer = client.get("/sign-in/", headers={"host": "rebound.example"})
    assert answer.status_code == 400
    assert answer.headers["Content-Security-Policy"]


def test_form_without_token_explains_itself() -> None:
    answer = Client(enforce_csrf_checks=True).post("/sign-in/", {"username": "a", "password": "b"})
    assert answer.status_code == 403
    assert "Reload the page and try again" in answer.content.decode()

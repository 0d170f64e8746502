"""Keys of programs before their body is read."""

import asyncio
from datetime import timedelta

import pytest
from django.conf import settings
from django.db import OperationalError
from django.utils import timezone

from dashboard import key_check
from dashboard.accounts.keys import create_key
from dashboard.front_door import KeyFinding
from dashboard.key_check import MISSING, MISSING_FOR_OTLP, NOT_NEEDED, UNREADABLE, KeyCheck, look_up
from dashboard.models import Membership, Role, Scope, Team, User

SESSION = f"{settings.SESSION_COOKIE_NAME}=abc"
UNKNOWN = KeyFinding(refusal=(401, "Unknown API key. Check that it was copied completely."))


def check(path: str, **headers: str) -> KeyFinding:
    told = [(name.lower().replace("_", "-").encode(), value.encode()) for name, value in headers.items()]

    async def walk() -> KeyFinding:
        judge = KeyCheck()
        try:
            return await judge({"path": path, "headers": told})
        finally:
            judge.close()

    return asyncio.run(walk())


@pytest.mark.parametrize(
    ("path", "headers", "expected"),
    [
        ("/sign-in/", {}, NOT_NEEDED),
        ("/upload/", {"authorization": "Bearer plk_x"}, NOT_NEEDED),
        ("/v1/logs", {}, MISSING_FOR_OTLP),
        ("/ingest/otlp/v1/logs", {"cookie": SESSION}, MISSING_FOR_OTLP),
        ("/api/v1/ingest/lines", {}, MISSING),
        ("/api/v1/check", {"cookie": SESSION}, NOT_NEEDED),
        ("/api/v1/check", {"cookie": SESSION, "authorization": "Basic abc"}, MISSING),
        ("/api/v1/check", {"authorization": "Bearer"}, MISSING),
        ("/api/v1/check", {"cookie": SESSION, "authorization": "Bearer wrong"}, UNKNOWN),
        ("/v1/logs", {"authorization": "Bearer%20wrong"}, UNKNOWN),
        ("/v1/logs", {"x_plimsoll_key": "wrong", "authorization": "Bearer sk-ant-other"}, UNKNOWN),
    ],
)
def test_programs_need_a_key_and_people_a_session(path: str, headers: dict[str, str], expected: KeyFinding) -> None:
    assert check(path, **headers) == expected


@pytest.mark.django_db
def test_a_key_counts_by_its_own_name_until_it_expires() -> None:
    team, user = Team.objects.create(name="Red", slug="red"), User.objects.create_user("ann")
    Membership.objects.create(team=team, user=user, role=Role.MEMBER)
    texts = [
        create_key(team, user, name="k", scopes=[Scope.INGEST], expires_at=expires_at, by=None)[1]
        for expires_at in (None, timezone.now() - timedelta(minutes=1))
    ]
    assert look_up(texts[0], name="a") == KeyFinding(client="key a")
    refusal = look_up(texts[1], name="a").refusal
    assert refusal is not None
    assert (refusal[0], refusal[1][:23]) == (401, "This API key expired on")
    assert look_up(texts[0][:-1] + "!", name="a") == UNKNOWN


def test_without_a_database_the_program_is_told_to_come_again(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(text: str, **_: object) -> None:
        raise OperationalError("away")

    monkeypatch.setattr(key_check, "find_key", fail)
    assert check("/v1/logs", authorization="Bearer plk_x") == UNREADABLE

"""API keys: shown once, compared by digest, stopped at once (S7)."""

import re
import threading
from collections.abc import Callable
from datetime import timedelta

import pytest
from django.db import connection
from django.test import Client
from django.utils import timezone

from dashboard import access
from dashboard.access import Act
from dashboard.accounts import keys
from dashboard.accounts.refusals import Refused
from dashboard.models import ApiKey, Membership, Role, Scope
from tests.builders import make_key, make_team, make_user

pytestmark = pytest.mark.django_db
BACKEND = "django.contrib.auth.backends.ModelBackend"


def knock(text: str) -> int:
    return Client().get("/api/v1/me", headers={"authorization": f"Bearer {text}"}).status_code


def test_key_is_shown_once_and_only_its_digest_is_stored(client: Client) -> None:
    make_team("Harbour", owner="alice")
    client.force_login(make_user("alice"), backend=BACKEND)
    form = {"name": "laptop", "scopes": ["ingest", "read"], "expires": "30"}
    answer = client.post("/teams/harbour/keys/", form).content.decode()
    key = ApiKey.objects.get()
    text = re.findall(r"plk_[\w-]{43}", answer)[0]
    assert text.startswith(key.prefix)
    assert len(text) > len(key.prefix) + 30
    assert knock(text) == 200
    assert text not in client.get("/teams/harbour/keys/").content.decode()
    assert text.encode() not in bytes(key.digest)


def test_revoked_key_is_refused_by_the_next_request(client: Client) -> None:
    team = make_team("Harbour", owner="alice")
    key, text = make_key(team, make_user("alice"), Scope.READ)
    client.force_login(make_user("alice"), backend=BACKEND)
    assert knock(text) == 200
    client.post(f"/teams/harbour/keys/{key.pk}/revoke/")
    assert knock(text) == 401


def test_expired_key_is_refused() -> None:
    team, now = make_team("Harbour", owner="alice"), timezone.now()
    _, text = keys.create_key(
        team, make_user("alice"), name="old", scopes=[Scope.READ], expires_at=now + timedelta(seconds=60), by=None
    )
    assert keys.find_key(text, now=now)
    with pytest.raises(keys.KeyRefused, match="expired"):
        keys.find_key(text, now=now + timedelta(seconds=60))


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text[:-1] + "#",
        lambda text: text.upper(),
        lambda text: text[:14],
        lambda _: "",
        lambda text: text[:6] + "\0" + text[7:],
        lambda text: text + "\n",
    ],
)
def test_almost_right_key_is_refused(change: Callable[[str], str]) -> None:
    team = make_team("Harbour", owner="alice")
    _, text = make_key(team, make_user("alice"), Scope.READ)
    with pytest.raises(keys.KeyRefused, match="Unknown API key"):
        keys.find_key(change(text), now=timezone.now())


def test_api_says_what_is_wrong_with_a_key(client: Client) -> None:
    team, alice, now = make_team("Harbour", owner="alice", member="mia"), make_user("alice"), timezone.now()
    _, expired = keys.create_key(
        team, alice, name="old", scopes=[Scope.READ], expires_at=now - timedelta(days=1), by=None
    )
    key, revoked = make_key(team, alice, Scope.READ)
    keys.revoke_key(key, by=alice, now=now)
    _, orphaned = make_key(team, make_user("mia"), Scope.READ)
    Membership.objects.filter(user__username="mia").delete()
    sentences = {}
    for name, header in {
        "missing": None,
        "basic": "Basic YWxpY2U6cGFzc3dvcmQ=",
        "unknown": "Bearer plk_" + "x" * 43,
        "almost": f"Bearer {revoked[:-1]}" + ("a" if revoked[-1] != "a" else "b"),
        "expired": f"Bearer {expired}",
        "revoked": f"Bearer {revoked}",
        "orphaned": f"Bearer {orphaned}",
    }.items():
        answer = client.get("/api/v1/me", headers={"authorization": header} if header else {})
        assert (answer.status_code, answer.headers["WWW-Authenticate"]) == (401, 'Bearer realm="Plimsoll"'), name
        sentences[name] = answer.json()["detail"]
    assert sentences["missing"] == sentences["basic"]
    assert sentences["unknown"] == sentences["almost"]  # nothing is said about a key to who does not have all of it
    assert len(set(sentences.values())) == 5
    assert f"{now - timedelta(days=1):%Y-%m-%d}" in sentences["expired"]
    assert "revoked" in sentences["revoked"]


def test_key_does_no_more_than_its_owner_may_now() -> None:
    team = make_team("Harbour", owner="alice", admin="anna")
    key, text = make_key(team, make_user("anna"), Scope.READ, Scope.ADMIN, Scope.COMPACT, Scope.INGEST)
    assert access.program(key).may(Act.TUNE, team)
    assert access.program(key).may(Act.RUN_TEAM, team)
    Membership.objects.filter(user__username="anna").update(role=Role.MEMBER)
    demoted = access.program(key)
    assert [act for act in Act if demoted.may(act, team)] == [Act.SEE, Act.INGEST, Act.RUN_OWN]
    Membership.objects.filter(user__username="anna").update(role=Role.VIEWER)
    assert [act for act in Act if access.program(key).may(act, team)] == [Act.SEE]
    Membership.objects.filter(user__username="anna").delete()
    assert knock(text) == 401


def test_key_of_a_closed_account_is_refused() -> None:
    team = make_team("Harbour", owner="alice")
    _, text = make_key(team, make_user("alice"), Scope.READ)
    alice = make_user("alice")
    alice.is_active = False
    alice.save()
    assert knock(text) == 401


def test_content_is_read_only_with_grant_and_both_scopes() -> None:
    team = make_team("Harbour", owner="alice")
    key, _ = make_key(team, make_user("alice"), Scope.READ, Scope.CONTENT)
    assert not access.program(key).may(Act.READ_TEAM_CONTENT, team)
    assert access.program(key).may(Act.READ_OWN_CONTENT, team)
    Membership.objects.update(content_grant=True)
    assert access.program(key).may(Act.READ_TEAM_CONTENT, team)
    with pytest.raises(Refused, match="requires the read scope"):
        make_key(team, make_user("alice"), Scope.CONTENT)


def test_member_sees_and_revokes_own_keys_only(client: Client) -> None:
    team = make_team("Harbour", owner="alice", member="mia")
    make_key(team, make_user("alice"), Scope.READ)
    own, _ = make_key(team, make_user("mia"), Scope.READ)
    client.force_login(make_user("mia"), backend=BACKEND)
    listed = client.get("/api/v1/teams/harbour/keys").json()
    assert [key["id"] for key in listed] == [own.pk]
    assert client.post(f"/teams/harbour/keys/{own.pk}/revoke/").status_code == 302


def test_member_cannot_give_a_key_the_admin_scope(client: Client) -> None:
    make_team("Harbour", owner="alice", member="mia")
    client.force_login(make_user("mia"), backend=BACKEND)
    form = {"name": "greedy", "scopes": ["admin"], "expires": "never"}
    assert client.post("/teams/harbour/keys/", form).status_code == 422
    asked = client.post("/api/v1/teams/harbour/keys", form | {"expires_days": None}, content_type="application/json")
    assert asked.status_code == 422  # `expires` is a field of the page, not of the API
    body = {"name": "greedy", "scopes": ["admin"]}
    assert client.post("/api/v1/teams/harbour/keys", body, content_type="application/json").status_code == 403
    assert not ApiKey.objects.exists()


def test_use_is_noted_once_a_minute() -> None:
    team, now = make_team("Harbour", owner="alice"), timezone.now()
    make_key(team, make_user("alice"), Scope.READ)
    seen = []
    for seconds in (0, 30, 61):
        keys.note_use(ApiKey.objects.get(), now=now + timedelta(seconds=seconds))
        seen.append((ApiKey.objects.get().last_used_at or now) - now)
    assert seen == [timedelta(0), timedelta(0), timedelta(seconds=61)]


@pytest.mark.django_db(transaction=True)
def test_revoking_twice_at_once_leaves_one_trace() -> None:
    team = make_team("Harbour", owner="alice")
    key, _ = make_key(team, make_user("alice"), Scope.READ)
    alice, together = make_user("alice"), threading.Barrier(2)

    def revoke() -> None:
        together.wait(10)
        keys.revoke_key(key, by=alice, now=timezone.now())
        connection.close()

    threads = [threading.Thread(target=revoke) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert team.audit_events.filter(action="key revoked").count() == 1


def test_scopes_promise_what_a_key_can_do(client: Client) -> None:
    make_team("Harbour", owner="alice")
    client.force_login(make_user("alice"), backend=BACKEND)
    page = client.get("/teams/harbour/keys/").content.decode()
    assert "admin: change team settings" in page
    assert "alarm" not in page

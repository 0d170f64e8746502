"""Who may call: keys and their scope, revocation, programs on this machine, pages in a browser, what logs show."""

import asyncio
import http.client
import json
import logging
import time
from pathlib import Path

import pytest
from django.conf import settings
from django.db import OperationalError, connection
from django.utils import timezone

from dashboard.accounts.keys import create_key, limit_key, revoke_key
from dashboard.accounts.local import ensure_local_owner
from dashboard.environment import BadSetting
from dashboard.models import Membership, Role, Scope, Team, User
from dashboard.proxy import callers
from dashboard.proxy.callers import Caller, Callers, look_up_key, look_up_local
from dashboard.proxy.refusals import KEYS_UNREADABLE, NO_RIGHT, UNKNOWN_KEY
from dashboard.proxy.upstreams import read_upstreams
from tests.dashboard.proxy.serving import KEY, WEAK_KEY, Serving, serving
from tests.fakes.raw_upstream import RawUpstream


def complaint(body: bytes) -> tuple[str, str]:
    told = json.loads(body)
    assert told["type"] == "error"
    assert "Plimsoll" in told["error"]["message"]
    return told["error"]["type"], told["error"]["message"]


@pytest.mark.parametrize(
    ("key", "status", "kind"),
    [
        ("", 401, "authentication_error"),
        ("plk_wrong", 401, "authentication_error"),
        (WEAK_KEY, 403, "permission_error"),
    ],
)
def test_bad_key_is_refused_in_the_shape_of_the_api(
    proxy: Serving, upstream: RawUpstream, key: str, status: int, kind: str
) -> None:
    for path, headers in ((f"/proxy/k/{key}/v1/messages", {}), ("/proxy/v1/messages", {"X-Plimsoll-Key": key})):
        answered = proxy.ask(path, b"{}", headers={"X-Plimsoll-Key": key, **headers})
        assert (answered.status, complaint(answered.body)[0]) == (status, kind)
    assert upstream.requests == []


def test_no_key_at_all_says_where_it_goes(proxy: Serving) -> None:
    asked = http.client.HTTPConnection("127.0.0.1", proxy.port)
    asked.request("POST", "/proxy/v1/messages", b"{}", {"x-api-key": "sk-ant-x"})
    response = asked.getresponse()
    assert response.status == 401
    assert "X-Plimsoll-Key" in complaint(response.read())[1]
    asked.close()


def test_unknown_upstream_is_a_404(proxy: Serving) -> None:
    answered = proxy.ask("/proxy/u/nowhere/v1/messages", b"{}")
    assert (answered.status, complaint(answered.body)[0]) == (404, "not_found_error")


@pytest.mark.parametrize("header", ["Origin", "Sec-Fetch-Site", "Sec-Fetch-Dest"])
def test_pages_in_a_browser_are_refused(proxy: Serving, header: str) -> None:
    answered = proxy.ask("/proxy/v1/messages", b"{}", headers={header: "cross-site"})
    assert (answered.status, complaint(answered.body)[0]) == (403, "permission_error")


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"Host": "localhost:8000"}, 200),
        ({"Host": "evil.example"}, 403),
        ({"Host": "evil.example:8000"}, 403),
        ({"X-Forwarded-For": "127.0.0.1"}, 403),
        ({"Forwarded": "for=10.0.0.1"}, 403),
        ({"X-Forwarded-Proto": "https"}, 403),
        ({"X-Forwarded-Port": "443"}, 403),
        ({"Cf-Connecting-Ip": "203.0.113.7"}, 403),
        ({"Fly-Client-IP": "203.0.113.7"}, 403),
        ({"X-Azure-ClientIP": "203.0.113.7"}, 403),
        ({"CF-Ray": "8f"}, 403),
        ({"True-Client-IP": "203.0.113.7"}, 403),
        ({"X-Original-Host": "plimsoll.example"}, 403),
        ({"Via": "1.1 tunnel"}, 403),
        ({"X-Stainless-Lang": "python"}, 200),
    ],
)
def test_on_ones_own_machine_no_key_is_needed_by_programs_that_ask_it_here(
    upstream: RawUpstream, tmp_path: Path, headers: dict[str, str], status: int
) -> None:
    with serving(upstream.url, tmp_path, is_local=True) as proxy:
        asked = http.client.HTTPConnection("127.0.0.1", proxy.port)
        asked.request("POST", "/proxy/v1/messages", b"{}", headers)
        assert asked.getresponse().status == status
        asked.close()
        assert proxy.ask("/proxy/v1/messages", b"{}", headers={"X-Plimsoll-Key": "plk_wrong"}).status == 401


def test_keys_are_masked_in_logs_and_credentials_are_in_none(
    proxy: Serving, upstream: RawUpstream, caplog: pytest.LogCaptureFixture
) -> None:
    secrets = {"x-api-key": "sk-ant-api03-secret", "Authorization": "Bearer oauth-secret"}
    with caplog.at_level(logging.DEBUG):
        proxy.ask(f"/proxy/k/{KEY}/v1/messages?x=1", b'{"secret":"body"}', headers=secrets)
        proxy.ask("/proxy/k/sk-ant-by-mistake/v1/messages", b"{}", headers=secrets | {"X-Plimsoll-Key": "plk_no"})
        exchange = proxy.wait_for_exchange()
    told = " ".join(str(vars(record)) for record in caplog.records if record.name.startswith("dashboard"))
    assert "/proxy/k/***/v1/messages" in told
    for secret in (KEY, "sk-ant", "oauth-secret", "body"):
        assert secret not in told
    assert "secret" not in repr((exchange.request_headers, exchange.response_headers))
    assert KEY not in repr(exchange)


SECRET = "sk-ant-api03-by-mistake"


@pytest.mark.parametrize(
    "path",
    [
        f"//k/{KEY}/v1/messages",
        f"/K/{KEY}/v1/messages",
        f"/k%2F{KEY}/v1/messages",
        f"/%6b/{SECRET}/v1/messages",
        f"/%20k/{SECRET}/v1/messages",
        f"/\\k\\{SECRET}/v1/messages",
        f"/k/{KEY}/k/{SECRET}/v1/messages",
        f"/k/{KEY}//k/{SECRET}/v1/messages",
        f"/u/default//K/{SECRET}/v1/messages",
        f"/U/default/k/{SECRET}/v1/messages",
        f"//u/default/k/{SECRET}%2Fmore%20of%20it/v1/messages",
        f"/{KEY}/v1/messages",
        f"/key/{KEY}/v1/messages",
    ],
)
def test_a_key_that_stands_nearly_in_its_place_goes_nowhere(
    proxy: Serving, upstream: RawUpstream, caplog: pytest.LogCaptureFixture, path: str
) -> None:
    with caplog.at_level(logging.DEBUG):
        answered = proxy.ask(f"/proxy{path}", b"{}")
        (shown,) = wait_for_paths(caplog, 1)
    error = json.loads(answered.body)["error"]
    assert (answered.status, error["type"], error["message"].split()[0]) == (404, "not_found_error", "Plimsoll:")
    assert upstream.requests == []
    assert "***" in shown
    assert not any(part in shown for part in ("kkk", "mistake", "more", "it/"))


def wait_for_paths(caplog: pytest.LogCaptureFixture, count: int) -> list[str]:
    """What the log shows of the addresses of so many calls: a line is written after its call is answered."""
    give_up_at = time.monotonic() + 5
    while True:
        told = [vars(record)["path"] for record in caplog.records if record.name == "dashboard.proxy.forwarder"]
        if len(told) >= count or time.monotonic() > give_up_at:
            return told
        time.sleep(0.01)


def test_other_secrets_in_the_place_of_a_key_are_masked(proxy: Serving, caplog: pytest.LogCaptureFixture) -> None:
    secrets = ("sk-ant-api03-secret", "a%2Fsecret", "a%20secret", "a+secret")
    with caplog.at_level(logging.DEBUG):
        for secret in secrets:
            for path in (f"/proxy/k/{secret}/v1/messages", f"/proxy/u/default/k/{secret}/v1/messages"):
                assert proxy.ask(path, b"{}", headers={"X-Plimsoll-Key": "plk_no"}).status == 401
        shown = wait_for_paths(caplog, 8)
    assert shown == ["/proxy/k/***/v1/messages", "/proxy/u/default/k/***/v1/messages"] * 4


# --- the key itself ---


def make_key(*scopes: Scope, role: Role = Role.MEMBER) -> tuple[Membership, str]:
    team = Team.objects.create(name="Red", slug="red")
    user = User.objects.create_user("ann")
    membership = Membership.objects.create(team=team, user=user, role=role)
    _, text = create_key(team, user, name="k", scopes=scopes, expires_at=None, by=None)
    return membership, text


@pytest.mark.django_db
def test_a_key_opens_with_the_proxy_scope_alone() -> None:
    membership, text = make_key(Scope.PROXY)
    found = look_up_key(text)
    assert isinstance(found, Caller)
    assert (found.team_pk, found.owner_pk) == (membership.team_id, membership.user_id)
    _, other = create_key(
        membership.team, membership.user, name="o", scopes=[Scope.INGEST, Scope.READ], expires_at=None, by=None
    )
    assert look_up_key(other) is NO_RIGHT
    assert look_up_key("plk_wrong") is UNKNOWN_KEY


@pytest.mark.django_db
def test_a_key_goes_with_its_owner() -> None:
    membership, text = make_key(Scope.PROXY)
    membership.role = Role.VIEWER
    membership.save()
    assert look_up_key(text) is NO_RIGHT
    membership.delete()
    assert look_up_key(text) is NO_RIGHT


@pytest.mark.django_db(transaction=True)
def test_a_revoked_key_stops_within_a_second() -> None:
    membership, text = make_key(Scope.PROXY)

    async def walk() -> float:
        known = Callers()
        assert isinstance(await known.find_by_key(text), Caller)
        await asyncio.to_thread(revoke)
        revoked_at = time.monotonic()
        while isinstance(await known.find_by_key(text), Caller):  # noqa: ASYNC110 (nobody tells when)
            await asyncio.sleep(0.02)
        known.close()
        return time.monotonic() - revoked_at

    def revoke() -> None:
        revoke_key(membership.team.keys.get(), by=membership.user, now=timezone.now())
        connection.close()

    assert asyncio.run(walk()) < 1.0


def test_many_calls_at_once_ask_the_database_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def look_up(text: str) -> Caller:
        asked.append(text)
        time.sleep(0.05)
        return Caller(1, 2, 3)

    monkeypatch.setattr(callers, "look_up_key", look_up)

    async def walk() -> None:
        known = Callers()
        await asyncio.gather(*(known.find_by_key("plk_x") for _ in range(50)))
        known.close()

    asyncio.run(walk())
    assert asked == ["plk_x"]


def test_a_known_key_goes_on_while_the_database_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(text: str) -> Caller:
        raise OperationalError("away")

    async def walk() -> None:
        known = Callers(kept_seconds=0.0)
        monkeypatch.setattr(callers, "look_up_key", lambda _text: Caller(1, 2, 3))
        assert await known.find_by_key("plk_x") == Caller(1, 2, 3)
        monkeypatch.setattr(callers, "look_up_key", fail)
        assert await known.find_by_key("plk_x") == Caller(1, 2, 3)
        assert await known.find_by_key("plk_y") is KEYS_UNREADABLE
        known.close()

    asyncio.run(walk())


def test_this_machines_own_programs_go_on_however_long_the_database_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: str) -> Caller:
        raise OperationalError("away")

    async def walk() -> None:
        known = Callers(kept_seconds=0.0)
        monkeypatch.setattr(callers, "KEPT_WITHOUT_DATABASE_SECONDS", 0.0)
        monkeypatch.setattr(callers, "look_up_local", fail)
        assert await known.find_local() is KEYS_UNREADABLE
        monkeypatch.setattr(callers, "look_up_local", lambda: Caller(1, 2, None))
        monkeypatch.setattr(callers, "look_up_key", lambda _text: Caller(1, 2, 3))
        assert await known.find_local() == Caller(1, 2, None)
        assert await known.find_by_key("plk_x") == Caller(1, 2, 3)
        monkeypatch.setattr(callers, "look_up_local", fail)
        monkeypatch.setattr(callers, "look_up_key", fail)
        assert await known.find_local() == Caller(1, 2, None)
        assert await known.find_by_key("plk_x") is KEYS_UNREADABLE
        known.close()

    asyncio.run(walk())


@pytest.mark.django_db
def test_a_key_brings_its_own_limit() -> None:
    membership, text = make_key(Scope.PROXY)
    limit_key(membership.team.keys.get(), requests_per_minute=7, mib_per_minute=None, by=membership.user)
    found = look_up_key(text)
    assert isinstance(found, Caller)
    assert found.calls_per_minute == 7


@pytest.mark.django_db
def test_the_local_team_is_this_machines_own(monkeypatch: pytest.MonkeyPatch) -> None:
    owner = ensure_local_owner()
    monkeypatch.setattr(settings, "LOCAL_MODE", True)
    found = look_up_local()
    assert isinstance(found, Caller)
    assert (found.owner_pk, found.key_pk) == (owner.pk, None)
    assert found.team_pk == Team.objects.get(is_local=True).pk
    monkeypatch.setattr(settings, "LOCAL_MODE", False)
    assert look_up_local() is UNKNOWN_KEY


# --- the operator's upstreams ---

NAME = "PLIMSOLL_TEST_UPSTREAM"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", {"default": "https://api.anthropic.com"}),
        ("https://gateway.example/anthropic/", {"default": "https://gateway.example/anthropic"}),
        ("http://127.0.0.1:4000", {"default": "http://127.0.0.1:4000"}),
        (
            "main=https://api.anthropic.com, lite-llm=http://localhost:4000/anthropic",
            {"main": "https://api.anthropic.com", "lite-llm": "http://localhost:4000/anthropic"},
        ),
    ],
)
def test_upstreams_are_read(monkeypatch: pytest.MonkeyPatch, text: str, expected: dict[str, str]) -> None:
    monkeypatch.setenv(NAME, text)
    assert read_upstreams(NAME) == expected


@pytest.mark.parametrize(
    "text",
    [
        "api.anthropic.com", "ftp://x", "http://gateway.example", "http://10.0.0.1", "https://user:pass@x",
        "https://x?y=1", "https://", "A=https://x", "a=https://x a=https://y", "https://x https://y", "https://x:99999",
    ],
)  # fmt: skip
def test_unsafe_upstreams_are_refused_at_the_start(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv(NAME, text)
    with pytest.raises(BadSetting, match=NAME):
        read_upstreams(NAME)

"""Quotas: a key that sends too much is told when to come again, in each endpoint's own words, by all processes."""

import json
import time
from collections import OrderedDict
from datetime import timedelta

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from pytest_django import Settings

from dashboard.accounts import key_quotas
from dashboard.accounts.key_quotas import Account, KeyQuotas, QuotaExceeded
from dashboard.models import ApiKey, AuditAction, AuditEvent, KeyHour, Scope, User
from tests.builders import make_key, make_team, make_user

pytestmark = pytest.mark.django_db


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(key_quotas, "time", clock)
    monkeypatch.setattr(key_quotas.QUOTAS, "_accounts", OrderedDict())
    return clock


@pytest.fixture
def key() -> tuple[ApiKey, str]:
    team = make_team("Harbour", owner="olga", admin="anna", member="mia")
    return make_key(team, make_user("olga"), Scope.INGEST, Scope.READ)


def _count_taken(quotas: KeyQuotas, key: ApiKey, tries: int, size_bytes: int = 0) -> int:
    taken = 0
    for _ in range(tries):
        try:
            quotas.take(key, size_bytes, now=timezone.now())
        except QuotaExceeded:
            continue
        taken += 1
    return taken


def test_bucket_holds_a_minute_and_fills_evenly(clock: Clock, key: tuple[ApiKey, str]) -> None:
    row, quotas = key[0], KeyQuotas()
    row.requests_per_minute = 60
    assert _count_taken(quotas, row, 100) == 60
    clock.now += 10
    assert _count_taken(quotas, row, 100) == 10


def test_bytes_are_counted_too_and_a_large_request_is_paid_off(clock: Clock, key: tuple[ApiKey, str]) -> None:
    row, quotas = key[0], KeyQuotas()
    row.mib_per_minute = 1
    assert _count_taken(quotas, row, 3, size_bytes=2 * 1024 * 1024) == 1
    with pytest.raises(QuotaExceeded, match=r"too many bytes\. Try again in 60 s"):
        quotas.take(row, 1, now=timezone.now())
    clock.now += 61
    assert _count_taken(quotas, row, 1, size_bytes=1) == 1


def test_processes_share_one_limit(clock: Clock, key: tuple[ApiKey, str]) -> None:
    row, processes = key[0], [KeyQuotas(), KeyQuotas()]
    row.requests_per_minute = 600
    taken = 0
    for _ in range(12):  # a minute
        taken += sum(_count_taken(process, row, 100) for process in processes)
        clock.now += 5
    within_one_share = 600 * 2 * 5 / 60
    assert 600 + 600 - within_one_share <= taken <= 600 + 600 + 2 * within_one_share
    assert abs(KeyHour.objects.get().request_count - taken) <= 2 * within_one_share


def test_counters_change_under_the_lock_alone(clock: Clock, key: tuple[ApiKey, str]) -> None:
    """What another thread counts between being read and being set to nothing would be lost."""
    row, quotas = key[0], KeyQuotas()
    held: list[bool] = []

    class WatchedAccount(Account):
        def __setattr__(self, name: str, value: object) -> None:
            if "requests" in vars(self):  # after it was made
                held.append(quotas._lock.locked())
            super().__setattr__(name, value)

    quotas.take(row, 1, now=timezone.now())
    ordinary = quotas._accounts[row.pk]
    quotas._accounts[row.pk] = WatchedAccount(**vars(ordinary))
    held.clear()
    clock.now += 6
    quotas.take(row, 1, now=timezone.now())
    assert held
    assert all(held)
    assert KeyHour.objects.get().request_count == 2


def test_each_endpoint_refuses_in_its_own_words(clock: Clock, key: tuple[ApiKey, str], client: Client) -> None:
    row, text = key
    ApiKey.objects.update(requests_per_minute=1)
    authorization = {"authorization": f"Bearer {text}"}
    assert client.get("/api/v1/me", headers=authorization).status_code == 200
    api = client.get("/api/v1/me", headers=authorization)
    sentence = "Rate limit of this key exceeded: too many requests. Try again in 60 s."
    assert (api.status_code, api.json(), api["Retry-After"]) == (429, {"detail": sentence}, "60")
    hook = json.dumps({"hook_event_name": "Stop", "session_id": "s"})
    told = client.post("/api/v1/ingest/hooks", hook, content_type="application/json", headers=authorization)
    assert (told.status_code, told["Retry-After"]) == (429, "60")
    otlp = client.post("/v1/logs", b"\n\x00", content_type="application/x-protobuf", headers=authorization)
    assert (otlp.status_code, otlp["Retry-After"]) == (429, "60")
    assert otlp.content == b"\x12" + bytes([len(sentence)]) + sentence.encode()  # a Status with its message
    clock.now += 6
    assert client.get("/api/v1/me", headers=authorization).status_code == 429
    assert KeyHour.objects.get(key=row).refused_count == 4


def test_default_limit_is_the_installations(clock: Clock, key: tuple[ApiKey, str], settings: Settings) -> None:
    settings.KEY_REQUESTS_PER_MINUTE, settings.KEY_MIB_PER_MINUTE = 3, 0
    assert _count_taken(KeyQuotas(), key[0], 10, size_bytes=10**9) == 3
    key[0].requests_per_minute = 0
    assert _count_taken(KeyQuotas(), key[0], 10) == 10


def test_admin_sets_limits_and_sees_use_and_refusals(key: tuple[ApiKey, str], client: Client) -> None:
    row = key[0]
    hour_at = timezone.now() - timedelta(hours=2)
    KeyHour.objects.create(key=row, hour_at=hour_at, request_count=1234, byte_count=5 * 2**20, refused_count=7)
    client.force_login(User.objects.get(username="anna"))
    address = reverse("limit_key", args=["harbour", row.pk])
    assert client.post(address, {"requests_per_minute": "50", "mib_per_minute": ""}).status_code == 302
    client.post(address, {"requests_per_minute": "-1"})
    row.refresh_from_db()
    assert (row.requests_per_minute, row.mib_per_minute) == (50, None)
    event = AuditEvent.objects.get(action=AuditAction.KEY_LIMITED)
    assert event.details == {"requests_per_minute": 50, "mib_per_minute": "default"}
    page = client.get(reverse("keys", args=["harbour"])).content.decode()
    for words in ("1,234 requests", "5.0\xa0MB", "7 rejected", "50 requests", "1,024 MiB"):
        assert words in page
    client.force_login(User.objects.get(username="mia"))
    assert client.post(address, {"requests_per_minute": "0"}).status_code == 403


def test_a_request_costs_less_than_a_fifth_of_a_millisecond(key: tuple[ApiKey, str]) -> None:
    quotas, now = KeyQuotas(), timezone.now()
    quotas.take(key[0], 100, now=now)
    began = time.process_time()
    for _ in range(2_000):
        quotas.take(key[0], 100, now=now)
    assert (time.process_time() - began) / 2_000 < 0.0002

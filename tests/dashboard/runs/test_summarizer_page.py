"""The summariser's page and endpoint: key, models, cap, prices, today's spending, rights; the key is never told."""

import json
import logging
from decimal import Decimal
from typing import Any

import pytest
from django.core import serializers
from django.db import connection
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from compaction.llm.lookup import list_offered_models
from dashboard.models import AuditEvent, SummarizerSettings, Team
from dashboard.runs.settings_changes import SettingsChange, change_settings, set_key
from dashboard.runs.spend import reserve, settle
from dashboard.runs.team_settings import find_key, find_settings
from tests.builders import make_team, make_user
from tests.visitors import ask, count_queries, read, sign_in

pytestmark = pytest.mark.django_db
PAGE, ENDPOINT = "/teams/harbour/summarizer/", "/api/v1/teams/harbour/summarizer"
KEY = "sk-ant-api03-secret-of-the-harbour-wxyz"


@pytest.fixture
def team() -> Team:
    return make_team("Harbour", owner="olga", admin="anna", member="mia", viewer="vera")


@pytest.fixture
def anna(team: Team) -> Client:
    return sign_in("anna")


def make_form(*, stamp: str = "", **values: str) -> dict[str, str]:
    return {"act": "save", "stamp": stamp, "daily_cap_usd": "5", "allows_fork": "on", **values}


def patch(client: Client, **fields: object) -> tuple[int, Any]:
    answer = client.patch(ENDPOINT, fields, content_type="application/json")
    return answer.status_code, json.loads(answer.content)


def test_page_without_a_key_says_what_happens_then(anna: Client) -> None:
    page = read(anna, PAGE)
    assert "Without a key, summaries are assembled from quotations" in page
    assert "claude-haiku-5-5" in page
    assert 'aria-current="page">Summariser' in page
    assert "Remove API key" not in page


def test_page_offers_every_current_model_with_its_price(team: Team, anna: Client) -> None:
    page = read(anna, PAGE)
    assert [model for model in list_offered_models() if f'value="{model}"' not in page] == []


def test_key_is_set_replaced_and_removed_and_never_shown(team: Team, anna: Client) -> None:
    assert anna.post(PAGE, {"act": "key", "key": KEY}).status_code == 302
    page = read(anna, PAGE)
    assert "API key saved." in page
    assert "…wxyz" in page
    assert find_key(team) == KEY
    anna.post(PAGE, {"act": "key", "key": KEY.replace("wxyz", "1234")})
    assert "…1234" in read(anna, PAGE)
    anna.post(PAGE, {"act": "forget"})
    assert "Team API key removed." in read(anna, PAGE)
    assert not find_settings(team).has_key
    anna.post(PAGE, {"act": "forget"})
    assert "has no API key of its own" in read(anna, PAGE)


def test_key_is_in_no_page_answer_database_or_log(team: Team, anna: Client, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        anna.post(PAGE, {"act": "key", "key": KEY})
        told = [read(anna, PAGE), json.dumps(ask(anna, "teams/harbour/summarizer"))]
        told.append(json.dumps(patch(anna, key=KEY)))
        told.append(read(sign_in("olga"), "/teams/harbour/audit/"))
    told += [serializers.serialize("json", model.objects.all()) for model in (SummarizerSettings, AuditEvent)]
    told.append(dump_database())
    assert KEY not in caplog.text
    assert "…wxyz" in told[0]
    for text in told:
        assert KEY not in text
        assert KEY.encode().hex() not in text
    assert find_key(team) == KEY


def dump_database() -> str:
    with connection.cursor() as cursor:
        tables = connection.introspection.table_names(cursor)
        rows = []
        for table in tables:
            cursor.execute(f"SELECT * FROM {connection.ops.quote_name(table)}")
            rows += [bytes(cell) if isinstance(cell, memoryview) else cell for row in cursor.fetchall() for cell in row]
    return repr(rows)


def test_bad_key_is_refused_at_its_field_and_not_repeated(team: Team, anna: Client) -> None:
    answer = anna.post(PAGE, {"act": "key", "key": "my secret pass phrase"})
    assert answer.status_code == 422
    page = answer.content.decode()
    assert "Invalid API key" in page
    assert "my secret pass phrase" not in page
    assert not find_settings(team).has_key


def test_key_that_can_no_longer_be_read_is_said_and_can_be_replaced(
    team: Team, anna: Client, settings: Settings
) -> None:
    set_key(team, KEY, by=None)
    row = SummarizerSettings.objects.get()
    row.key_sealed = b"\x01" + bytes(60)
    row.save()
    page = read(anna, PAGE)
    assert "The stored API key cannot be read" in page
    assert "unreadable</span>" in page
    answer = ask(anna, "teams/harbour/summarizer")
    assert (answer["has_key"], answer["key_origin"]) == (False, "team")
    assert anna.post(PAGE, {"act": "key", "key": KEY}).status_code == 302
    assert find_settings(team).has_key


def test_operators_key_is_named_as_such(anna: Client, settings: Settings) -> None:
    settings.ANTHROPIC_API_KEY = KEY
    page = read(anna, PAGE)
    assert "Key set by the operator of this installation" in page
    assert KEY not in page
    assert "Remove API key" not in page


def test_settings_are_saved_and_shown(team: Team, anna: Client) -> None:
    form = make_form(model="claude-opus-5-5", small_model="none", daily_cap_usd="12.50")
    del form["allows_fork"]
    assert anna.post(PAGE, form).status_code == 302
    choice = find_settings(team)
    assert (choice.model, choice.small_model, choice.allows_fork) == ("claude-opus-5-5", "", False)
    assert choice.daily_cap_usd == Decimal("12.5")
    page = read(anna, PAGE)
    assert "Summariser settings saved." in page
    assert 'value="claude-opus-5-5"' in page
    assert 'value="12.5"' in page
    assert "by anna" in page
    assert 'href="/teams/harbour/prices/"' in page


FAULTS = [
    (make_form(daily_cap_usd="a lot"), "Enter a cap from 0 to 100,000."),
    (make_form(model="<script>alert(1)</script>"), "is not a model name."),
]


@pytest.mark.parametrize(("form", "sentence"), FAULTS)
def test_fault_comes_back_with_its_sentence_and_what_was_typed(
    team: Team, anna: Client, form: dict[str, str], sentence: str
) -> None:
    answer = anna.post(PAGE, form)
    assert answer.status_code == 422
    page = answer.content.decode()
    assert sentence in page
    assert "<script>alert" not in page
    assert not SummarizerSettings.objects.exists()


def test_what_somebody_else_saved_meanwhile_is_not_overwritten(team: Team, anna: Client) -> None:
    change_settings(team, SettingsChange(daily_cap_usd="7"), by=make_user("olga"))
    answer = anna.post(PAGE, make_form(daily_cap_usd="9"))
    assert answer.status_code == 409
    page = answer.content.decode()
    assert "olga changed these settings in the meantime" in page
    assert 'value="9"' in page
    assert find_settings(team).daily_cap_usd == Decimal(7)
    assert anna.post(PAGE, make_form(daily_cap_usd="9", stamp=find_settings(team).stamp)).status_code == 302
    assert find_settings(team).daily_cap_usd == Decimal(9)


def test_todays_spending_is_shown_with_what_is_left(team: Team, anna: Client) -> None:
    now = timezone.now()
    reserve(team, Decimal(2), Decimal(5), now=now)
    settle(team, now=now, released_usd=Decimal("1.5"), spent_usd=Decimal("1.25"))
    page = read(anna, PAGE)
    for figure in ("$1.25", "$0.50", "$5.00", "$3.25"):
        assert figure in page
    assert ask(anna, "teams/harbour/summarizer")["today"] == {
        "day": str(now.date()),
        "spent_usd": "1.25000000",
        "reserved_usd": "0.50000000",
    }


def test_page_takes_few_queries_whatever_was_set(team: Team, anna: Client) -> None:
    before = count_queries(anna, PAGE)
    prices = {f"model-{number}": ("1", "2", "", "", "") for number in range(20)}
    change_settings(team, SettingsChange(own_prices=prices), by=make_user("anna"))
    assert count_queries(anna, PAGE) <= before


@pytest.mark.parametrize("name", ["mia", "vera"])
def test_lower_roles_see_neither_page_nor_tab(team: Team, name: str) -> None:
    client = sign_in(name)
    assert client.get(PAGE).status_code == 403
    assert "summarizer" not in read(client, "/teams/harbour/")
    assert client.post(PAGE, {"act": "key", "key": KEY}).status_code == 403
    assert not SummarizerSettings.objects.exists()


def test_endpoint_changes_only_what_it_is_given(team: Team, anna: Client) -> None:
    status, answer = patch(anna, daily_cap_usd="3.5", own_prices={"mine": {"input": "1", "output": "2.50"}})
    assert status == 200
    assert (Decimal(answer["daily_cap_usd"]), answer["small_model"]) == (Decimal("3.5"), "claude-haiku-5-5")
    assert answer["own_prices"] == {
        "mine": {"input": "1", "output": "2.5", "write_5m": None, "write_1h": None, "read": None}
    }
    status, answer = patch(anna, key=KEY, small_model="none")
    assert (answer["has_key"], answer["key_hint"], answer["small_model"]) == (True, "…wxyz", "")
    assert Decimal(answer["daily_cap_usd"]) == Decimal("3.5")
    assert patch(anna, key="")[1]["has_key"] is False


def test_endpoint_refuses_with_sentences_and_changes_nothing(team: Team, anna: Client) -> None:
    assert patch(anna, daily_cap_usd="-1") == (
        422,
        {"detail": "Enter a cap from 0 to 100,000."},
    )
    status, answer = patch(anna, daily_cap_usd="8", key="short")
    assert (status, answer["detail"][:17]) == (422, "Invalid API key: ")
    assert find_settings(team).daily_cap_usd == Decimal(5), "all of it or nothing"
    assert patch(anna, cap="8")[0] == 422

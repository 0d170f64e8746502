"""The page and the endpoints of a team's webhooks: who sees them, the secret shown once, tried, switched, removed."""

import json
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from dashboard.hooks.sending import SendFailed
from dashboard.hooks.webhooks import MOST_WEBHOOKS, note_failed
from dashboard.models import AuditEvent, Membership, Team, Webhook
from tests.builders import make_team
from tests.fakes.raw_upstream import RawUpstream
from tests.visitors import read, sign_in

pytestmark = pytest.mark.django_db
PAGE, API = "/teams/harbour/webhooks/", "/api/v1/teams/harbour/webhooks"
WISH: dict[str, Any] = {"name": "bot", "url": "https://hooks.example/x", "events": ["PreCompact", "RunFailed"]}


@pytest.fixture
def team() -> Team:
    make_team("Marina", owner="charlie")
    return make_team("Harbour", owner="olga", admin="anna", member="ben")


@pytest.fixture
def anna(team: Team) -> Client:
    assert team.pk
    return sign_in("anna")


def test_secret_is_shown_once(anna: Client) -> None:
    assert "No webhooks yet" in read(anna, PAGE)
    page = anna.post(PAGE, WISH).content.decode()
    assert "Copy the secret of bot now" in page
    assert "plw_" in page
    again = read(anna, PAGE)
    assert "plw_" not in again
    assert "https://hooks.example/x" in again
    event = AuditEvent.objects.get(action="webhook added")
    assert event.details == {"host": "hooks.example", "events": ["PreCompact", "RunFailed"], "words": "not sent"}


@pytest.mark.parametrize(
    ("wish", "words"),
    [
        ({"url": "https://10.0.0.1/"}, "private network"),
        ({"url": "http://hooks.example/"}, "The URL must start with https"),
        ({"events": []}, "required"),
        ({"name": ""}, "required"),
        ({"name": "taken"}, "A webhook named taken already exists"),
    ],
)
def test_what_cannot_be_added_is_told_and_kept_in_the_form(
    team: Team, anna: Client, wish: dict[str, Any], words: str
) -> None:
    Webhook.objects.create(team=team, name="taken", url="https://hooks.example/", sealed_secret=b"")
    answered = anna.post(PAGE, {**WISH, **wish})
    assert answered.status_code == 422
    assert words in answered.content.decode()
    assert Webhook.objects.count() == 1


def test_words_need_somebody_who_may_read_them(team: Team, anna: Client) -> None:
    assert 'name="sends_words"' not in read(anna, PAGE)
    anna.post(PAGE, {**WISH, "sends_words": "on"})
    assert not Webhook.objects.get().sends_words
    refused = anna.post(API, {**WISH, "name": "b", "sends_words": True}, content_type="application/json")
    assert (refused.status_code, "access to the content of all sessions" in refused.json()["detail"]) == (409, True)
    Membership.objects.filter(team=team, user__username="anna").update(content_grant=True)
    assert 'name="sends_words"' in read(anna, PAGE)
    made = anna.post(API, {**WISH, "name": "b", "sends_words": True}, content_type="application/json")
    assert (made.status_code, made.json()["details"]["sends_words"]) == (201, True)


def test_webhooks_of_a_team_have_an_end(team: Team, anna: Client) -> None:
    for number in range(MOST_WEBHOOKS):
        Webhook.objects.create(team=team, name=str(number), url="https://hooks.example/", sealed_secret=b"")
    assert "at most 10 webhooks" in anna.post(PAGE, WISH).content.decode()


def test_others_do_not_know_of_it(team: Team) -> None:
    webhook = Webhook.objects.create(team=team, name="bot", url="https://hooks.example/", sealed_secret=b"")
    for name, status in (("charlie", 404), ("ben", 403)):
        client = sign_in(name)
        for act in ("", f"{webhook.pk}/test/", f"{webhook.pk}/switch/", f"{webhook.pk}/remove/"):
            assert client.post(PAGE + act).status_code == status
    marina = sign_in("charlie").post(f"/teams/marina/webhooks/{webhook.pk}/remove/")
    assert (marina.status_code, Webhook.objects.count()) == (404, 1)


@pytest.mark.django_db(transaction=True)
def test_webhook_is_tried_switched_and_removed(anna: Client, receiver: RawUpstream) -> None:
    made = anna.post(API, {**WISH, "url": receiver.url}, content_type="application/json").json()["details"]
    tried = anna.post(f"{API}/{made['id']}/test").json()
    assert tried == {"is_taken": True, "status": 200, "problem": ""}
    assert json.loads(receiver.requests[0].body)["event"] == "Test"
    receiver.script = lambda asked: asked.answer(b"", status="500 Broken")
    page = anna.post(f"{PAGE}{made['id']}/test/", follow=True).content.decode()
    assert "bot failed. The response was HTTP 500." in page
    note_failed(Webhook.objects.get(), SendFailed("The response was HTTP 500."), event="RunFailed", now=timezone.now())
    assert "2 failures in a row" in read(anna, PAGE)
    anna.post(f"{PAGE}{made['id']}/switch/", {"active": "no"})
    assert not Webhook.objects.get().is_active
    anna.patch(f"{API}/{made['id']}", {"is_active": True}, content_type="application/json")
    assert Webhook.objects.get().is_active
    assert anna.delete(f"{API}/{made['id']}").status_code == 204
    told = list(AuditEvent.objects.filter(action__startswith="webhook").values_list("action", flat=True))
    assert told == ["webhook added", "webhook switched", "webhook switched", "webhook removed"]

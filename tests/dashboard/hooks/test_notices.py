"""Notices come with their cause or not at all, are tried five times, and say no words of a session."""

import hashlib
import hmac
import json
from datetime import timedelta
from typing import Any

import pytest
from django.db import transaction
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from dashboard.hooks.notices import tell_crossing
from dashboard.hooks.webhooks import WebhookWish, add_webhook
from dashboard.jobs.perform import perform_due
from dashboard.models import (
    AgentSession,
    HookEvent,
    Job,
    JobState,
    LineCrossing,
    RunCallback,
    Scope,
    Team,
    TeamPolicy,
    Webhook,
)
from dashboard.runs.choices import RunChoices
from dashboard.runs.start import cancel_run, start_run
from tests.builders import make_key, make_user
from tests.dashboard.hooks.conftest import Resolver
from tests.dashboard.runs import scripted
from tests.dashboard.runs.scripted import Script
from tests.dashboard.runs.world import give_key, make_harbour, person, record_session, run_now
from tests.fakes.raw_upstream import RawUpstream

pytestmark = pytest.mark.django_db(transaction=True)
NOTICES = [event for event in HookEvent if not event.is_question]


@pytest.fixture
def team() -> Team:
    return make_harbour()


@pytest.fixture
def session(team: Team) -> AgentSession:
    return record_session(team)


@pytest.fixture
def secret(team: Team, receiver: RawUpstream) -> str:
    wish = WebhookWish(name="bot", url=f"{receiver.url}/in", events=NOTICES)
    return add_webhook(person("alice"), team, wish, by=make_user("alice"))[1]


@pytest.fixture
def _scripted(team: Team, settings: Settings) -> None:
    TeamPolicy.objects.create(team=team, version=1, stores_content=True)
    give_key(team)
    settings.PAID_SUMMARIZER = "tests.dashboard.runs.scripted.open_scripted"
    scripted.script = Script()


def check_signature(secret: str, seen: Any) -> None:
    at, _, signature = seen.header("Plimsoll-Signature").partition(",v1=")
    expected = hmac.new(secret.encode(), at.removeprefix("t=").encode() + b"." + seen.body, hashlib.sha256)
    assert signature == expected.hexdigest()


def test_end_of_a_run_is_told_once_and_signed(session: AgentSession, receiver: RawUpstream, secret: str) -> None:
    run = run_now(session, RunChoices(instructions="Keep the chart."))
    (seen,) = receiver.requests
    check_signature(secret, seen)
    body = json.loads(seen.body)
    assert (seen.target, body["event"], body["team"]) == ("/in", "RunFinished", "harbour")
    assert (body["run"]["id"], body["run"]["state"], body["run"]["after_tokens"]) == (run.pk, "done", run.after_tokens)
    assert body["run"]["messages_url"].endswith(f"/api/v1/runs/{run.pk}/messages")
    assert seen.header("Plimsoll-Event-Id") == body["id"]
    assert "lighthouse" not in str(body) + str(Job.objects.values_list("payload", flat=True))
    assert "Keep the chart." not in str(body)
    assert Job.objects.get(kind="deliver_notice").state == JobState.DONE


def test_failure_is_told_and_a_cancelled_run_is_not(session: AgentSession, receiver: RawUpstream, secret: str) -> None:
    assert secret
    run = start_run(person("alice"), session, RunChoices(), source="api", now=timezone.now())
    cancel_run(person("alice"), run, now=timezone.now())
    perform_due()
    assert receiver.requests == []
    Webhook.objects.update(events=[*NOTICES, "PreCompact"])
    receiver.script = lambda asked: asked.answer(b'{"decision": "block", "reason": "No."}')
    run_now(session)
    assert [seen.header("Plimsoll-Event") for seen in receiver.requests] == ["PreCompact", "RunFailed"]
    assert json.loads(receiver.requests[1].body)["run"]["failure_code"] == "blocked_by_hook"


def test_notice_is_tried_five_times_with_growing_pauses_under_one_id(
    session: AgentSession, receiver: RawUpstream, secret: str
) -> None:
    assert secret
    receiver.script = lambda asked: asked.answer(b"", status="503 Busy")
    run_now(session)
    pauses = []
    for attempt in range(1, 5):
        job = Job.objects.get(kind="deliver_notice")
        assert (job.state, job.attempts, job.last_error) == (JobState.QUEUED, attempt, "The response was HTTP 503.")
        assert job.due_at is not None
        pauses.append(round((job.due_at - timezone.now()).total_seconds(), -1))
        Job.objects.filter(pk=job.pk).update(due_at=timezone.now() - timedelta(seconds=1))
        perform_due()
    assert pauses == [10, 60, 300, 1800]
    job.refresh_from_db()
    assert (job.state, len(receiver.requests)) == (JobState.FAILED, 5)
    assert len({seen.header("Plimsoll-Event-Id") for seen in receiver.requests}) == 1
    webhook = Webhook.objects.get()
    assert (webhook.failure_count, webhook.last_status) == (5, 503)


def test_refused_address_is_not_tried_again(session: AgentSession, receiver: RawUpstream, secret: str) -> None:
    assert secret
    Webhook.objects.update(url="https://169.254.169.254/")
    run_now(session)
    job = Job.objects.get(kind="deliver_notice")
    assert (job.state, job.attempts, receiver.requests) == (JobState.FAILED, 1, [])
    assert "private network" in job.last_error


def test_notice_of_what_was_rolled_back_is_never_sent(session: AgentSession, secret: str) -> None:
    assert secret
    made = {"team": session.team, "session": session, "used_tokens": 9, "line_tokens": 8, "answer": "suggest"}
    with transaction.atomic():
        tell_crossing(LineCrossing.objects.create(**made))
        assert Job.objects.filter(kind="deliver_notice").exists()
        transaction.set_rollback(True)
    assert not Job.objects.filter(kind="deliver_notice").exists()


def test_crossed_line_is_told_when_it_is_noted(session: AgentSession, receiver: RawUpstream, secret: str) -> None:
    assert secret
    AgentSession.objects.update(context_tokens=9_000, auto_line_tokens=8_000, last_at=timezone.now())
    Job.objects.create(kind="answer_crossing", key="x", team=session.team, payload={"session": session.pk})
    perform_due()
    (seen,) = receiver.requests
    body = json.loads(seen.body)
    assert (body["event"], body["used_tokens"], body["line_tokens"]) == ("LineCrossed", 9_000, 8_000)
    assert (body["answer"], body["session"]["external_id"]) == ("suggest", session.external_id)


def test_removed_webhook_gets_nothing_that_waited(session: AgentSession, receiver: RawUpstream, secret: str) -> None:
    assert secret
    receiver.script = lambda asked: asked.answer(b"", status="500 Broken")
    run_now(session)
    Webhook.objects.all().delete()
    Job.objects.filter(kind="deliver_notice").update(due_at=None)
    perform_due()
    assert Job.objects.get(kind="deliver_notice").state == JobState.DONE
    assert len(receiver.requests) == 1


def ask(team: Team, **body: object) -> tuple[int, Any]:
    key = make_key(team, make_user("mia"), Scope.COMPACT)[1]
    talk = [
        {"role": role, "content": f"{turn} of the chart. " * 50} for turn in range(6) for role in ("user", "assistant")
    ]
    sent = {"model": "claude-haiku-4-5", "kind": "full", "summarizer": "claude", "messages": talk, **body}
    answered = Client().post(
        "/api/v1/compact", sent, content_type="application/json", headers={"Authorization": f"Bearer {key}"}
    )
    return answered.status_code, answered.json()


@pytest.mark.usefixtures("_scripted")
@pytest.mark.parametrize("given", ["", "a secret of the caller's"])
def test_callback_is_told_signed_when_the_run_of_messages_ends(team: Team, receiver: RawUpstream, given: str) -> None:
    status, started = ask(team, callback_url=f"{receiver.url}/done", callback_secret=given)
    assert status == 202, started
    assert started["callback_secret"] == given or (not given and started["callback_secret"].startswith("plw_"))
    assert receiver.requests == []
    perform_due()
    (seen,) = receiver.requests
    check_signature(started["callback_secret"], seen)
    body = json.loads(seen.body)
    assert (seen.target, body["event"]) == ("/done", "RunEnded")
    assert (body["run"]["id"], body["run"]["state"]) == (started["run"], "done")
    callback = RunCallback.objects.get()
    assert (callback.last_status, callback.delivered_at is not None) == (200, True)
    assert started["callback_secret"].encode() not in bytes(callback.sealed_secret)


@pytest.mark.usefixtures("_scripted")
def test_callback_of_a_cancelled_run_is_told_too(team: Team, receiver: RawUpstream) -> None:
    started = ask(team, callback_url=receiver.url)[1]
    run = RunCallback.objects.get().run
    assert run.pk == started["run"]
    cancel_run(person("alice"), run, now=timezone.now())
    perform_due()
    assert json.loads(receiver.requests[0].body)["run"]["state"] == "cancelled"


def test_hostile_callback_is_refused_before_anything_is_kept(
    team: Team, resolver: Resolver, connects: list[Any]
) -> None:
    for url in ("http://hooks.example/", "https://127.0.0.1/", "https://u:p@hooks.example/", "https://2130706433/"):
        status, told = ask(team, callback_url=url)
        assert (status, bool(told["detail"])) == (422, True)
    assert (AgentSession.objects.count(), resolver.asked, connects) == (0, [], [])

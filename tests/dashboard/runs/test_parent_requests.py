"""A summary asked for behind the last request that passed the proxy: it reads that request's cache, or says why not."""

import time
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone
from pytest_django import Settings

from dashboard.models import CapturedRequest, RunState, SummarizerName, TeamPolicy
from dashboard.runs.choices import RunChoices
from dashboard.runs.parent_requests import COLD, NOT_CACHED, NOT_CAPTURED, NOT_KEPT, SWITCHED_OFF
from dashboard.runs.preview import preview_run
from tests.dashboard.runs.machine import SECRET
from tests.dashboard.runs.sailing import BETAS, VERSION, Sailor, make_sailor
from tests.dashboard.runs.scripted import Script
from tests.dashboard.runs.world import run_now
from tests.fakes.messages_api import MessagesApi

pytestmark = pytest.mark.django_db(transaction=True)
CLAUDE = RunChoices(summarizer=SummarizerName.CLAUDE)


@pytest.fixture
def sailor(messages_api: MessagesApi, script: Script, settings: Settings) -> Sailor:
    assert script is not None  # stands for a model elsewhere; here the fake API does
    return make_sailor(messages_api, settings)


def talk(sailor: Sailor) -> Sailor:
    for turn in range(3):
        sailor.say(f"Turn {turn}: draw basin {turn}. " + "The harbour is wide and the chart is long. " * 400)
    return sailor


def preview_refusal(sailor: Sailor, **changes: Any) -> tuple[str | None, str]:
    if changes:
        CapturedRequest.objects.update(**changes)
    preview = preview_run(sailor.session, CLAUDE, now=timezone.now())
    assert preview.refusals == ()
    return preview.path, preview.fork_refusal


def test_summary_behind_the_last_request_reads_its_cache(sailor: Sailor) -> None:
    talk(sailor)
    assert preview_refusal(sailor) == ("fork", "")
    run = run_now(sailor.session, CLAUDE)
    assert (run.state, run.failure_sentence) == (RunState.DONE, "")
    attempt = run.attempts.order_by("number")[0]
    assert (attempt.path, attempt.model, attempt.failure_code) == ("fork", "claude-opus-5", "")
    assert attempt.hit_percent is not None
    assert attempt.hit_percent > 50, (attempt.read_tokens, attempt.input_tokens, attempt.write_5m_tokens)
    asked = next(kept for kept in reversed(sailor.api.requests) if "system" in kept.body)
    assert asked.headers["anthropic-version"] == VERSION
    assert asked.headers["anthropic-beta"] == BETAS.replace(" ", "")
    assert asked.body["tools"] == sailor.client.body()["tools"]


REASONS: dict[str, tuple[dict[str, Any], str]] = {
    "cold": ({"ttl": "5m", "at": timezone.now() - timedelta(minutes=6)}, COLD),
    "without markers": ({"ttl": ""}, NOT_CACHED),
    "too large": ({"body": None, "refusal": "too large"}, NOT_KEPT["too large"]),
    "of another thread": ({"agent_id": "a1"}, NOT_CAPTURED),
}


@pytest.mark.parametrize("name", REASONS)
def test_preview_says_why_the_last_request_is_not_repeated(sailor: Sailor, name: str) -> None:
    talk(sailor)
    changes, sentence = REASONS[name]
    assert preview_refusal(sailor, **changes) == ("plain", sentence)


def test_team_may_forbid_it(sailor: Sailor) -> None:
    talk(sailor)
    sailor.team.summarizer_settings.allows_fork = False
    sailor.team.summarizer_settings.save()
    assert preview_refusal(sailor) == ("plain", SWITCHED_OFF)


def test_request_with_a_secret_is_not_kept(sailor: Sailor) -> None:
    talk(sailor)
    sailor.say(f"The key is {SECRET}.")
    captured = CapturedRequest.objects.get()
    assert (captured.body, captured.refusal) == (None, "redacted")
    assert preview_refusal(sailor) == ("plain", NOT_KEPT["redacted"])


def test_team_that_stores_numbers_only_keeps_no_request(sailor: Sailor) -> None:
    TeamPolicy.objects.update(stores_content=False)
    talk(sailor)
    assert not CapturedRequest.objects.exists()


def test_request_that_comes_late_does_not_replace_the_newest(sailor: Sailor) -> None:
    talk(sailor)
    newest = CapturedRequest.objects.get()
    sailor.client.now = time.time() - 4_000
    sailor.client.messages = sailor.client.messages[:2]
    sailor.tell(sailor.client.call("Again", "msg_late"))
    assert CapturedRequest.objects.get(session=newest.session).call_id == newest.call_id

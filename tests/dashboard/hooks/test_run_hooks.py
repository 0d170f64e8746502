"""What hooks may do to a run, and what they cannot: they add, they block, and in no other way do they stop it."""

import json
import logging
import threading
import time
from collections.abc import Callable, Mapping
from importlib.metadata import EntryPoint
from typing import Any

import pytest
from django.db import connection, transaction
from pytest_django import Settings

from dashboard.hooks import python_hooks, sending
from dashboard.hooks.webhooks import WebhookWish, add_webhook
from dashboard.models import (
    AgentSession,
    AuditEvent,
    CompactionRun,
    HookEvent,
    Job,
    RunState,
    SummarizerName,
    Team,
    Webhook,
)
from dashboard.runs.choices import RunChoices
from dashboard.runs.outcomes import read_outcome
from tests.builders import make_user
from tests.dashboard.runs import scripted
from tests.dashboard.runs.world import give_key, make_harbour, person, record_session, run_now
from tests.fakes.raw_upstream import Connection, RawUpstream
from tests.visitors import read, sign_in

pytestmark = pytest.mark.django_db(transaction=True)
QUESTIONS = [event for event in HookEvent if event.is_question]
called: list[tuple[str, Mapping[str, object]]] = []


@pytest.fixture
def team() -> Team:
    return make_harbour()


@pytest.fixture
def session(team: Team) -> AgentSession:
    return record_session(team)


def add(team: Team, url: str, events: list[HookEvent] = QUESTIONS, **wish: Any) -> str:
    """The secret."""
    wanted = WebhookWish(**{"name": "bot", "url": url, "events": events, **wish})
    return add_webhook(person("alice"), team, wanted, by=make_user("alice"))[1]


def answering(**answers: object) -> Callable[[Connection], None]:
    """By event; bytes are sent as they are."""

    def answer(asked: Connection) -> None:
        said = answers.get(str(asked.seen.header("Plimsoll-Event")), b"")
        asked.answer(said if isinstance(said, bytes) else json.dumps(said).encode())

    return answer


def test_hooks_add_instructions_texts_and_a_message(team: Team, session: AgentSession, receiver: RawUpstream) -> None:
    receiver.script = answering(
        PreCompact={"instructions": "Keep the tides.", "systemMessage": "The bot was here."},
        SessionStart={"hookSpecificOutput": {"additionalContext": "The branch is frozen."}},
        PostCompact={"additionalContext": f"Use {'ghp_' + 'a1B2' * 9}."},
    )
    add(team, receiver.url)
    run = run_now(session, RunChoices(instructions="Keep the chart."))
    assert (run.state, run.failure_sentence) == (RunState.DONE, "")
    stored = read_outcome(run)
    assert stored.display_messages == ("The bot was here.",)
    told = [(item.name, item.state) for item in stored.restored if item.kind == "hook_result"]
    assert told == [("SessionStart: bot", "restored"), ("PostCompact: bot", "restored")]
    lines = "".join(str(entry.raw or entry) for entry in stored.entries)
    assert "The branch is frozen." in lines
    assert "ghp_" not in lines + json.dumps(run.hook_notes)
    assert "[redacted:" in json.dumps(run.hook_notes)
    assert [(note["event"], note["state"]) for note in run.hook_notes] == [(each, "answered") for each in QUESTIONS]
    assert [seen.header("Plimsoll-Event") for seen in receiver.requests] == QUESTIONS
    webhook = Webhook.objects.get()
    assert (webhook.last_event, webhook.last_status, webhook.last_error) == ("PostCompact", 200, "")
    assert not Job.objects.filter(kind="deliver_notice").exists()  # asked, not told
    page = read(sign_in("alice"), f"/runs/{run.pk}/")
    for words in ("Keep the tides.", "The bot was here.", "Returned instructions and a message for users."):
        assert words in page
    assert "Keep the tides." not in read(sign_in("vera"), f"/runs/{run.pk}/")


def test_added_instructions_reach_the_summariser_behind_the_persons_own(
    team: Team, session: AgentSession, receiver: RawUpstream, settings: Settings
) -> None:
    settings.PAID_SUMMARIZER = "tests.dashboard.runs.scripted.open_scripted"
    scripted.script = scripted.Script()
    give_key(team)
    receiver.script = answering(PreCompact={"instructions": "Keep the tides."})
    add(team, receiver.url)
    run_now(session, RunChoices(instructions="Keep the chart.", summarizer=SummarizerName.CLAUDE))
    (asked,) = scripted.script.requests
    assert "Keep the chart.\n\nKeep the tides." in asked.prompt


def test_hook_blocks_with_a_reason(team: Team, session: AgentSession, receiver: RawUpstream) -> None:
    receiver.script = answering(PreCompact={"decision": "block", "reason": "A release is under way."})
    add(team, receiver.url)
    run = run_now(session)
    assert (run.state, run.failure_code) == (RunState.FAILED, "blocked_by_hook")
    assert "A release is under way." in run.failure_sentence
    assert [note["state"] for note in run.hook_notes] == ["blocked"]
    page = read(sign_in("alice"), f"/runs/{run.pk}/")
    assert "Blocked the compaction." in page


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (b"not json", "not JSON"),
        (b"[1, 2]", "not a JSON object"),
        (b'{"instructions": 7}', "something else than a text as instructions"),
        (b"[" * 60_000, "not JSON"),
        (b"x" * 2**20, "larger than 64 KiB"),
        (b"\xff\xfe{", "not JSON"),
    ],
)
def test_bad_answer_is_noted_and_the_run_goes_on(
    team: Team, session: AgentSession, receiver: RawUpstream, said: bytes, told: str
) -> None:
    receiver.script = answering(PreCompact=said)
    add(team, receiver.url, [HookEvent.PRE_COMPACT])
    run = run_now(session)
    assert run.state == RunState.DONE
    assert [note["state"] for note in run.hook_notes] == ["failed"]
    assert told in run.hook_notes[0]["told"]


def test_silence_ends_after_its_time_is_asked_once_and_holds_no_transaction(
    team: Team, session: AgentSession, receiver: RawUpstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    held: list[bool] = []
    real = sending.Sending.wait

    def wait(self: sending.Sending) -> Any:
        self._give_up_at = time.monotonic() + 0.2
        held.append(connection.in_atomic_block)
        return real(self)

    monkeypatch.setattr(sending.Sending, "wait", wait)
    over = threading.Event()

    def say_nothing(_asked: Connection) -> None:
        over.wait(20)

    receiver.script = say_nothing
    add(team, receiver.url, [HookEvent.PRE_COMPACT], name="one")
    add(team, receiver.url, [HookEvent.PRE_COMPACT], name="two")
    run = run_now(session)
    over.set()
    assert run.state == RunState.DONE
    assert [note["told"] for note in run.hook_notes] == [
        "No response within 5 seconds. The run continued without it."
    ] * 2
    assert held == [False, False]
    assert len(receiver.requests) == 2  # no retry
    assert set(Webhook.objects.values_list("failure_count", flat=True)) == {1}


def test_refused_target_and_closed_port_do_not_stop_a_run(
    team: Team, session: AgentSession, receiver: RawUpstream
) -> None:
    add(team, receiver.url, [HookEvent.PRE_COMPACT])
    Webhook.objects.update(url="https://169.254.169.254/")
    run = run_now(session)
    assert run.state == RunState.DONE
    assert "private network" in run.hook_notes[0]["told"]
    Webhook.objects.update(sealed_secret=b"\x01spoilt")
    assert "cannot be read" in run_now(session).hook_notes[0]["told"]


def test_words_are_sent_only_where_somebody_who_may_read_them_said_so(
    team: Team, session: AgentSession, receiver: RawUpstream
) -> None:
    add(team, receiver.url, name="numbers")
    add(team, receiver.url, name="switched off")
    Webhook.objects.filter(name="switched off").update(is_active=False)
    run_now(session, RunChoices(instructions="Keep the chart."))
    bodies = [json.loads(seen.body) for seen in receiver.requests]
    assert len(bodies) == 3
    assert not any("summary" in body or "custom_instructions" in body for body in bodies)
    assert bodies[0] | {"id": ""} == {
        "event": "PreCompact",
        "id": "",
        "team": "harbour",
        "hook_event_name": "PreCompact",
        "run": CompactionRun.objects.get().pk,
        "session_id": session.external_id,
        "trigger": "manual",
    }
    assert bodies[1]["source"] == "compact"
    receiver.requests.clear()
    Webhook.objects.filter(name="numbers").update(sends_words=True)
    run_now(session, RunChoices(instructions="Keep the chart."))
    bodies = [json.loads(seen.body) for seen in receiver.requests]
    assert bodies[0]["custom_instructions"] == "Keep the chart."
    assert "lighthouse" in bodies[2]["summary"]


def answer_in_python(event: str, call: dict[str, object]) -> dict[str, object] | None:
    called.append((event, call))
    return {"instructions": "From Python."} if event == "PreCompact" else None


def raise_in_python(_event: str, _call: dict[str, object]) -> None:
    raise RuntimeError("secret words")


def sleep_in_python(_event: str, _call: dict[str, object]) -> None:
    time.sleep(0.6)


def test_python_functions_are_called_the_same_way_and_cannot_stop_a_run(
    session: AgentSession, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    found = [
        EntryPoint(name, f"{__name__}:{function}", python_hooks.GROUP)
        for name, function in [
            ("a", "answer_in_python"),
            ("b", "raise_in_python"),
            ("c", "sleep_in_python"),
            ("d", "missing"),
        ]
    ]
    monkeypatch.setattr(python_hooks, "entry_points", lambda group: found if group == python_hooks.GROUP else [])
    monkeypatch.setattr(python_hooks, "LIMIT_SECONDS", 0.2)
    called.clear()
    with caplog.at_level(logging.ERROR):
        run = run_now(session)
    assert run.state == RunState.DONE
    assert [event for event, _ in called] == QUESTIONS
    assert "lighthouse" in str(called[1][1]["summary"])
    first = [note for note in run.hook_notes if note["event"] == "PreCompact"]
    assert [note["state"] for note in first] == ["answered", "failed", "failed", "failed"]
    assert first[0]["words"] == "From Python."
    assert "Raised RuntimeError" in first[1]["told"]
    assert "No response within" in first[2]["told"]
    assert "Raised AttributeError" in first[3]["told"]
    assert "secret words" not in json.dumps(run.hook_notes)
    time.sleep(0.5)  # the sleeper of the last question must not outlive the database of this test


def test_secret_is_sealed_and_in_no_log_answer_or_audit(
    team: Team, session: AgentSession, receiver: RawUpstream, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG):
        secret = add(team, receiver.url + "/path-secret")
        run_now(session)
        listed = sign_in("alice").get("/api/v1/teams/harbour/webhooks").content.decode()
        page = read(sign_in("alice"), "/teams/harbour/webhooks/")
    logged = "\n".join(str(record.__dict__) for record in caplog.records)
    audited = json.dumps(list(AuditEvent.objects.values_list("details", flat=True)))
    assert secret.startswith("plw_")
    for text in (listed, page, logged, audited, str(bytes(Webhook.objects.get().sealed_secret))):
        assert secret not in text
    assert "path-secret" not in logged + audited
    with transaction.atomic():
        assert Webhook.objects.get().sealed_secret

"""Runs that the API compacts by itself, against a fake of it: both forms, the signed block, money, errors, refusals."""

import json
from decimal import Decimal
from typing import Any

import pytest
from anthropic import Anthropic, BadRequestError
from django.utils import timezone
from pytest_django import Settings

from compaction.llm.table import MODELS, Model
from dashboard.models import AgentSession, NativeForm, RunKind, RunState, SummarizerName
from dashboard.runs.choices import RunChoices
from dashboard.runs.native_requests import find_obstacles
from dashboard.runs.preview import preview_run
from dashboard.runs.resume import download_resumed, read_messages
from dashboard.runs.revisions import revise_summary
from dashboard.runs.settings_changes import SettingsChange, change_settings, set_key
from tests.dashboard.runs.scripted import Script
from tests.dashboard.runs.world import make_harbour, record_session, run_now, write_talk
from tests.fakes import replies
from tests.fakes.messages_api import MessagesApi
from tests.fakes.native_compaction import ON_DEMAND_BETA, THRESHOLD_BETA, sign_block
from tests.fakes.replies import Reply, refuse
from tests.recorded_talk import RecordedTalk
from tests.visitors import ask, read, sign_in

pytestmark = pytest.mark.django_db(transaction=True)
KEY = "sk-ant-api03-key-of-the-harbour-0000"
MODEL = "claude-sonnet-5-5"
NATIVE = RunChoices(summarizer=SummarizerName.NATIVE, model=MODEL)
WORDS = "Basins 0 to 3 are drawn.\n\n\n\nThe lighthouse\x00 module 灯台 stays as it is."
CODES = [
    *("compaction_block_ambiguous", "compaction_block_misplaced", "compaction_content_mismatch"),
    *("compaction_incomplete_turn", "compaction_nothing_to_summarize", "compaction_signature_invalid"),
    *("compaction_too_many_tool_references", "compaction_tool_changes_mismatch"),
]


@pytest.fixture
def session(messages_api: MessagesApi, script: Script, settings: Settings) -> AgentSession:
    settings.ANTHROPIC_BASE_URL, messages_api.known_key = messages_api.url, KEY
    team = make_harbour()
    set_key(team, KEY, by=None)
    change_settings(team, SettingsChange(native_form=NativeForm.ON_DEMAND), by=None)
    return record_session(team)


def prefer_threshold(session: AgentSession) -> None:
    change_settings(session.team, SettingsChange(native_form=NativeForm.THRESHOLD), by=None)


def make_long_talk() -> RecordedTalk:
    talk = RecordedTalk("long")
    for turn in range(4):
        talk.ask(f"Turn {turn}: draw basin {turn}. " + "The harbour is wide. " * 4000)
        talk.reply(f"long-{turn}", read=28_000 * (turn + 1), written=900)
    return talk


def send_back(api: MessagesApi, messages: list[Any], beta: str = ON_DEMAND_BETA) -> None:
    """What an agent does with the result, through the SDK."""
    with Anthropic(api_key=KEY, base_url=api.url, max_retries=0) as client:
        client.beta.messages.create(
            model=MODEL, max_tokens=100, betas=[beta], messages=[*messages, {"role": "user", "content": "Go on."}]
        )


def test_block_is_kept_as_it_came_stands_first_and_is_taken_back(
    messages_api: MessagesApi, session: AgentSession
) -> None:
    messages_api.script(Reply(text=WORDS))
    run = run_now(session, NATIVE)
    assert (run.state, run.failure_sentence) == (RunState.DONE, "")
    [asked] = messages_api.messages
    assert asked.headers["anthropic-beta"] == ON_DEMAND_BETA
    assert asked.body["compaction"] == {"type": "summarize"}
    assert "context_management" not in asked.body
    assert "system" not in asked.body
    assert "Primary Request and Intent" not in json.dumps(asked.body), "the server asks with a prompt of its own"
    first, *rest = read_messages(run, None)
    assert first["role"] == "assistant"
    assert first["content"] == [sign_block(WORDS)]
    assert list(first["content"][0]) == list(sign_block(WORDS)), "no field is moved"
    assert all("compaction" not in str(message["content"])[:40] for message in rest)
    send_back(messages_api, [first, *rest])
    revision = run.revisions.get()
    assert revision.missing_sections == []
    assert "Basins 0 to 3 are drawn." in revision.text


def test_tokens_and_cost_are_summed_over_the_iterations(messages_api: MessagesApi, session: AgentSession) -> None:
    run = run_now(session, NATIVE)
    [attempt] = run.attempts.all()
    assert (attempt.path, attempt.model) == ("on_demand", MODEL)
    assert attempt.input_tokens > 1000
    assert attempt.output_tokens > 10
    assert (
        attempt.cost_usd == run.spent_usd == Decimal(attempt.input_tokens * 2 + attempt.output_tokens * 10) / 1_000_000
    )


def test_instructions_bring_a_whole_prompt_since_they_replace_the_servers(
    messages_api: MessagesApi, session: AgentSession
) -> None:
    run = run_now(session, RunChoices(summarizer=SummarizerName.NATIVE, model=MODEL, instructions="Keep the basins."))
    told = messages_api.messages[0].body["compaction"]["instructions"]
    assert "Keep the basins." in told
    assert "Primary Request and Intent" in told
    assert run.state == RunState.DONE


def test_conversation_up_to_a_message_goes_on_behind_the_block(
    messages_api: MessagesApi, session: AgentSession
) -> None:
    talk = make_long_talk()
    long = record_session(session.team, talk)
    pivot = json.loads(talk.data.splitlines()[4])["uuid"]
    run = run_now(long, RunChoices(kind=RunKind.UP_TO, summarizer=SummarizerName.NATIVE, model=MODEL, pivot_uuid=pivot))
    assert (run.state, run.failure_sentence) == (RunState.DONE, "")
    messages = read_messages(run, None)
    assert messages[0]["content"][0]["type"] == "compaction"  # type: ignore[index]
    assert run.kept_count > 0
    send_back(messages_api, messages)


def test_threshold_form_triggers_at_the_least_it_may_and_stops_there(
    messages_api: MessagesApi, session: AgentSession
) -> None:
    prefer_threshold(session)
    run = run_now(record_session(session.team, make_long_talk()), NATIVE)
    assert (run.state, run.failure_sentence) == (RunState.DONE, "")
    [asked] = messages_api.messages
    assert asked.headers["anthropic-beta"] == THRESHOLD_BETA
    [edit] = asked.body["context_management"]["edits"]
    assert (edit["type"], edit["pause_after_compaction"]) == ("compact_20260112", True)
    assert edit["trigger"] == {"type": "input_tokens", "value": 50_000}
    assert asked.body["messages"][-1]["role"] == "user"
    assert read_messages(run, None)[0]["content"][0]["type"] == "compaction"  # type: ignore[index]
    assert [attempt.path for attempt in run.attempts.all()] == ["threshold"]


def test_threshold_that_was_not_reached_is_a_paid_failure(messages_api: MessagesApi, session: AgentSession) -> None:
    prefer_threshold(session)
    messages_api.script(replies.NOT_COMPACTED)
    run = run_now(record_session(session.team, make_long_talk()), NATIVE)
    assert (run.state, run.failure_code) == (RunState.FAILED, "not_compacted")
    assert run.spent_usd > 0


@pytest.mark.parametrize("code", CODES)
def test_error_codes_are_told_apart_and_not_tried_again(
    messages_api: MessagesApi, session: AgentSession, code: str
) -> None:
    messages_api.script(refuse(400, "invalid_request_error", "no", error_code=code))
    run = run_now(session, NATIVE)
    assert (run.state, run.failure_code) == (RunState.FAILED, code)
    assert run.attempts.count() == 1
    assert run.reserved_usd == 0


def test_unavailable_compaction_is_tried_once_more(
    messages_api: MessagesApi, session: AgentSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dashboard.runs.claude.Limits.wait_seconds", 0.0)
    messages_api.script(replies.COMPACTION_UNAVAILABLE)
    run = run_now(session, NATIVE)
    assert run.state == RunState.DONE
    assert [each.failure_code for each in run.attempts.order_by("number")] == ["compaction_unavailable", ""]


def test_block_without_content_is_an_empty_summary(messages_api: MessagesApi, session: AgentSession) -> None:
    messages_api.script(replies.NULL_BLOCK)
    run = run_now(session, NATIVE)
    assert (run.state, run.failure_code) == (RunState.FAILED, "no_summary")
    assert run.spent_usd > 0


def refusals(session: AgentSession, **choices: Any) -> list[str]:
    asked = RunChoices(**{"summarizer": SummarizerName.NATIVE, "model": MODEL, **choices})
    return [each.code for each in preview_run(session, asked, now=timezone.now()).refusals]


def test_what_the_api_would_refuse_is_refused_before_it_costs(session: AgentSession) -> None:
    assert refusals(session) == []
    assert refusals(session, model="claude-haiku-4-5") == ["native_model"]
    pivot = json.loads(write_talk().data.splitlines()[2])["uuid"]
    assert refusals(session, kind=RunKind.FROM, pivot_uuid=pivot) == ["native_kind"]
    prefer_threshold(session)
    assert refusals(session) == ["native_too_small"]
    change_settings(session.team, SettingsChange(native_form=NativeForm.OFF), by=None)
    assert refusals(session) == ["native_off"]


@pytest.mark.parametrize(("model", "row"), MODELS.items())
def test_models_that_the_api_does_not_compact_are_refused(model: str, row: Model) -> None:
    obstacles = [
        code for code, _ in find_obstacles(NativeForm.ON_DEMAND, RunKind.FULL, model=model, sent_tokens=60_000)
    ]
    assert obstacles == ([] if row.has_api_compaction else ["native_model"])


def test_edited_words_go_on_without_the_block(messages_api: MessagesApi, session: AgentSession) -> None:
    run = run_now(session, NATIVE)
    revise_summary(run, "Only basin 2 counts.", by=None, now=timezone.now())
    messages = read_messages(run, None)
    assert messages[0]["role"] == "user"
    assert "Only basin 2 counts." in str(messages[0])
    assert read_messages(run, 1)[0]["content"][0]["type"] == "compaction"  # type: ignore[index]


def test_transcript_holds_the_words_of_the_block_and_no_block(messages_api: MessagesApi, session: AgentSession) -> None:
    messages_api.script(Reply(text="All basins are drawn."))
    run = run_now(session, NATIVE)
    data = download_resumed(run, None, by=None, now=timezone.now()).data
    assert b"All basins are drawn." in data
    assert b'"compaction"' not in data
    assert b"signature" not in data


def test_form_offers_it_only_where_the_team_has_switched_it_on(
    messages_api: MessagesApi, session: AgentSession
) -> None:
    alice, url = sign_in("alice"), f"/sessions/{session.pk}/compact/"
    assert 'value="native"' in read(alice, url)
    assert ask(alice, "teams/harbour/summarizer")["native_form"] == "on_demand"
    run = run_now(session, NATIVE)
    page = read(alice, f"/runs/{run.pk}/")
    assert "A transcript for Claude Code cannot carry it" in page
    assert "on_demand" in page
    told = ask(alice, f"runs/{run.pk}/messages")
    assert told["messages"][0]["content"][0]["type"] == "compaction"
    body = {"native_form": "off"}
    alice.patch("/api/v1/teams/harbour/summarizer", body, content_type="application/json")
    assert 'value="native"' not in read(alice, url)
    log = read(alice, "/teams/harbour/audit/")
    assert "compaction by the API itself: on demand to off" in log


WRONG = [
    ({"compaction": {"type": "summarize"}}, "", "claude-sonnet-5-5", "Extra inputs"),
    ({"compaction": {"type": "summarize"}}, ON_DEMAND_BETA, "claude-haiku-4-5", "not supported"),
    (
        {"compaction": {"type": "summarize"}, "context_management": {"edits": [{"type": "compact_20260112"}]}},
        f"{ON_DEMAND_BETA},{THRESHOLD_BETA}",
        MODEL,
        "cannot be combined",
    ),
    ({"context_management": {"edits": [{"type": "compact_20260112"}]}}, "", MODEL, "does not match"),
]


@pytest.mark.parametrize(("wish", "betas", "model", "told"), WRONG)
def test_fake_refuses_what_the_documents_rule_out(
    messages_api: MessagesApi, wish: dict[str, Any], betas: str, model: str, told: str
) -> None:
    with (
        Anthropic(api_key=KEY, base_url=messages_api.url, max_retries=0) as client,
        pytest.raises(BadRequestError, match=told),
    ):
        client.post(
            "/v1/messages",
            cast_to=object,
            body={"model": model, "max_tokens": 10, "messages": [{"role": "user", "content": "Hello."}], **wish},
            options={"headers": {"anthropic-beta": betas}},
        )


def test_fake_takes_only_a_block_that_is_as_it_signed_it(messages_api: MessagesApi) -> None:
    messages_api.known_key = KEY
    good = sign_block("All is well.")
    send_back(messages_api, [{"role": "assistant", "content": [good]}])
    for bad in ({**good, "content": "All is lost."}, {**good, "signature": ""}, {**good, "tool_changes": None}):
        with pytest.raises(BadRequestError):
            send_back(messages_api, [{"role": "assistant", "content": [bad]}])

"""Sessions with missing lines: bridged and said, and compacted only when a person confirms what does not add up."""

import json
from collections.abc import Iterable
from dataclasses import replace

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone
from pytest_django import Settings

from dashboard.ingest.stored_entries import read_thread
from dashboard.jobs.perform import perform_due
from dashboard.management.commands import compact
from dashboard.models import AgentSession, CompactionRun, ObservedCompaction, RunKind, RunState, Team
from dashboard.runs.choices import RunChoices, RunRefused
from dashboard.runs.missing_lines import DIFFERS, LINE_MISSING
from dashboard.runs.preview import preview_run
from dashboard.runs.start import start_automatic_run, start_run
from tests.dashboard.runs.world import make_harbour, person, record_session, run_now
from tests.recorded_talk import RecordedTalk
from tests.visitors import ask, read, sign_in

pytestmark = pytest.mark.django_db(transaction=True)
TURNS = 8
CONFIRM = "Compact the stored messages anyway"


def write_long_talk(name: str) -> RecordedTalk:
    """Eight turns of two lines and 5,000 tokens each, behind a prefix of 20,000."""
    talk = RecordedTalk(name)
    for turn in range(TURNS):
        talk.ask(f"Turn {turn}: never touch the lighthouse module. " + "depth " * 2500)
        talk.reply(f"{name}-{turn}", read=20_000 + 5_000 * turn, written=5_000)
    return talk


def drop_turns(talk: RecordedTalk, turns: Iterable[int]) -> RecordedTalk:
    """The same without the lines of these turns, as if they had never been written."""
    gone = {2 * turn + number for turn in turns for number in (0, 1)}
    talk.lines = [line for number, line in enumerate(talk.lines) if number not in gone]
    return talk


@pytest.fixture
def team() -> Team:
    return make_harbour()


@pytest.fixture
def hole(team: Team) -> AgentSession:
    """One turn is missing: what is left adds up."""
    return record_session(team, drop_turns(write_long_talk("hole"), [3]))


@pytest.fixture
def short(team: Team) -> AgentSession:
    """Most of it is missing."""
    return record_session(team, drop_turns(write_long_talk("short"), range(1, 6)))


def test_a_missing_line_is_said_and_swallows_nothing(hole: AgentSession) -> None:
    alice = sign_in("alice")
    page = read(alice, f"/sessions/{hole.pk}/context/")
    assert "At least one line of this conversation is missing" in page
    assert 'id="difference"' not in page
    inside = ask(alice, f"sessions/{hole.pk}/context")["inside"]
    assert (inside["gap_count"], inside["found_tokens"]) == (1, None)
    assert "At least one line of this conversation is missing" in read(alice, f"/sessions/{hole.pk}/compact/")

    run = run_now(hole)
    assert (run.state, run.summarised_count, run.gap_count, run.found_tokens) == ("done", 2 * TURNS - 2, 1, None)
    text = run.revisions.get().text
    assert "Turn 0" in text
    assert "Turn 7" in text
    assert "At least one line of this conversation is missing" in read(alice, f"/runs/{run.pk}/")


def test_a_whole_session_is_not_warned_of(team: Team) -> None:
    session = record_session(team, write_long_talk("whole"))
    page = read(sign_in("alice"), f"/sessions/{session.pk}/context/")
    assert 'id="missing-lines"' not in page
    assert 'id="difference"' not in page
    preview = preview_run(session, RunChoices(), now=timezone.now())
    assert not {DIFFERS, LINE_MISSING} & {each.code for each in (*preview.warnings, *preview.refusals)}
    run = run_now(session)
    assert (run.state, run.gap_count, run.found_tokens, run.accepts_difference) == ("done", 0, None, False)


@pytest.mark.parametrize("kind", [RunKind.FULL, RunKind.UP_TO])
def test_what_does_not_add_up_is_refused_until_it_is_confirmed(short: AgentSession, kind: RunKind) -> None:
    choices = RunChoices(kind=kind, pivot_uuid=read_thread(short).entries[-2].uuid or "")
    with pytest.raises(RunRefused) as refused:
        start_run(person("alice"), short, choices, source="api", now=timezone.now())
    figures = refused.value.figures
    assert refused.value.code == DIFFERS
    assert (figures["context_tokens"], figures["missing_lines"]) == (60_043, 1)
    assert 30_000 < figures["found_tokens"] < 45_000  # type: ignore[operator]
    run = run_now(short, replace(choices, accept_difference=True))
    assert (run.state, run.found_tokens, run.accepts_difference) == ("done", figures["found_tokens"], True)


def test_the_context_page_says_what_does_not_add_up(short: AgentSession) -> None:
    alice = sign_in("alice")
    page = read(alice, f"/sessions/{short.pk}/context/")
    assert "The context in use is 60,043 tokens, but what is stored of it adds up to ~" in page
    inside = ask(alice, f"sessions/{short.pk}/context")["inside"]
    assert inside["found_tokens"] == inside["estimated_tokens"] < 45_000


def test_the_page_asks_for_the_confirmation_and_the_server_insists(short: AgentSession) -> None:
    alice, url = sign_in("alice"), f"/sessions/{short.pk}/compact/"
    page = read(alice, url)
    assert CONFIRM in page
    assert "disabled" not in page.split('id="start"')[1].split(">")[0]
    choices = {"kind": "full", "summarizer": "extractive", "agent_id": "", "act": "start"}
    refused = alice.post(url, choices)
    assert refused.status_code == 409
    assert CONFIRM in refused.content.decode()
    assert not CompactionRun.objects.exists()

    started = alice.post(url, choices | {"accept_difference": "on"})
    assert started.status_code == 302
    perform_due()
    run = CompactionRun.objects.get()
    assert (run.state, run.accepts_difference) == (RunState.DONE, True)
    assert "That was confirmed by alice" in read(alice, f"/runs/{run.pk}/")
    assert CONFIRM in read(alice, f"{url}?again={run.pk}")
    assert "checked" not in read(alice, f"{url}?again={run.pk}").split('name="accept_difference"')[1].split(">")[0]


def test_the_api_names_the_field_that_is_missing(short: AgentSession) -> None:
    alice, path = sign_in("alice"), f"/api/v1/sessions/{short.pk}/runs"
    preview = alice.post(f"{path}/preview", "{}", content_type="application/json").json()
    assert [each["code"] for each in preview["refusals"]] == [DIFFERS]
    assert preview["warnings"][0]["code"] == LINE_MISSING
    refused = alice.post(path, "{}", content_type="application/json")
    assert (refused.status_code, refused.json()["code"]) == (409, DIFFERS)
    assert "`accept_difference`: true" in refused.json()["detail"]
    started = alice.post(path, '{"accept_difference": true}', content_type="application/json")
    assert (started.status_code, started.json()["accepts_difference"]) == (201, True)


def test_the_command_refuses_without_its_option(
    short: AgentSession, settings: Settings, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    settings.LOCAL_MODE = False
    monkeypatch.setattr(compact, "TAKE_AFTER_SECONDS", 0.0)
    with pytest.raises(CommandError, match="--accept-difference"):
        call_command("compact", short.external_id, "--as", "alice", "--json")
    assert json.loads(capsys.readouterr().out)["error"]["code"] == DIFFERS
    call_command("compact", short.external_id, "--as", "alice", "--accept-difference")
    assert CompactionRun.objects.get().state == RunState.DONE


def test_automatic_mode_does_not_confirm(short: AgentSession) -> None:
    with pytest.raises(RunRefused) as refused:
        start_automatic_run(short, RunChoices(), now=timezone.now())
    assert refused.value.code == DIFFERS
    assert "adds up to ~" in refused.value.sentence


def test_what_was_not_confirmed_when_the_run_was_started_is_not_made(short: AgentSession) -> None:
    """The conversation went on between the start and the worker."""
    run = start_run(person("alice"), short, RunChoices(accept_difference=True), source="api", now=timezone.now())
    CompactionRun.objects.update(accepts_difference=False)
    perform_due()
    run.refresh_from_db()
    assert (run.state, run.failure_code, run.outcome) == (RunState.FAILED, DIFFERS, None)
    assert "confirm it there" in read(sign_in("alice"), f"/runs/{run.pk}/")


def test_an_observed_compaction_says_that_a_line_was_missing_before_it(team: Team) -> None:
    talk = write_long_talk("compacted")
    talk.compact(before=65_000)
    talk.reply("compacted-after", read=20_000, written=4_000)
    session = record_session(team, drop_turns(talk, [3]))
    compaction = ObservedCompaction.objects.get(session=session)
    alice = sign_in("alice")
    assert "At least one line of this conversation is missing" in read(alice, f"/compactions/{compaction.pk}/")
    found = ask(alice, f"compactions/{compaction.pk}")
    assert (found["gap_count"], sum(fate["messages"] for fate in found["fates"])) == (1, 2 * TURNS - 2)
    page = read(alice, f"/sessions/{session.pk}/context/")
    assert 'id="missing-lines"' not in page  # it has left the context

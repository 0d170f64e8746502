"""`plimsoll compact`: previewed, run and told in the terminal, also where no worker runs."""

import json
from decimal import Decimal
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from pytest_django import Settings

from dashboard.management.commands import compact
from dashboard.models import AgentSession, CompactionRun, RunState
from tests.dashboard.runs.machine import make_machine
from tests.dashboard.runs.test_predicted_losses import add_run
from tests.dashboard.runs.world import give_key, make_harbour, record_session, write_talk

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def session(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> AgentSession:
    settings.LOCAL_MODE = False
    monkeypatch.setattr(compact, "TAKE_AFTER_SECONDS", 0.0)
    return record_session(make_harbour())


def type_command(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    call_command("compact", *arguments, "--as", "alice")
    return capsys.readouterr().out


def test_run_is_performed_here_when_nobody_else_does(session: AgentSession, capsys: pytest.CaptureFixture[str]) -> None:
    told = type_command(capsys, session.external_id[:8])
    run = CompactionRun.objects.get()
    assert (run.state, run.source, run.started_by_name) == (RunState.DONE, "cli", "alice")
    assert f"full compaction of {session.external_id}: done." in told
    assert "24 messages summarised, 0 kept, 0 dropped." in told
    assert "Retained: ~100% (estimated); 0 lost items." in told
    assert "6. All User Messages:" in told


def test_json_is_one_object(session: AgentSession, capsys: pytest.CaptureFixture[str]) -> None:
    told = json.loads(type_command(capsys, str(session.pk), "--json"))
    assert (told["state"], told["session"], told["retained_percent"]) == ("done", session.external_id, "100.0")
    assert told["audit"]["parts"][0]["part"] == "requirements"
    assert {part["retained_percent"] for part in told["audit"]["parts"]} == {"100.0"}


def test_preview_starts_nothing(session: AgentSession, capsys: pytest.CaptureFixture[str]) -> None:
    give_key(session.team)
    told = type_command(capsys, session.external_id, "--summarizer", "claude", "--preview")
    assert "24 summarised, 0 kept, 0 dropped" in told
    assert "claude-haiku-4-5 about $0.0" in told
    as_json = json.loads(type_command(capsys, session.external_id, "--preview", "--json"))
    assert as_json["before_tokens"] == 11_943
    assert not CompactionRun.objects.exists()
    assert "no earlier compactions to predict from" in told
    for number in range(5):
        add_run(session, f"{70 + number}.0", 9 - number)
    told = type_command(capsys, session.external_id, "--summarizer", "claude", "--preview")
    assert "5 to 9 things lost (median 7), retained ~70% to ~74%, seen in 5 earlier compactions" in told


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["nothing-like-this"], "Session nothing-like-this not found."),
        (["SESSION", "--kind", "from"], "Choose the message to compact from or up to."),
        (["SESSION", "--kind", "micro-size"], "nothing would be saved"),
        (["SESSION", "--summarizer", "claude"], "No API key is configured"),
    ],
)
def test_what_cannot_be_done_is_one_sentence(session: AgentSession, arguments: list[str], sentence: str) -> None:
    typed = [session.external_id if word == "SESSION" else word for word in arguments]
    with pytest.raises(CommandError) as refused:
        call_command("compact", *typed, "--as", "alice")
    assert sentence in str(refused.value)


def test_on_a_server_somebody_must_be_named(session: AgentSession) -> None:
    with pytest.raises(CommandError, match="--as NAME"):
        call_command("compact", session.external_id)
    with pytest.raises(CommandError, match="Session"):
        call_command("compact", session.external_id, "--as", "charlie")
    with pytest.raises(CommandError, match="permission to run compactions"):
        call_command("compact", session.external_id, "--as", "vera")


def test_failure_tells_what_was_kept_and_what_to_do(session: AgentSession, capsys: pytest.CaptureFixture[str]) -> None:
    give_key(session.team, daily_cap_usd=Decimal(5))
    AgentSession.objects.update(has_content=True)
    run_script_that_refuses()
    with pytest.raises(CommandError) as failed:
        type_command(capsys, session.external_id, "--summarizer", "claude")
    assert "refused to summarise" in str(failed.value)
    assert "The session is as it was" in str(failed.value)
    assert "Choose another model" in str(failed.value)


def run_script_that_refuses() -> None:
    from tests.dashboard.runs import scripted

    scripted.script.steps = [scripted.answer(stop="refusal")]


def test_result_is_written_beside_the_original_with_the_command_that_goes_on(
    tmp_path: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(compact, "TAKE_AFTER_SECONDS", 0.0)
    machine = make_machine(tmp_path, settings)
    followed = machine.follow_talk(write_talk())
    told = type_command(capsys, followed.external_id, "--write")
    (written,) = set(machine.root.glob("*/*.jsonl")) - {machine.keep(write_talk())}
    assert f"Written to {written}." in told
    assert f"cd {followed.project_path} && claude --resume {written.stem}" in told


def test_write_is_refused_before_the_run_where_no_file_can_be_written(
    session: AgentSession, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(CommandError, match="does not run on the machine of this session"):
        type_command(capsys, session.external_id, "--write", "--json")
    assert json.loads(capsys.readouterr().out)["error"]["code"] == "no_original"
    assert not CompactionRun.objects.exists()


@pytest.mark.parametrize("reason", ["imported", "unwritable"])
def test_write_of_a_session_without_a_writable_folder_starts_no_run(
    tmp_path: Path,
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    reason: str,
) -> None:
    machine = make_machine(tmp_path, settings)
    if reason == "imported":
        session, code = record_session(machine.team, write_talk("imported")), "no_original"
    else:
        session, code = machine.follow_talk(write_talk()), "cannot_write"
        monkeypatch.setattr("os.access", lambda *_, **__: False)  # tests may run as root, who may write anywhere
    with pytest.raises(CommandError) as refused:
        type_command(capsys, session.external_id, "--write", "--json")
    printed = json.loads(capsys.readouterr().out)
    assert printed == {"error": {"code": code, "detail": str(refused.value)}}
    assert refused.value.returncode != 0
    assert not CompactionRun.objects.exists()


def test_result_that_cannot_be_written_after_all_is_printed_with_the_error(
    tmp_path: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(compact, "TAKE_AFTER_SECONDS", 0.0)
    machine = make_machine(tmp_path, settings)
    session = machine.follow_talk(write_talk())

    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("dashboard.runs.resumed_files.create_file", refuse)
    with pytest.raises(CommandError, match=r"Run \d+ is done, but"):
        type_command(capsys, session.external_id, "--write", "--json")
    printed = json.loads(capsys.readouterr().out)
    assert (printed["state"], printed["error"]["code"]) == ("done", "cannot_write")
    assert CompactionRun.objects.get().state == RunState.DONE


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["nothing-like-this"], "no_such_session"),
        (["SESSION", "--kind", "from"], "pivot_missing"),
        (["SESSION", "--summarizer", "claude"], "no_key"),
    ],
)
def test_json_is_printed_for_errors_too(
    session: AgentSession, capsys: pytest.CaptureFixture[str], arguments: list[str], code: str
) -> None:
    typed = [session.external_id if word == "SESSION" else word for word in arguments]
    with pytest.raises(CommandError):
        type_command(capsys, *typed, "--json")
    assert json.loads(capsys.readouterr().out)["error"]["code"] == code


def test_preview_without_a_model_says_that_nothing_is_sent(
    session: AgentSession, capsys: pytest.CaptureFixture[str]
) -> None:
    told = type_command(capsys, session.external_id, "--preview")
    assert "24 summarised, 0 kept, 0 dropped" in told
    assert "sent           nothing, no model is used" in told
    as_json = json.loads(type_command(capsys, session.external_id, "--preview", "--json"))
    assert (as_json["path"], as_json["messages_sent"], as_json["sent_tokens"]) == ("", 0, 0)
    assert "losses         nothing lost, retained ~100%, exact for this preview" in told
    assert (as_json["losses"]["source"], as_json["losses"]["lost_count"]) == ("dry_run", 0)
    assert "note: The context would not get smaller" in told
    assert "Nothing saved: the result is not smaller." in type_command(capsys, session.external_id)

"""From a finished run to a session that goes on: written beside the original, downloaded, taken back, come in again."""

import os
import shlex
import signal
import stat
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest
from django.core.management import call_command
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from pytest_django import Settings

from dashboard import access
from dashboard.ingest.intake import Origin, take_in
from dashboard.ingest.observed import Piece
from dashboard.models import (
    AgentSession,
    ApiCall,
    AuditAction,
    AuditEvent,
    CompactionRun,
    Membership,
    ResumedFile,
    RunKind,
    Scope,
)
from dashboard.runs.choices import RunRefused
from dashboard.runs.client_commands import write_resume_command
from dashboard.runs.original_lines import ANOTHER, GONE, NOT_FOLLOWED, NOT_LOCAL, read_originals
from dashboard.runs.resume import download_resumed, write_beside
from dashboard.runs.resumed_files import forget_missing, look_at, undo_resumed_file
from dashboard.runs.revisions import revise_summary
from dashboard.runs.watched_places import FileState, WatchedPlace, name_draft
from tests.builders import make_key, make_user
from tests.dashboard.ingest.conversation import Conversation
from tests.dashboard.runs.machine import PROJECT, SECRET, Machine, compact, make_machine, read_lines
from tests.dashboard.runs.world import record_session, write_talk
from tests.session_rows import make_run
from tests.visitors import read, sign_in

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def machine(tmp_path: Path, settings: Settings) -> Machine:
    return make_machine(tmp_path, settings)


@pytest.fixture
def talk() -> Conversation:
    talk = write_talk(turns=6)
    talk.ask(f"The key is {SECRET}, keep it.")
    talk.answer("secret-1", read=16_000, written=10)
    return talk


@pytest.fixture
def session(machine: Machine, talk: Conversation) -> AgentSession:
    return machine.follow_talk(talk)


@pytest.fixture
def run(session: AgentSession, talk: Conversation) -> CompactionRun:
    return compact(session, RunKind.UP_TO, pivot_uuid=read_lines(talk.data)[-3]["uuid"])


def write(run: CompactionRun) -> ResumedFile:
    return write_beside(run, None, by=make_user("alice"), now=timezone.now())


# --- written beside the original -------------------------------------------------------------------------------------


def test_it_is_written_beside_the_original_which_stays_as_it_is(
    machine: Machine, run: CompactionRun, talk: Conversation
) -> None:
    original = machine.root / PROJECT / f"{talk.session_id}.jsonl"
    before = (original.read_bytes(), original.stat())
    row = write(run)
    assert (original.read_bytes(), original.stat().st_mtime_ns) == (before[0], before[1].st_mtime_ns)
    path = Path(row.path)
    assert path == machine.root / PROJECT / f"{row.external_id}.jsonl"
    assert (path.stat().st_size, stat.S_IMODE(path.stat().st_mode)) == (row.size_bytes, 0o600)
    assert look_at(row) is FileState.UNCHANGED
    assert (row.run, row.origin, row.revision_number) == (run, run.session, 1)
    assert {line["sessionId"] for line in read_lines(path.read_bytes())} == {row.external_id}


def test_kept_messages_come_with_the_secrets_that_the_store_does_not_have(run: CompactionRun) -> None:
    assert SECRET.encode() in Path(write(run).path).read_bytes()


def test_twice_makes_two_sessions(run: CompactionRun) -> None:
    assert write(run).external_id != write(run).external_id


def test_an_edited_summary_is_written(run: CompactionRun) -> None:
    revise_summary(run, "1. All of it, told anew.", by=make_user("alice"), now=timezone.now())
    row = write(run)
    assert row.revision_number == 2
    assert b"told anew" in Path(row.path).read_bytes()
    first = write_beside(run, 1, by=None, now=timezone.now())
    assert b"told anew" not in Path(first.path).read_bytes()


def test_a_micro_compaction_is_written_whole(machine: Machine, session: AgentSession, talk: Conversation) -> None:
    row = write(compact(session, RunKind.MICRO_IDLE))
    lines = read_lines(Path(row.path).read_bytes())
    assert row.revision_number == 0
    assert len(lines) == len(talk.lines) + 1
    assert lines[-1]["subtype"] == "microcompact_boundary"


def test_a_sub_agent_is_written_where_the_client_looks_for_sessions(machine: Machine, session: AgentSession) -> None:
    agent = write_talk("charting", turns=3)
    agent.lines = [line.replace(b'"isSidechain":false', b'"isSidechain":true,"agentId":"a1"') for line in agent.lines]
    path = machine.root / PROJECT / session.external_id / "subagents" / "agent-a1.jsonl"
    path.parent.mkdir(parents=True)
    path.write_bytes(agent.data.replace(agent.session_id.encode(), session.external_id.encode()))
    machine.follow()
    from_agent = compact(session)
    CompactionRun.objects.filter(pk=from_agent.pk).update(agent_id="a1")
    from_agent.refresh_from_db()
    row = write(from_agent)
    assert Path(row.path).parent == machine.root / PROJECT


# --- where it cannot be written --------------------------------------------------------------------------------------


def test_it_is_written_only_where_the_session_is_followed(
    machine: Machine, run: CompactionRun, settings: Settings
) -> None:
    files_before = set(machine.root.rglob("*"))
    uploaded = compact(record_session(machine.team, write_talk("uploaded")))
    assert read_originals(uploaded.session).refusal == NOT_FOLLOWED
    settings.FOLLOW_ROOTS = ()
    assert read_originals(run.session).refusal == NOT_FOLLOWED
    settings.LOCAL_MODE = False
    assert read_originals(run.session).refusal == NOT_LOCAL
    for each in (run, uploaded):
        with pytest.raises(RunRefused) as refused:
            write(each)
        assert refused.value.code == "no_original"
    assert not ResumedFile.objects.exists()
    assert set(machine.root.rglob("*")) == files_before


def test_another_file_under_the_same_name_is_not_used(machine: Machine, run: CompactionRun, talk: Conversation) -> None:
    original = machine.root / PROJECT / f"{talk.session_id}.jsonl"
    copy = original.with_name("copy")
    copy.write_bytes(original.read_bytes())
    original.unlink()
    assert read_originals(run.session).refusal == GONE
    copy.rename(original)  # another inode than was followed
    assert read_originals(run.session).refusal == ANOTHER
    with pytest.raises(RunRefused):
        write(run)


def test_a_folder_that_takes_no_file_leaves_no_row(run: CompactionRun, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("dashboard.runs.resumed_files.create_file", refuse)
    with pytest.raises(RunRefused, match="Permission denied"):
        write(run)
    assert not ResumedFile.objects.exists()


# --- taken back ------------------------------------------------------------------------------------------------------


def test_undo_removes_what_was_written_and_nothing_else(machine: Machine, run: CompactionRun) -> None:
    before = set(machine.root.rglob("*"))
    row = write(run)
    assert undo_resumed_file(row, by=None, now=timezone.now()) is FileState.UNCHANGED
    assert set(machine.root.rglob("*")) == before
    row.refresh_from_db()
    assert row.removed_at is not None
    assert undo_resumed_file(row, by=None, now=timezone.now()) is FileState.MISSING


@pytest.mark.parametrize(("change", "code"), [(b"one more line\n", "continued"), (None, "changed")])
def test_undo_leaves_a_session_in_which_somebody_went_on(run: CompactionRun, change: bytes | None, code: str) -> None:
    row = write(run)
    path = Path(row.path)
    path.write_bytes(path.read_bytes() + change if change else b"another file\n")
    with pytest.raises(RunRefused) as refused:
        undo_resumed_file(row, by=None, now=timezone.now())
    assert refused.value.code == code
    assert path.exists()
    row.refresh_from_db()
    assert row.removed_at is None


def test_undo_deletes_the_session_that_was_read_from_the_file(machine: Machine, run: CompactionRun) -> None:
    row = write(run)
    machine.follow()
    resumed = machine.find(row.external_id)
    page = reverse("session", args=[run.session.pk])
    assert "forked into" in read(sign_in("alice"), page)
    sign_in("alice").post(reverse("resume_undo", args=[row.pk]))
    assert not AgentSession.objects.filter(external_id=row.external_id).exists()
    assert "forked into" not in read(sign_in("alice"), page)
    machine.follow()
    assert not AgentSession.objects.filter(external_id=row.external_id).exists()
    assert AuditEvent.objects.get(action=AuditAction.SESSION_DELETED).subject == resumed.external_id
    assert access.deleted_sessions(access.person(make_user("anna")), machine.team.slug).count() == 0


def test_undo_before_the_file_was_read_leaves_no_session(machine: Machine, run: CompactionRun) -> None:
    row = write(run)
    data = Path(row.path).read_bytes()
    undo_resumed_file(row, by=None, now=timezone.now())
    machine.follow()
    assert not AgentSession.objects.filter(external_id=row.external_id).exists()
    # A follower that had read the file before it was removed delivers its lines only now.
    take_in(Origin(machine.team, make_user("alice"), "follow"), Piece(data, "late.jsonl", row.external_id))
    assert not AgentSession.objects.filter(external_id=row.external_id).exists()


@pytest.mark.parametrize("addition", ["source", "line", "run"])
def test_undo_is_refused_where_the_session_was_added_to_in_another_way(
    machine: Machine, run: CompactionRun, addition: str
) -> None:
    row = write(run)
    machine.follow()
    resumed = machine.find(row.external_id)
    if addition == "source":
        AgentSession.objects.filter(pk=resumed.pk).update(sources=["follow", "hook"])
    elif addition == "line":
        AgentSession.objects.filter(pk=resumed.pk).update(last_at=timezone.now())
    else:
        make_run(resumed)
    with pytest.raises(RunRefused) as refused:
        undo_resumed_file(row, by=None, now=timezone.now())
    assert refused.value.code == "continued"
    assert Path(row.path).exists()
    assert AgentSession.objects.filter(pk=resumed.pk).exists()


def test_undo_of_a_missing_file_keeps_a_session_that_went_on(machine: Machine, run: CompactionRun) -> None:
    row = write(run)
    continue_session(row)
    machine.follow()
    Path(row.path).unlink()
    assert undo_resumed_file(row, by=None, now=timezone.now()) is FileState.MISSING
    assert machine.find(row.external_id).turn_count == 2


def test_a_client_that_goes_on_after_an_undo_brings_the_session_back(machine: Machine, run: CompactionRun) -> None:
    row = write(run)
    machine.follow()
    undo_resumed_file(row, by=None, now=timezone.now() - timedelta(minutes=1))
    machine.follow()
    continue_session(row)
    machine.follow()
    resumed = machine.find(row.external_id)
    assert (resumed.forked_from, resumed.turn_count) == (run.session.external_id, 1)


def continue_session(row: ResumedFile) -> None:
    """Append a turn to the file, as its client does."""
    more = Conversation("more")
    more.session_id, more.now = row.external_id, timezone.now()
    more.ask("Go on.")
    with Path(row.path).open("ab") as file:
        file.write(more.data)


@pytest.mark.parametrize("stop_at", ["os.link", "os.unlink", "os.fsync"])
def test_a_process_killed_while_writing_leaves_a_whole_file_or_none(tmp_path: Path, stop_at: str) -> None:
    """Killed before the file has its name, between its two names, or before the folder is on the disk."""
    (tmp_path / "project").mkdir()
    program = (
        "import os, signal\n"
        "from dashboard.runs.watched_places import WatchedPlace, create_file\n"
        f"{stop_at} = lambda *a, **k: os.kill(os.getpid(), signal.SIGKILL)\n"
        f"create_file(WatchedPlace({str(tmp_path)!r}, 'project/new.jsonl'), b'x' * 99)\n"
    )
    killed = subprocess.run([sys.executable, "-c", program], check=False)
    assert killed.returncode == -signal.SIGKILL
    final = tmp_path / "project" / "new.jsonl"
    assert not final.exists() or final.read_bytes() == b"x" * 99


def test_what_a_killed_process_left_is_cleared_away_and_its_row_marked(machine: Machine, run: CompactionRun) -> None:
    missing, linked, kept = write(run), write(run), write(run)
    Path(missing.path).unlink()
    place = WatchedPlace(str(machine.root), f"{PROJECT}/{missing.external_id}.jsonl")
    for row in (missing, linked):
        draft = Path(place.folder) / name_draft(Path(row.path).name)
        if row is linked:
            os.link(row.path, draft)
            assert look_at(row) is None
        else:
            draft.write_bytes(b"half")
    assert forget_missing(now=timezone.now()) == 0  # somebody may still be writing
    assert forget_missing(now=timezone.now() + timedelta(hours=1)) == 1
    assert not list((machine.root / PROJECT).glob(".plimsoll-*"))
    for row, is_removed in ((missing, True), (linked, False), (kept, False)):
        row.refresh_from_db()
        assert (row.removed_at is not None) is is_removed
    assert look_at(linked) is FileState.UNCHANGED


# --- come in again ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [RunKind.FULL, RunKind.FROM, RunKind.MICRO_IDLE])
def test_a_resumed_session_knows_its_origin_and_counts_nothing_twice(
    machine: Machine, session: AgentSession, talk: Conversation, kind: RunKind
) -> None:
    pivot_uuid = read_lines(talk.data)[-2]["uuid"] if kind.needs_pivot else ""
    run = compact(session, kind, pivot_uuid=pivot_uuid)
    spent_usd = session.spent_usd
    for _ in range(3):  # whichever of the two ids sorts first
        row = write(run)
        machine.follow()
        resumed = machine.find(row.external_id)
        assert resumed.forked_from == session.external_id
        assert (resumed.call_count, resumed.spent_usd) == (0, 0)
        assert not ApiCall.objects.filter(session=resumed, is_counted=True).exists()
    session.refresh_from_db()
    assert session.spent_usd == spent_usd
    words = read(sign_in("alice"), reverse("session", args=[resumed.pk]))
    assert f"compaction run {run.pk}</a>" in words
    assert "resumed from" in words
    words = read(sign_in("alice"), reverse("session", args=[session.pk]))
    assert f"compaction run {run.pk}</a>" in words
    assert resumed.external_id[:12] in words


def test_a_resumed_session_knows_its_origin_when_it_is_imported(machine: Machine, session: AgentSession) -> None:
    """Without calls of its own it is written together with other new sessions."""
    row = write(compact(session))
    call_command("import", row.path, team=machine.team.slug, quiet=True)
    assert machine.find(row.external_id).forked_from == session.external_id


def test_the_origin_stays_known_when_more_lines_come(machine: Machine, run: CompactionRun) -> None:
    row = write(run)
    machine.follow()
    more = Conversation("more")
    more.session_id = row.external_id
    more.ask("Go on.")
    with Path(row.path).open("ab") as file:
        file.write(more.data)
    machine.follow()
    resumed = machine.find(row.external_id)
    assert (resumed.forked_from, resumed.turn_count) == (run.session.external_id, 2)


# --- pages and endpoints ---------------------------------------------------------------------------------------------


def test_the_page_writes_shows_the_command_and_takes_back(machine: Machine, run: CompactionRun) -> None:
    client = sign_in("alice")
    page = reverse("run", args=[run.pk])
    assert "Save as new session" in read(client, page)
    response = client.post(reverse("resume_write", args=[run.pk]))
    assert response.headers["Location"] == f"{page}#resume"
    row = ResumedFile.objects.get()
    words = read(client, page)
    assert f"cd /home/ann/harbour &amp;&amp; claude --resume {row.external_id}" in words
    assert "unchanged since it was saved" in words
    client.post(reverse("resume_undo", args=[row.pk]))
    assert not Path(row.path).exists()
    assert "unchanged since it was saved" not in read(client, page)


def test_the_page_says_when_redactions_stay(machine: Machine) -> None:
    talk = write_talk("pushed")
    talk.ask(f"The key is {SECRET}.")
    talk.answer("p-1", read=13_000, written=1)
    run = compact(record_session(machine.team, talk))
    words = read(sign_in("alice"), reverse("run", args=[run.pk]))
    assert NOT_FOLLOWED in words
    assert "secrets were taken out of 1 line of this session" in words
    assert "Write it beside" not in words


def test_a_download_is_the_same_session_every_time(machine: Machine, run: CompactionRun) -> None:
    client = sign_in("alice")
    first, second = (client.get(reverse("resume_download", args=[run.pk])) for _ in range(2))
    row = ResumedFile.objects.get()
    assert first.content == second.content
    assert first.headers["Content-Disposition"] == f'attachment; filename="{row.external_id}.jsonl"'
    assert (row.path, row.origin) == ("", run.session)
    with pytest.raises(RunRefused):
        undo_resumed_file(row, by=None, now=timezone.now())


def test_a_download_holds_secrets_only_for_the_person_whose_session_it_is(machine: Machine, run: CompactionRun) -> None:
    Membership.objects.filter(team=machine.team).update(content_grant=True)
    _, text = make_key(machine.team, make_user("alice"), Scope.READ, Scope.CONTENT)
    address = reverse("resume_download", args=[run.pk])
    by_key = Client().get(f"/api/v1/runs/{run.pk}/transcript", headers={"Authorization": f"Bearer {text}"})
    others = [by_key, *(sign_in(name).get(address) for name in ("vera", "anna"))]
    for response in others:
        assert response.status_code == 200
        assert b"The key is" in response.content
        assert SECRET.encode() not in response.content
    assert SECRET.encode() in sign_in("alice").get(address).content


def test_members_with_a_compact_key_write_and_take_back_over_the_api(machine: Machine, run: CompactionRun) -> None:
    _, text = make_key(machine.team, make_user("alice"), Scope.COMPACT)
    headers = {"Authorization": f"Bearer {text}"}
    client = Client()
    made = client.post(f"/api/v1/runs/{run.pk}/resume", {}, content_type="application/json", headers=headers)
    assert made.status_code == 201, made.content
    told = made.json()
    assert told["command"] == f"cd /home/ann/harbour && claude --resume {told['session']}"
    assert Path(told["path"]).stat().st_size == told["size_bytes"]
    assert client.get(f"/api/v1/runs/{run.pk}/messages", headers=headers).status_code == 403
    with Path(told["path"]).open("ab") as file:
        file.write(b"{}\n")
    refused = client.delete(f"/api/v1/resumed/{told['id']}", headers=headers)
    assert (refused.status_code, refused.json()["code"]) == (409, "continued")
    Path(told["path"]).unlink()
    assert client.delete(f"/api/v1/resumed/{told['id']}", headers=headers).status_code == 204


def test_other_agents_get_messages(machine: Machine, run: CompactionRun) -> None:
    _, text = make_key(machine.team, make_user("alice"), Scope.READ, Scope.CONTENT)
    Membership.objects.filter(user__username="alice").update(content_grant=True)
    headers = {"Authorization": f"Bearer {text}"}
    messages = Client().get(f"/api/v1/runs/{run.pk}/messages", headers=headers).json()["messages"]
    assert [message["role"] for message in messages[:2]] == ["user", "assistant"]
    assert "Summary:" in messages[0]["content"][0]["text"]
    transcript = Client().get(f"/api/v1/runs/{run.pk}/transcript", headers=headers)
    assert transcript.content == download_resumed(run, None, by=None, now=timezone.now()).data
    missing = Client().get(f"/api/v1/runs/{run.pk}/messages?revision=9", headers=headers)
    assert (missing.status_code, missing.json()["code"]) == (409, "no_such_revision")


def test_an_admin_without_the_grant_may_write_but_not_download(machine: Machine, run: CompactionRun) -> None:
    client = sign_in("anna")
    assert client.get(reverse("resume_download", args=[run.pk])).status_code == 403
    assert client.post(reverse("resume_write", args=[run.pk])).status_code == 302
    row = ResumedFile.objects.get()
    assert sign_in("mia").post(reverse("resume_undo", args=[row.pk])).status_code == 403
    assert sign_in("charlie").post(reverse("resume_undo", args=[row.pk])).status_code == 404
    assert Path(row.path).exists()


def test_a_run_without_a_result_cannot_be_taken_up(run: CompactionRun) -> None:
    CompactionRun.objects.filter(pk=run.pk).update(state="failed")
    client = sign_in("alice")
    assert client.get(reverse("resume_download", args=[run.pk])).status_code == 302
    assert client.post(reverse("resume_write", args=[run.pk])).status_code == 302
    assert not ResumedFile.objects.exists()


@pytest.mark.parametrize("cwd", ["/home/ann/my charts", "/tmp/$(reboot)", "/tmp/a;b", "/tmp/it's"])
def test_the_command_holds_one_folder_whatever_it_is_called(cwd: str) -> None:
    assert shlex.split(write_resume_command(cwd, "id")) == ["cd", cwd, "&&", "claude", "--resume", "id"]


@pytest.mark.parametrize("cwd", ["", "-rf", "charts/here", "/tmp/\x1b]0;x\x07", "/tmp/a\nreboot"])
def test_a_folder_that_could_do_something_to_a_terminal_is_left_out(cwd: str) -> None:
    assert write_resume_command(cwd, "id") == "claude --resume id"

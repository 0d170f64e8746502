"""`plimsoll import` beside what a team decides: content, deleted sessions, a policy that changes meanwhile."""

from dataclasses import replace
from pathlib import Path

import pytest
from django.core.management.base import CommandError
from django.db import DataError
from django.utils import timezone

from dashboard.accounts.local import ensure_local_owner
from dashboard.ingest import importing, intake
from dashboard.ingest.deleted_sessions import DELETED
from dashboard.ingest.import_tally import Tally
from dashboard.ingest.looks import FileLook
from dashboard.ingest.observed import ObservedSession
from dashboard.ingest.record import FollowUp, Recorded, Source, record
from dashboard.models import AgentSession, Drop, EntrySegment, FollowedFile, Team, User
from dashboard.policies.changes import change_policy
from dashboard.policies.in_force import find_policy
from dashboard.retention.deletion import allow_again, delete_session
from tests.dashboard.ingest.importing import OTHER, SESSION, make_calls, run_import, write_home

pytestmark = pytest.mark.django_db


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return write_home(tmp_path / ".claude")


def test_content_turned_on_later_is_filled_in_by_the_next_import(home: Path) -> None:
    owner = ensure_local_owner()
    team = Team.objects.get(is_local=True)
    change_policy(team, replace(find_policy(team), stores_content=False), by=owner, base_version=0)
    run_import(home)
    assert not AgentSession.objects.get().has_content
    assert run_import(home)["files_unchanged"] == 2
    change_policy(team, replace(find_policy(team), stores_content=True), by=owner, base_version=1)
    assert run_import(home)["files_unchanged"] == 0
    assert AgentSession.objects.get().has_content
    assert run_import(home)["files_unchanged"] == 2


def test_deleted_session_that_is_allowed_again_comes_back_with_the_next_import(home: Path) -> None:
    run_import(home)
    owner = User.objects.get()
    session = AgentSession.objects.get()
    delete_session(session, by=owner, now=timezone.now())
    told = run_import(home, reread=True)
    assert (told["sessions_new"], told["drops"]) == (0, {DELETED: 6})
    FollowedFile.objects.all().delete()
    assert run_import(home)["drops"] == {DELETED: 6}  # drawn before it was found to be deleted
    assert Drop.objects.get(reason=DELETED).count == 12
    allow_again(session.team, SESSION, by=owner)
    assert run_import(home)["calls_new"] == 5


def test_session_that_no_database_takes_is_told_and_takes_no_other_along(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that is not drawn before it is written, as when files are read again."""
    (tmp_path / f"{OTHER}.jsonl").write_bytes(make_calls(1, session=OTHER))

    def refuse_one(source: Source, observed: ObservedSession, follow_up: FollowUp | None = None) -> Recorded:
        if observed.external_id == SESSION:
            raise DataError("out of range")
        return record(source, observed, follow_up)

    monkeypatch.setattr(intake, "record", refuse_one)
    with pytest.raises(CommandError, match=rf"^Session {SESSION} cannot be stored \(out of range\)\.$"):
        run_import(home, tmp_path, reread=True)
    assert [session.external_id for session in AgentSession.objects.all()] == [OTHER]
    monkeypatch.undo()
    assert run_import(home, tmp_path)["calls_new"] == 5


@pytest.mark.parametrize("reread", [False, True], ids=["drawn", "not drawn"])
def test_policy_changed_meanwhile_holds_for_what_is_not_written_yet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, reread: bool
) -> None:
    names = [f"{number}1111111-2222-4333-8444-555555555555" for number in range(4)]
    for name in names:
        (tmp_path / f"{name}.jsonl").write_bytes(make_calls(1, 2, session=name))
    owner = ensure_local_owner()
    team = Team.objects.get(is_local=True)

    def add_and_change_policy(tally: Tally, look: FileLook) -> None:
        if find_policy(team).version == 0:
            change_policy(team, replace(find_policy(team), stores_content=False), by=owner, base_version=0)
        add_file(tally, look)

    add_file = Tally.add_file
    monkeypatch.setattr(Tally, "add_file", add_and_change_policy)  # after the first file was written
    monkeypatch.setattr(importing, "ROWS_AT_ONCE", 1)
    monkeypatch.setattr(importing, "SHARED_BYTES", 0)  # each session by itself
    told = run_import(tmp_path, reread=reread)
    assert (told["sessions_new"], told["calls_new"], told["lines_read"]) == (4, 8, 8)
    assert [session.has_content for session in AgentSession.objects.order_by("pk")] == [True, False, False, False]
    assert EntrySegment.objects.exclude(content=None).count() == 1

"""Many new sessions written at once: the same rows as one by one, whatever else is in the batch."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import DataError

from dashboard.ingest import intake, new_sessions
from dashboard.ingest.decoders import Decoders
from dashboard.ingest.drawn import DrawnSession
from dashboard.ingest.file_tail import Place
from dashboard.ingest.import_paths import find_paths
from dashboard.ingest.importing import group_looks
from dashboard.ingest.intake import Origin, make_drawing_rules, store_drawn, store_new, take_in
from dashboard.ingest.looks import NextLook
from dashboard.ingest.observed import ObservedSession, Piece
from dashboard.ingest.picture.spelling import read_time, spell_rows, spell_time
from dashboard.ingest.record import FollowUp, Recorded, Source, record
from dashboard.ingest.rows import insert_rows
from dashboard.models import AgentSession, ApiCall, Job, TeamPolicy, User
from dashboard.policies.in_force import find_policy
from tests.builders import make_team
from tests.dashboard.ingest.conversation import Conversation, make_agent, make_conversation
from tests.dashboard.ingest.database_state import read_state

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def origin() -> Origin:
    team = make_team("Harbour", owner="alice")
    TeamPolicy.objects.create(team=team, version=1, stores_content=True)
    return Origin(team, User.objects.get(username="alice"), "import")


def write_files(folder: Path, talks: Iterable[Conversation]) -> None:
    for talk in talks:
        place = folder / f"{talk.session_id}.jsonl"
        if talk.agent_id:
            place = folder / talk.session_id / "subagents" / f"agent-{talk.agent_id}.jsonl"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(talk.data)


def draw(origin: Origin, folder: Path, *talks: Conversation) -> list[DrawnSession]:
    """As the decoding processes hand them over, in the order of the talks."""
    write_files(folder, talks)
    looks = group_looks(NextLook(file, Place()) for file in find_paths([str(folder)]).files.values())
    with Decoders(make_drawing_rules(origin.team, find_policy(origin.team)), processes=0) as decoders:
        done = [decoders.read_on(work).wait() for work in looks]
    assert not any(decoded.prepared.sessions for decoded in done)
    order = [talk.session_id for talk in talks]
    return sorted((each for decoded in done for each in decoded.drawn), key=lambda each: order.index(each.external_id))


def store_all(origin: Origin, drawn: list[DrawnSession]) -> tuple[list[Recorded], list[Recorded]]:
    """What was written at once, and what one by one."""
    policy = find_policy(origin.team)
    stored = store_new(origin, drawn, policy)
    return stored.recorded, list(filter(None, (store_drawn(origin, each, policy) for each in stored.others)))


def send(origin: Origin, *talks: Conversation) -> list[Recorded]:
    pieces = [Piece(talk.data, "test", talk.session_id, talk.agent_id) for talk in talks]
    return [session for piece in pieces for session in take_in(origin, piece).sessions]


def forget_everything() -> None:
    AgentSession.objects.all().delete()
    Job.objects.all().delete()


def make_fork() -> Conversation:
    """A session that begins with the lines of the other one and goes its own way."""
    fork = Conversation("fork")
    fork.lines = make_conversation().lines[:4]
    fork.wait(3600).ask("Another way.")
    fork.answer("msg_fork_1", read=40_000, written=100)
    return fork


def test_batch_writes_and_tells_what_one_by_one_does(origin: Origin, tmp_path: Path) -> None:
    talks = (make_conversation(), make_conversation("quay"), Conversation("empty"))
    talks[2].note("summary", summary="Only a title", leafUuid="none")
    agent = make_agent("quay")
    told = send(origin, *talks)
    send(origin, agent)
    wanted, jobs = read_state(), Job.objects.count()
    forget_everything()
    recorded, others = store_all(origin, draw(origin, tmp_path, *talks, agent))
    state = read_state()
    for row in wanted["sessions"] + state["sessions"]:
        if row["title"] == "Only a title":
            assert row.pop("last_at") is not None  # as old as its arrival
    assert state == wanted
    assert Job.objects.count() == jobs > 0
    assert not others
    assert replace(recorded[0], session_pk=told[0].session_pk) == told[0]
    assert {each.session_pk for each in recorded} == set(AgentSession.objects.values_list("pk", flat=True))


def test_batch_holds_compactions_against_the_line_they_happened_under(origin: Origin, tmp_path: Path) -> None:
    talk = make_conversation()
    moved = {"auto_margin_tokens": 60_000}
    TeamPolicy.objects.create(team=origin.team, version=2, thresholds=moved, created_at=talk.now + timedelta(seconds=1))
    TeamPolicy.objects.filter(version=1).update(created_at=talk.now - timedelta(days=1))
    send(origin, talk)
    wanted = read_state()
    assert [row["line_tokens"] for row in wanted["ObservedCompaction"]] == [167_000]
    forget_everything()
    store_all(origin, draw(origin, tmp_path, talk))
    assert read_state() == wanted


def test_known_session_among_new_ones_is_recorded_apart(origin: Origin, tmp_path: Path) -> None:
    known, new = make_conversation(), make_conversation("quay")
    send(origin, known, new)
    wanted = read_state()
    forget_everything()
    take_in(origin, Piece(b"".join(known.lines[:7]), "test", known.session_id))
    at_once, apart = store_all(origin, draw(origin, tmp_path, known, new))
    assert [each.external_id for each in at_once] == [new.session_id]
    assert [(each.external_id, each.is_new) for each in apart] == [(known.session_id, False)]
    assert read_state() == wanted
    assert [each.new_line_count for each in store_all(origin, draw(origin, tmp_path, known, new))[1]] == [0, 0]
    assert read_state() == wanted


@pytest.mark.parametrize("is_fork_first", [False, True])
def test_fork_inside_a_batch_counts_its_copies_once(
    origin: Origin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_fork_first: bool
) -> None:
    talks = [make_conversation(), make_fork(), make_conversation("quay")]
    if is_fork_first:
        talks.reverse()
    told = {each.external_id: each for each in send(origin, *talks)}
    wanted, keys = read_state(), dict(AgentSession.objects.values_list("pk", "external_id"))
    forget_everything()
    monkeypatch.delattr(DrawnSession, "observe_again")  # neither is drawn again
    at_once, apart = store_all(origin, draw(origin, tmp_path, *talks))
    assert (len(at_once), len(apart)) == (2, 1)
    assert read_state() == wanted
    changed = AgentSession.objects.filter(pk__in=apart[0].also_changed).values_list("external_id", flat=True)
    assert list(changed) == [keys[pk] for pk in told[apart[0].external_id].also_changed]
    assert len(changed) == is_fork_first
    assert replace(apart[0], session_pk=0, also_changed=()) == replace(
        told[apart[0].external_id], session_pk=0, also_changed=()
    )
    assert ApiCall.objects.filter(call_id="msg_harbour_1").count() == 2
    assert ApiCall.objects.filter(call_id="msg_harbour_1", is_counted=True).count() == 1


@pytest.mark.parametrize("zone", [UTC, timezone(timedelta(hours=2))])
def test_times_of_a_column_are_spelt_like_one_alone(zone: tzinfo) -> None:
    times = [datetime(2026, 9, 20, 1, 2, 3, microsecond, zone) for microsecond in (0, 1, 123_000)]
    assert spell_rows([(at,) for at in times]) == [(spell_time(at),) for at in times]
    assert [read_time(spell_time(at)) for at in times] == times
    assert spell_rows([(times[1],), (None,)]) == [(spell_time(times[1]),), (None,)]


def test_session_written_by_another_process_meanwhile_fails_no_batch(
    origin: Origin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    talks = (make_conversation(), make_conversation("quay"))
    send(origin, *talks)
    wanted = read_state()
    forget_everything()
    drawn = draw(origin, tmp_path, *talks)
    find_new = new_sessions._find_new

    def find_and_lose_time(*args: Any) -> Any:
        found = find_new(*args)
        send(origin, talks[1])
        return found

    monkeypatch.setattr(new_sessions, "_find_new", find_and_lose_time)
    at_once, apart = store_all(origin, drawn)
    assert (at_once, [each.is_new for each in apart]) == ([], [True, False])
    assert read_state() == wanted


def test_bad_session_takes_no_other_of_its_batch_along(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    talks = (make_conversation(), make_conversation("bad"), make_conversation("quay"))
    write_files(tmp_path, talks)
    bad = talks[1].session_id

    def refuse_rows(model: Any, columns: Any, rows: Any) -> None:
        if any(bad in row for row in rows):
            raise DataError("out of range")
        insert_rows(model, columns, rows)

    def refuse_session(source: Source, observed: ObservedSession, follow_up: FollowUp | None = None) -> Recorded:
        if observed.external_id == bad:
            raise DataError("out of range")
        return record(source, observed, follow_up)

    with monkeypatch.context() as patched:
        patched.setattr(new_sessions, "insert_rows", refuse_rows)
        patched.setattr(intake, "record", refuse_session)
        with pytest.raises(CommandError, match=rf"Session {bad} cannot be stored \(out of range\)"):
            call_command("import", str(tmp_path), quiet=True)
    good = {talks[0].session_id, talks[2].session_id}
    assert set(AgentSession.objects.values_list("external_id", flat=True)) == good
    call_command("import", str(tmp_path), quiet=True)
    assert set(AgentSession.objects.values_list("external_id", flat=True)) == {*good, bad}


class Killed(BaseException):
    """As sudden as a kill: nothing catches it on the way."""


def _send_whole(origin: Origin, _: Path, talk: Conversation) -> object:
    return send(origin, talk)


def _store_drawn_apart(origin: Origin, folder: Path, talk: Conversation) -> object:
    return store_drawn(origin, draw(origin, folder, talk)[0], find_policy(origin.team))


def _store_at_once(origin: Origin, folder: Path, talk: Conversation) -> object:
    return store_all(origin, draw(origin, folder, talk))


@pytest.mark.parametrize("write", [_send_whole, _store_drawn_apart, _store_at_once])
def test_compaction_and_the_job_that_audits_it_stand_or_fall_together(
    origin: Origin,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    write: Callable[[Origin, Path, Conversation], object],
) -> None:
    def die(*_: object, **__: object) -> None:
        raise Killed

    store = partial(write, origin, tmp_path, make_conversation())
    with monkeypatch.context() as patched:
        patched.setattr(intake, "post_job", die)
        with pytest.raises(Killed):
            store()
    assert (AgentSession.objects.count(), Job.objects.count()) == (0, 0)
    store()
    assert (AgentSession.objects.count(), Job.objects.filter(kind="audit_compactions").count()) == (1, 1)

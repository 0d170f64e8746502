"""Deleting a session: nothing of it is left, nothing of others goes, and it stays away until it is allowed again."""

from datetime import timedelta
from decimal import Decimal

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from dashboard.accounts.refusals import Refused
from dashboard.ingest import intake
from dashboard.ingest.counting import hand_over
from dashboard.ingest.deleted_sessions import leave_deleted
from dashboard.ingest.drawn import draw_session
from dashboard.ingest.intake import make_rules
from dashboard.ingest.new_sessions import record_new, record_sharing
from dashboard.ingest.observed import Piece, Prepared
from dashboard.ingest.record import Source, TooBusy, record
from dashboard.ingest.transcripts import prepare
from dashboard.jobs.perform import perform_due
from dashboard.models import (
    AgentSession,
    ApiCall,
    AuditAction,
    AuditEvent,
    CompactionRun,
    DaySpend,
    DeletedSession,
    Drop,
    Job,
    JobState,
    PromptShape,
    ResumedFile,
    RunState,
    Sender,
    Team,
    User,
)
from dashboard.policies.in_force import find_policy
from dashboard.retention import deletion
from dashboard.retention.deletion import allow_again, delete_session
from dashboard.retention.plan import FATES, Fate
from dashboard.runs.spend import reserve
from tests.builders import make_session
from tests.dashboard.retention.talks import NOW, find_word, furnish, make_origin, make_talk, send
from tests.session_builders import make_calls
from tests.session_rows import make_run

pytestmark = pytest.mark.django_db

YESTERDAY = NOW - timedelta(days=1)
GOING = [model for model, fate in FATES.items() if fate in (Fate.GOES, Fate.GOES_WITH_LAST)]


def test_no_row_and_no_word_of_a_session_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deletion, "ROWS_AT_ONCE", 3)
    origin = make_origin()
    session = furnish(origin, make_talk(at=YESTERDAY))
    assert all(model._default_manager.exists() for model in GOING)
    delete_session(session, by=None, now=timezone.now())
    assert [model.__name__ for model in GOING if model._default_manager.exists()] == []
    assert find_word(origin.team) == []
    kept = ResumedFile.objects.get()
    assert (kept.run, kept.origin, kept.path) == (None, None, "/x")


def test_another_session_keeps_its_rows_and_the_prompt_it_shares() -> None:
    origin = make_origin()
    session = furnish(origin, make_talk("one", at=YESTERDAY))
    send(origin, make_talk("two", at=YESTERDAY))
    other = AgentSession.objects.exclude(pk=session.pk).get()
    shape = PromptShape.objects.get()
    other.shape_uses.create(shape=shape)
    before = other.calls.count()
    delete_session(session, by=None, now=timezone.now())
    assert (other.calls.count(), PromptShape.objects.count()) == (before, 1)
    delete_session(other, by=None, now=timezone.now())
    assert not PromptShape.objects.exists()


def test_dollars_of_shared_calls_go_to_the_session_that_is_left() -> None:
    origin = make_origin()
    talk = make_talk("one", at=YESTERDAY)
    send(origin, talk)
    first = AgentSession.objects.get()
    fork = make_talk("one", at=YESTERDAY)
    fork.session_id = "00000000-0000-4000-8000-000000000002"
    send(origin, fork)
    second = AgentSession.objects.exclude(pk=first.pk).get()
    spent = sum(session.spent_usd for session in AgentSession.objects.all())
    counted = first if first.spent_usd else second
    delete_session(counted, by=None, now=timezone.now())
    left = AgentSession.objects.get()
    assert left.spent_usd == spent > 0
    assert not ApiCall.objects.filter(is_counted=False).exists()


def test_calls_that_count_elsewhere_stay_there_when_a_copy_goes() -> None:
    origin = make_origin()
    for number in range(3):
        talk = make_talk("one", at=YESTERDAY)
        talk.session_id = f"00000000-0000-4000-8000-00000000000{number}"
        send(origin, talk)
    counts = AgentSession.objects.get(calls__is_counted=True, calls__number=1)
    call_ids = list(counts.calls.values_list("call_id", flat=True))
    assert hand_over(origin.team.pk, call_ids) == set()
    assert set(ApiCall.objects.filter(is_counted=True).values_list("session", flat=True)) == {counts.pk}
    counts.calls.all().delete()
    (heir,) = hand_over(origin.team.pk, call_ids)
    assert ApiCall.objects.filter(is_counted=True, session=heir).count() == len(call_ids)


def test_copies_are_found_without_reading_every_call_of_the_team() -> None:
    with CaptureQueriesContext(connection) as asked:
        hand_over(1, ["msg_1"])
    plan = " ".join(str(row) for each in asked for row in explain(each["sql"]))
    assert "call_copies" in plan or connection.vendor != "sqlite"


def explain(sql: str) -> list[tuple[object, ...]]:
    if connection.vendor != "sqlite":  # PostgreSQL reads a table of no rows from its beginning, whatever index it has
        return []
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN QUERY PLAN {sql}")
        steps: list[tuple[object, ...]] = cursor.fetchall()
    return steps


def test_it_does_not_come_back_by_itself_until_it_is_allowed() -> None:
    origin, talk = make_origin(), make_talk(at=YESTERDAY)
    send(origin, talk)
    olga = User.objects.get(username="olga")
    delete_session(AgentSession.objects.get(), by=olga, now=timezone.now())
    talk.now = timezone.now() + timedelta(hours=1)
    talk.ask("Still here?")
    send(origin, talk)
    assert not AgentSession.objects.exists()
    assert Drop.objects.get(reason="session was deleted").count == len(talk.lines)
    allow_again(origin.team, talk.session_id, by=olga)
    send(origin, talk)
    assert AgentSession.objects.get().external_id == talk.session_id
    told = [AuditAction.SESSION_DELETED, AuditAction.SESSION_ALLOWED]
    assert list(AuditEvent.objects.order_by("id").values_list("action", "subject", "actor_name")) == [
        (action, talk.session_id, "olga") for action in told
    ]


def test_it_is_not_allowed_again_while_it_is_still_being_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    origin, talk = make_origin(), make_talk(at=YESTERDAY)
    send(origin, talk)
    monkeypatch.setattr(deletion, "remove_rows", lambda _pk: None)
    delete_session(AgentSession.objects.get(), by=None, now=timezone.now())
    with pytest.raises(Refused, match="still being deleted"):
        allow_again(origin.team, talk.session_id, by=User.objects.get(username="olga"))
    assert DeletedSession.objects.exists()


def test_nothing_is_recorded_into_a_session_that_is_being_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    """It was not deleted when the batch was let in, and is half removed when the batch is written."""
    origin, talk = make_origin(), make_talk(at=YESTERDAY)
    send(origin, talk)
    session = AgentSession.objects.get()

    def ask_before_it_is_deleted(team: Team, prepared: Prepared, sender: Sender) -> Prepared:
        kept = leave_deleted(team, prepared, sender)
        delete_session(session, by=None, now=timezone.now())
        return kept

    monkeypatch.setattr(deletion, "remove_rows", deletion._remove_some)
    monkeypatch.setattr(deletion, "ROWS_AT_ONCE", 1)
    monkeypatch.setattr(intake, "leave_deleted", ask_before_it_is_deleted)
    before = session.entry_count
    talk.ask("Still here?")
    with pytest.raises(TooBusy):
        send(origin, talk)
    session.refresh_from_db()
    assert session.entry_count == before
    monkeypatch.undo()
    send(origin, talk)
    assert Drop.objects.get(reason="session was deleted").count == len(talk.lines)


@pytest.mark.parametrize("is_alone", [True, False])
def test_a_session_that_was_removed_since_it_was_asked_for_is_not_made_again(*, is_alone: bool) -> None:
    origin, talk = make_origin(), make_talk(at=YESTERDAY)
    DeletedSession.objects.create(team=origin.team, external_id=talk.session_id, reason="person")
    policy = find_policy(origin.team)
    prepared = prepare(Piece(talk.data, "test", talk.session_id), make_rules(origin.team, policy))
    source = Source(origin.team, None, "follow", policy.lines_policy)
    (observed,) = prepared.sessions
    if is_alone:
        with pytest.raises(TooBusy):
            record(source, observed)
    else:
        drawn = draw_session(observed, policy.lines_policy)
        assert drawn is not None
        assert record_new(source, [drawn]) == ([], [drawn])
        assert record_sharing(source, drawn) is None
    assert not AgentSession.objects.exists()


def test_open_runs_are_cancelled_and_their_money_is_given_back() -> None:
    origin = make_origin()
    session = make_session(origin.team, "s")
    job = Job.objects.create(kind="compact", key="k", team=origin.team, state=JobState.QUEUED)
    reserve(origin.team, Decimal(1), Decimal(5), now=timezone.now())
    run = make_run(session, state=RunState.QUEUED, job=job, reserved_usd=1, finished_at=None)
    delete_session(session, by=None, now=timezone.now())
    job.refresh_from_db()
    assert job.state == JobState.CANCELLED
    assert not CompactionRun.objects.filter(pk=run.pk).exists()
    assert DaySpend.objects.get().reserved_usd == 0


def test_a_job_finishes_what_a_killed_process_began(monkeypatch: pytest.MonkeyPatch) -> None:
    origin = make_origin()
    session = furnish(origin, make_talk(at=YESTERDAY))
    monkeypatch.setattr(deletion, "remove_rows", lambda _pk: None)
    delete_session(session, by=None, now=timezone.now())
    monkeypatch.undo()
    assert AgentSession.objects.exists()
    Job.objects.filter(kind="finish_deletion").update(due_at=None)
    perform_due()
    assert Job.objects.get(kind="finish_deletion").state == JobState.DONE
    assert not AgentSession.objects.exists()


def test_large_session_goes_in_short_transactions() -> None:
    session = make_session(make_origin().team, "large")
    make_calls(session, 2_000)
    with CaptureQueriesContext(connection) as queries:
        delete_session(session, by=None, now=timezone.now())
    assert not ApiCall.objects.exists()
    begun = [query for query in queries if query["sql"].startswith(("SAVEPOINT", "BEGIN"))]
    assert len(begun) >= 5


def test_admin_deletes_from_the_page_and_sees_what_will_be_lost(client: Client) -> None:
    origin = make_origin()
    session = furnish(origin, make_talk(at=YESTERDAY))
    client.force_login(User.objects.get(username="anna"))
    page = client.get(reverse("session_tab", args=[session.pk, "settings"])).content.decode()
    for words in ("2 calls", "1 compaction,", "1 compaction run by Plimsoll", "and all content", "cannot be undone"):
        assert words in page
    assert client.post(reverse("delete_session", args=[session.pk])).status_code == 302
    assert not AgentSession.objects.exists()
    storage = client.get(reverse("storage", args=["harbour"])).content.decode()
    assert session.external_id in storage
    answer = client.post(reverse("allow_session", args=["harbour"]), {"session": session.external_id}, follow=True)
    assert "It reappears when it is imported" in answer.content.decode()
    assert not DeletedSession.objects.exists()


def test_member_sees_no_way_to_delete(client: Client) -> None:
    session = make_session(make_origin().team, "s")
    client.force_login(User.objects.get(username="mia"))
    page = client.get(reverse("session_tab", args=[session.pk, "settings"])).content.decode()
    assert reverse("delete_session", args=[session.pk]) not in page

"""Retention: words go when their time is over, sessions when theirs is, and neither comes back by being read again."""

from datetime import datetime, timedelta

import pytest
from django.db import connection
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from dashboard.ingest.record import TooBusy
from dashboard.jobs.perform import perform_due
from dashboard.models import (
    AgentSession,
    ApiCall,
    CompactionRun,
    DeletedSession,
    Job,
    Membership,
    ObservedCompaction,
    PromptShape,
    TeamPolicy,
    User,
)
from dashboard.pages.session_download import _list_lines
from dashboard.retention import deletion, forgetting, rounds
from dashboard.runs.basis import read_basis
from dashboard.runs.choices import RunRefused
from tests.dashboard.ingest.conversation import Conversation
from tests.dashboard.retention.talks import NOW, PART, WORD, find_word, furnish, make_origin, make_talk, send

pytestmark = pytest.mark.django_db

LONG_AGO = NOW - timedelta(days=40)


def apply(key: str = "once") -> dict[str, int]:
    Job.objects.all().delete()
    job = Job.objects.create(kind="apply_retention", key=key)
    assert perform_due() == 1
    job.refresh_from_db()
    result: dict[str, int] = job.result or {}
    return result


def test_words_are_found_in_every_place_that_keeps_them_before_they_go() -> None:
    """The look itself must see what it is later said not to see."""
    origin = make_origin()
    furnish(origin, make_talk(at=LONG_AGO))
    assert find_word(origin.team) == sorted(
        {
            *("dashboard_agentsession.title", "dashboard_thread.description", "dashboard_capturedrequest.body"),
            *("dashboard_sessionnote.text", "dashboard_compactionrun.hook_notes"),
            *("dashboard_entrysegment.content", "dashboard_entrysegment.facts", "dashboard_promptshape.content"),
            *("dashboard_observedcompaction.audit", "dashboard_observedcompaction.restored"),
            *("dashboard_compactionrun.instructions", "dashboard_compactionrun.details"),
            *("dashboard_runrevision.text", "dashboard_runrevision.analysis", "dashboard_runrevision.audit"),
        }
    )


def test_all_words_of_an_old_session_go_and_all_numbers_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forgetting, "SEGMENTS_AT_ONCE", 1)
    origin = make_origin(content_days=30)
    TeamPolicy.objects.update(content_days=None)
    session = furnish(origin, make_talk(at=LONG_AGO))
    TeamPolicy.objects.update(content_days=30)
    figures = ("call_count", "spent_usd", "lost_usd", "compaction_count", "entry_count", "context_tokens")
    before = AgentSession.objects.values_list(*figures).get()
    assert apply() == {"sessions forgotten": 1, "runs forgotten": 1, "prompts forgotten": 1}
    assert find_word(origin.team) == []
    session.refresh_from_db()
    assert (session.has_content, session.content_removed_at is not None) == (False, True)
    assert AgentSession.objects.values_list(*figures).get() == before
    compaction = ObservedCompaction.objects.get()
    assert compaction.audit == {"version": 2, "parts": [PART], "lost_count": 1, "lost": []}
    assert CompactionRun.objects.get().content_removed_at is not None
    assert apply("again") == {}


def test_pages_say_that_retention_took_the_words_and_keep_their_numbers(client: Client) -> None:
    origin = make_origin()
    session = furnish(origin, make_talk(at=LONG_AGO))
    TeamPolicy.objects.update(content_days=30)
    apply()
    Membership.objects.update(content_grant=True)
    client.force_login(User.objects.get(username="olga"))
    compaction, run = ObservedCompaction.objects.get(), CompactionRun.objects.get()
    pages = [
        *(reverse("session", args=[session.pk]), reverse("session_tab", args=[session.pk, "context"])),
        *(reverse("compaction", args=[compaction.pk]), reverse("run", args=[run.pk])),
    ]
    for address in pages:
        page = client.get(address).content.decode()
        assert "team's retention" in page.replace("&#x27;", "'"), address
        assert "keeps numbers only" not in page, address
    told = client.get(f"/api/v1/compactions/{compaction.pk}").json()
    assert told["content"] == "removed"


def test_words_do_not_come_back_when_the_file_is_read_again() -> None:
    origin, talk = make_origin(), make_talk(at=LONG_AGO)
    send(origin, talk)
    TeamPolicy.objects.update(content_days=30)
    apply()
    send(origin, talk)
    assert find_word(origin.team) == []
    assert AgentSession.objects.get().call_count == 2


def test_a_session_that_goes_on_loses_its_older_lines_alone() -> None:
    origin, talk = make_origin(), make_talk(at=LONG_AGO)
    older = talk.data
    talk.now = NOW - timedelta(days=1)
    talk.ask("What about Pemba?")
    talk.answer("m9", read=30_000)
    send(origin, talk)
    TeamPolicy.objects.update(content_days=30)
    assert apply() == {"sessions forgotten": 1}
    assert apply("again") == {"sessions forgotten": 0}
    session = AgentSession.objects.get()
    assert (session.has_content, session.call_count) == (True, 3)
    assert b"".join(_list_lines(session.pk)) == talk.data.removeprefix(older)
    with pytest.raises(RunRefused, match="retention"):
        read_basis(session)


def test_an_import_of_old_lines_stores_their_numbers_alone() -> None:
    origin = make_origin(content_days=30)
    send(origin, make_talk("old", at=LONG_AGO))
    assert find_word(origin.team) == []
    send(origin, make_talk("new", at=NOW - timedelta(days=1)))
    assert "dashboard_entrysegment.content" in find_word(origin.team)


def test_a_prompt_stays_while_a_younger_session_uses_it() -> None:
    origin = make_origin()
    furnish(origin, make_talk("old", at=LONG_AGO))
    send(origin, make_talk("young", at=NOW - timedelta(days=1)))
    young = AgentSession.objects.get(external_id=make_talk("young", at=NOW).session_id)
    shape = PromptShape.objects.get()
    use = young.shape_uses.create(shape=shape)
    TeamPolicy.objects.update(content_days=30)
    apply()
    shape.refresh_from_db()
    assert shape.content is not None
    use.delete()
    apply("again")
    shape.refresh_from_db()
    assert shape.content is None


def test_whole_sessions_go_and_come_back_only_when_they_go_on() -> None:
    origin, talk = make_origin(metrics_days=30), make_talk("old", at=LONG_AGO)
    furnish(origin, talk)
    send(origin, make_talk("young", at=NOW - timedelta(days=1)))
    assert apply() == {"sessions deleted": 1}
    assert AgentSession.objects.count() == 1
    send(origin, talk)
    assert AgentSession.objects.count() == 1
    talk.now = NOW + timedelta(hours=1)
    talk.ask("Once more.")
    talk.answer("m9", read=30_000)
    send(origin, talk)
    assert AgentSession.objects.count() == 2
    assert not DeletedSession.objects.exists()


def go_on(talk: Conversation) -> Conversation:
    talk.now = NOW + timedelta(hours=1)
    talk.ask("Once more.")
    talk.answer("m9", read=30_000)
    return talk


def test_a_session_that_goes_on_while_others_are_deleted_stays_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    origin, second = make_origin(metrics_days=30), make_talk("second", at=LONG_AGO)
    send(origin, make_talk("first", at=LONG_AGO))
    send(origin, second)
    delete = deletion.delete_expired

    def delete_while_the_second_goes_on(session: AgentSession, since: datetime, *, now: datetime) -> bool:
        if session.external_id != second.session_id:
            send(origin, go_on(second))
        return delete(session, since, now=now)

    monkeypatch.setattr(rounds, "delete_expired", delete_while_the_second_goes_on)
    assert apply() == {"sessions deleted": 1}
    left = AgentSession.objects.get()
    assert (left.external_id, left.call_count) == (second.session_id, 3)
    assert not DeletedSession.objects.filter(external_id=second.session_id).exists()


def test_what_goes_on_while_its_rows_are_removed_is_taken_afterwards(monkeypatch: pytest.MonkeyPatch) -> None:
    origin, talk = make_origin(metrics_days=30), make_talk(at=LONG_AGO)
    send(origin, talk)
    refused: list[str] = []
    remove_some = deletion._remove_some

    def remove_while_it_goes_on(session_pk: int) -> bool:
        is_done = remove_some(session_pk)
        if not refused:
            assert not is_done
            with pytest.raises(TooBusy) as caught:
                send(origin, go_on(talk))
            refused.append(str(caught.value))
        return is_done

    monkeypatch.setattr(deletion, "ROWS_AT_ONCE", 1)
    monkeypatch.setattr(deletion, "_remove_some", remove_while_it_goes_on)
    assert apply() == {"sessions deleted": 1}
    assert refused == [talk.session_id]
    assert not AgentSession.objects.exists()
    send(origin, talk)
    assert AgentSession.objects.get().call_count == 3
    assert apply("again") == {}
    assert AgentSession.objects.get().call_count == 3


def test_what_a_killed_round_began_is_finished_whatever_was_decided_since(monkeypatch: pytest.MonkeyPatch) -> None:
    origin, talk = make_origin(metrics_days=30), make_talk(at=LONG_AGO)
    send(origin, talk)
    monkeypatch.setattr(deletion, "remove_rows", lambda _pk: None)
    apply()
    monkeypatch.undo()
    TeamPolicy.objects.update(metrics_days=None)
    assert AgentSession.objects.exists()
    assert apply("again") == {"sessions deleted": 1}
    assert not AgentSession.objects.exists()
    send(origin, go_on(talk))
    assert AgentSession.objects.get().call_count == 3


def test_a_new_decision_is_not_applied_within_its_first_hour() -> None:
    origin = make_origin(metrics_days=1, content_days=1)
    TeamPolicy.objects.update(created_at=timezone.now() - timedelta(minutes=50))
    send(origin, make_talk(at=LONG_AGO))
    assert apply() == {}
    assert ApiCall.objects.count() == 2


def test_text_search_finds_no_forgotten_title() -> None:
    """SQLite alone keeps an index of words beside the table."""
    if connection.vendor != "sqlite":
        return
    origin = make_origin()
    send(origin, make_talk(at=LONG_AGO))
    count = "SELECT count(*) FROM dashboard_session_search WHERE dashboard_session_search MATCH %s"
    with connection.cursor() as cursor:
        assert cursor.execute(count, [WORD]).fetchone() == (1,)
        TeamPolicy.objects.update(content_days=30)
        apply()
        assert cursor.execute(count, [WORD]).fetchone() == (0,)

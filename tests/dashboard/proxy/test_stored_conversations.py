"""Conversations of clients that do not name them, before a database: over restarts of the recorder, and without it."""

import json

import pytest
from django.db import OperationalError

from dashboard.models import AgentSession, ApiCall, CacheBreak, DeletedSession, DeletionReason, Team
from dashboard.proxy.stored_conversations import look_up
from tests.builders import make_team
from tests.dashboard.proxy.talking import make_usage
from tests.dashboard.proxy.test_recorder import Table, talk_for
from tests.fakes.native_compaction import sign_block

pytestmark = pytest.mark.django_db


@pytest.fixture
def team() -> Team:
    return make_team("Harbour", owner="ann", member="ben")


def test_a_conversation_is_one_session_whatever_recorder_reads_its_calls(team: Team) -> None:
    client = talk_for(
        team, headers={}, messages=[{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Ho"}]
    )
    for number in range(4):
        Table().write(client.call(f"Question {number}", f"msg_{number}", reply="Aye"))
    assert AgentSession.objects.get().call_count == 4


def test_agents_that_were_told_the_same_are_found_by_their_system_prompts(team: Team) -> None:
    clients = [talk_for(team, headers={}, system=system) for system in ("You sail.", "You row.")]
    Table().write(*(each.call("Start", f"a{n}", reply="Ready.") for n, each in enumerate(clients)))
    Table().write(*(each.call("Go", f"b{n}") for n, each in reversed(list(enumerate(clients)))))
    calls = [[call.call_id for call in session.calls.order_by("number")] for session in AgentSession.objects.all()]
    assert sorted(calls) == [["a0", "b0"], ["a1", "b1"]]


def test_no_session_is_made_of_conversations_that_share_examples(team: Team) -> None:
    shared = [{"role": "user", "content": "Classify: good boat"}, {"role": "assistant", "content": "positive"}]
    for number in range(3):
        client = talk_for(team, headers={}, messages=[dict(each) for each in shared])
        usage = make_usage(read=4_000 if number else 0, written=9_000)
        Table().write(client.call(f"Classify: {number}", f"m{number}", usage=usage, reply="positive"))
    assert AgentSession.objects.count() == 3
    assert not CacheBreak.objects.exists()


def test_a_call_told_again_to_another_recorder_is_one_call(team: Team) -> None:
    client, twin = talk_for(team, headers={}), talk_for(team, headers={})
    calls = [client.call("One", "m1"), twin.call("One", "m2"), client.call("Two", "m3")]
    Table().write(*calls)
    Table().write(*calls[::-1])
    assert ApiCall.objects.count() == 3
    assert AgentSession.objects.count() == 2


def test_what_goes_on_with_a_deleted_session_stays_deleted(team: Team) -> None:
    client = talk_for(team, headers={})
    Table().write(client.call("One", "m1"))
    session = AgentSession.objects.get()
    DeletedSession.objects.create(team=team, external_id=session.external_id, reason=DeletionReason.PERSON)
    session.delete()
    Table().write(client.call("Two", "m2"))
    assert not AgentSession.objects.exists()
    assert look_up(team.pk + 1, [session.external_id], "m1") == {}


def test_a_call_waits_while_its_conversation_cannot_be_looked_up(team: Team, monkeypatch: pytest.MonkeyPatch) -> None:
    class Locked:
        def filter(self, **_: object) -> None:
            raise OperationalError("database is locked")

    client, table = talk_for(team, headers={}), Table()
    Table().write(client.call("One", "m1"))
    with monkeypatch.context() as patch:
        patch.setattr(AgentSession, "objects", Locked())
        with pytest.raises(OperationalError):
            table.put(client.call("Two", "m2"))
    assert (table.confirmed, table.desk.pending_count) == ([], 1)
    table.write()
    assert AgentSession.objects.get().call_count == 2


def test_a_rebuild_behind_what_the_api_compacted_is_expected(team: Team) -> None:
    client = talk_for(team, headers={})
    table = Table().write(client.call("One", "m1", usage=make_usage(written=50_000)))
    block = sign_block("We said one.")
    client.extra = {"compaction": {"type": "summarize"}}
    answer = {"id": "m2", "type": "message", "role": "assistant", "model": client.model, "content": [block]}
    told = json.dumps({**answer, "stop_reason": "compaction", "usage": make_usage(read=50_000)}).encode()
    table.write(client.send(told, "m2", response_headers={"content-type": "application/json"}))
    client.extra, client.messages = {}, [{"role": "assistant", "content": [block]}]
    table.write(client.call("Two", "m3", usage=make_usage(read=5_000, written=6_000)))
    assert AgentSession.objects.get().call_count == 3
    assert [(loss.kind, loss.cause) for loss in CacheBreak.objects.all()] == [("expected", "compacted")]

"""The calls around a compaction are those of the conversation, whatever was called beside it in between."""

import json
from typing import Any

import pytest
from django.test import Client

from compaction.transcripts.client_protocol import CONVERSATION_SOURCES, is_beside_conversation
from dashboard.models import ApiCall, CacheBreak, CompactionKind, ObservedCompaction, Scope, Team, User
from dashboard.pages.calls_around import CallsAround, find_compaction_before, read_calls_around
from tests.builders import make_key, make_session
from tests.dashboard.ingest.otlp.exports import call, event, logs
from tests.recorded_talk import make_harbour
from tests.session_builders import add_compaction, make_calls
from tests.visitors import ask, read, sign_in

pytestmark = pytest.mark.django_db
TITLE = "generate_session_title"


@pytest.fixture
def team() -> Team:
    return make_harbour()


def number_sides(around: CallsAround) -> tuple[int | None, int | None]:
    before, after = around
    return before.number if before else None, after.number if after else None


def test_telemetry_of_a_title_behind_a_compaction_is_not_the_call_after_it(client: Client, team: Team) -> None:
    _, key = make_key(team, User.objects.get(username="alice"), Scope.INGEST)
    told: dict[str, Any] = {
        "trigger": "auto",
        "success": "true",
        "pre_tokens": "167000",
        "post_tokens": "9000",
        "duration_ms": "12",
    }
    export = logs(
        call("req_1", 0, written=160_000),
        call("req_2", 30, read=160_000, written=7_000),
        call("req_t1", 40, written=900, query_source=TITLE),
        event("compaction", 60, **told),
        call("req_t2", 70, written=700, query_source=TITLE),
        call("req_3", 90, read=12_000, written=20_000),
    )
    url, headers = "/v1/logs", {"Authorization": f"Bearer {key}"}
    assert client.post(url, json.dumps(export), "application/json", headers=headers).status_code == 200
    compaction = ObservedCompaction.objects.get()
    assert compaction.call_number == 3  # the title
    visitor = sign_in("vera")
    page = read(visitor, f"/compactions/{compaction.pk}/")
    assert '?number=2">before: 2</a>' in page
    assert '?number=5">after: 5</a>' in page
    rebuild = CacheBreak.objects.get(cause="compacted")
    assert rebuild.call_number == 5
    assert ask(visitor, f"breaks/{rebuild.pk}")["compaction_id"] == compaction.pk


def test_drop_is_measured_between_calls_of_the_conversation(team: Team) -> None:
    session = make_session(team, "session-1")
    make_calls(session, 6)
    calls = ApiCall.objects.filter(session=session)
    calls.filter(number__in=(3, 4)).update(query_source=TITLE, input_tokens=10, read_tokens=0, write_5m_tokens=0)
    calls.filter(number=2).update(context_tokens=90_000)
    micro = add_compaction(session, behind=3, kind="micro")
    sent = 4 + 22_000 + 460
    around = read_calls_around([micro.pk])[micro.pk]
    assert (number_sides(around), around.drop_tokens) == ((2, 5), 90_000 - sent)
    assert "67.5k" in read(sign_in("vera"), f"/sessions/{session.pk}/compactions/").split('id="micro-title"')[1]


@pytest.mark.parametrize("source", ["", *(f"{name}…" for name in CONVERSATION_SOURCES), "compact", TITLE, "probe"])
def test_sources_are_told_apart_as_the_engine_does(team: Team, source: str) -> None:
    session = make_session(team, "session-1")
    make_calls(session, 4)
    ApiCall.objects.filter(session=session, number__in=(2, 3)).update(query_source=source)
    compaction = add_compaction(session, behind=2)
    wanted = (1, 4) if is_beside_conversation(source or None) else (2, 3)
    assert number_sides(read_calls_around([compaction.pk])[compaction.pk]) == wanted


def test_sides_without_a_call_are_empty_and_other_threads_are_not_taken(team: Team) -> None:
    session, other = make_session(team, "session-1"), make_session(team, "session-2")
    make_calls(session, 3, agent_id="a1")
    make_calls(other, 3)
    first = add_compaction(session, behind=0)
    last = add_compaction(session, behind=3, agent_id="a1")
    found = read_calls_around([first.pk, last.pk])
    assert found[first.pk] == (None, None)
    assert (number_sides(found[last.pk]), found[last.pk].drop_tokens) == ((3, None), None)
    assert read_calls_around([]) == {}


def test_rebuild_leads_to_the_compaction_of_its_kind_right_before_it(team: Team) -> None:
    session = make_session(team, "session-1")
    make_calls(session, 8)
    ApiCall.objects.filter(session=session, number=6).update(query_source=TITLE)
    full, micro = CompactionKind.FULL, CompactionKind.MICRO

    def find(number: int, kind: CompactionKind) -> int | None:
        return find_compaction_before(session.pk, "", number, kind)

    assert find(7, full) is None
    add_compaction(session, behind=4)
    last = add_compaction(session, behind=5)
    ObservedCompaction.objects.create(
        team=team, session=session, entry_uuid="failed", kind="failed", call_number=6, failure="busy"
    )
    assert find(7, full) == last.pk
    assert (find(7, micro), find(8, full)) == (None, None)

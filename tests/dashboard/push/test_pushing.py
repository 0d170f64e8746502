"""A laptop sends its transcripts: the server's database says what it would say had the files been imported there."""

import json
import os
import time
from pathlib import Path
from random import Random
from typing import Any

import httpx2
import pytest
from django.test import Client

from compaction.transcripts.subagents import read_agent_meta
from dashboard.ingest.intake import Origin, take_in, take_in_agent_meta
from dashboard.ingest.observed import Piece
from dashboard.ingest.pushed_lines import NOT_A_LINE, read_push
from dashboard.ingest.segments import read_segment_lines
from dashboard.ingest.transcripts import name_session
from dashboard.models import AgentSession, Drop, EntrySegment, Scope, Team, TeamPolicy, User
from dashboard.push import outbox
from dashboard.push.outbox import Backlog
from dashboard.push.server import WrongSetup
from tests.builders import make_key, make_team
from tests.dashboard.ingest.conversation import Conversation, make_agent, make_conversation
from tests.dashboard.ingest.database_state import read_state
from tests.dashboard.push.machine import Machine, answer_with, let_pass

pytestmark = pytest.mark.django_db
SECRET = "ghp_" + "Zq9" * 12
WORDS = ("Charts of the harbour", "Draw the chart.", "depth 12 m", "And now?", "What happened so far.", "Long words.")
META = {"agentType": "Explore", "description": "looks at the tides"}


@pytest.fixture
def team() -> Team:
    return make_team("Harbour", owner="alice", member="mia")


@pytest.fixture
def key(team: Team) -> str:
    return make_key(team, User.objects.get(username="mia"), Scope.INGEST)[1]


def keep_content(team: Team, **patterns: str) -> None:
    version = TeamPolicy.objects.filter(team=team).count() + 1
    TeamPolicy.objects.create(team=team, version=version, stores_content=True, own_patterns=patterns)


def make_talks() -> list[Conversation]:
    """A session with a secret, a prompt shape and a request written down, and its sub-agent."""
    talk = make_conversation()
    talk.ask(f"The token is {SECRET}, for berth-4711.")
    shape = {"system": [{"type": "text", "text": "Be a pilot."}], "tools": [{"name": "sound", "input_schema": {}}]}
    talk.note("api-request-shape", shapeHash="shape-1", shape=shape)
    talk.note("api-request", id="r1", shapeHash="shape-1", model="m", tail=["h1"], params={"effort": "low"})
    return [talk, make_agent()]


def write_all(machine: Machine) -> list[Path]:
    paths = [machine.write(talk) for talk in make_talks()]
    meta = paths[1].with_suffix("").with_suffix(".meta.json")
    meta.write_text(json.dumps(META))
    return [*paths, meta]


def import_directly(team: Team, paths: list[Path]) -> None:
    origin = Origin(team, User.objects.get(username="mia"), "push")
    for path in paths:
        session_id, agent_id = name_session(str(path))
        if path.suffix == ".json":
            assert session_id
            assert agent_id
            take_in_agent_meta(origin, session_id, agent_id, read_agent_meta(path.read_bytes()))
        else:
            take_in(origin, Piece(path.read_bytes(), str(path), session_id, agent_id))


def read_state_and_clear(team: Team) -> dict[str, list[object]]:
    state = read_state()
    AgentSession.objects.filter(team=team).delete()
    team.shapes.all().delete()
    return state


@pytest.mark.parametrize("keeps", [False, True])
def test_pushed_is_as_imported(team: Team, key: str, tmp_path: Path, *, keeps: bool) -> None:
    if keeps:
        keep_content(team, berth=r"berth-\d{4}")
    machine = Machine(tmp_path, key)
    paths = write_all(machine)
    machine.push()
    assert AgentSession.objects.get().developer == "mia"
    pushed = read_state_and_clear(team)
    import_directly(team, paths)
    assert pushed == read_state_and_clear(team)
    assert len(pushed["lines"]) == sum(len(talk.lines) for talk in make_talks()) + 1
    wire = b"".join(machine.wire.bodies)
    assert SECRET.encode() not in wire
    assert (b"Draw the chart." in wire) is keeps
    assert b"berth-4711" not in wire


@pytest.mark.parametrize("keeps", [False, True])
def test_metrics_only_sends_no_word(team: Team, key: str, tmp_path: Path, *, keeps: bool) -> None:
    if keeps:
        keep_content(team)
    machine = Machine(tmp_path, key, is_metrics_only=True)
    write_all(machine)
    machine.push()
    wire = b"".join(machine.wire.bodies)
    for words in (*WORDS, SECRET, "berth-4711", "Be a pilot.", "looks at the tides", "chart.py"):
        assert words.encode() not in wire, words
    assert not EntrySegment.objects.exclude(content=None).exists()
    assert AgentSession.objects.get().call_count == 6


def test_words_are_not_sent_while_a_pattern_cannot_be_used(
    team: Team, key: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An older server still offers to store content."""
    monkeypatch.setattr("dashboard.ingest.intake.keeps_content", lambda policy: policy.stores_content)
    keep_content(team, berth=r"(?<=berth-)\d{4}")
    machine = Machine(tmp_path, key)
    write_all(machine)
    machine.push()
    wire = b"".join(machine.wire.bodies)
    assert [words for words in (*WORDS, "4711") if words.encode() in wire] == []
    assert AgentSession.objects.get().call_count == 6


def test_words_older_than_the_team_keeps_them_stay_at_home(team: Team, key: str, tmp_path: Path) -> None:
    keep_content(team)
    machine = Machine(tmp_path, key)
    TeamPolicy.objects.update(content_days=30)
    (talk, _) = make_talks()
    machine.write(talk)
    machine.push()  # with rules of before: the server keeps to its own
    assert not EntrySegment.objects.exclude(content=None).exists()
    assert AgentSession.objects.get().title == ""
    machine.outbox.forget_places()
    machine.restart()
    machine.push()
    assert [b"Draw the chart." in body for body in machine.wire.bodies] == [True, False]


def test_nothing_is_sent_twice_over_growth_and_restarts(team: Team, key: str, tmp_path: Path) -> None:
    machine = Machine(tmp_path, key)
    (talk, agent) = make_talks()
    machine.write(agent)
    for start in range(0, len(talk.lines), 3):
        machine.write(talk, start=start, end=start + 3)
        machine.push()
        machine.restart()
        machine.push()
    sent = [line.fact.id for body in machine.wire.bodies for each in read_push(body).sessions for line in each.lines]
    assert len(sent) == len(talk.lines) + len(agent.lines)
    assert sorted(sent) == sorted(set(sent))
    grown = read_state_and_clear(team)
    machine.outbox.forget_places()
    machine.restart()
    machine.push()
    assert read_state_and_clear(team) == grown


def test_what_was_read_is_kept_on_disk_when_its_file_goes_while_the_server_is_away(key: str, tmp_path: Path) -> None:
    machine = Machine(tmp_path, key)
    talk = make_conversation()
    path = machine.write(talk)
    machine.wire.refuse = _drop_connection
    machine.push(steps=3)
    path.unlink()
    machine.wire.refuse = let_pass
    machine.restart()
    machine.push()
    assert AgentSession.objects.get().call_count == 5
    assert machine.pusher.backlog.size_bytes == 0
    assert len(machine.wire.bodies) == 1
    assert "Queuing on disk" in machine.told[0]


def _drop_connection(request: httpx2.Request) -> httpx2.Response | None:
    if request.method == "POST":
        raise httpx2.ConnectError("Connection refused")
    return None


@pytest.mark.parametrize(
    ("status", "headers", "waits_seconds"),
    [(503, {"Retry-After": "7"}, 7.0), (429, {"Retry-After": "Wed, 21 Oct 2099 07:28:00 GMT"}, 3600.0), (502, {}, 0.5)],
)
def test_busy_server_is_given_the_time_it_asks_for(
    key: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    status: int,
    headers: dict[str, str],
    waits_seconds: float,
) -> None:
    machine = Machine(tmp_path, key)
    machine.write(make_conversation())
    machine.wire.refuse = answer_with(status, headers=headers)
    clock = [1000.0]
    monkeypatch.setattr("dashboard.push.pusher.time.monotonic", lambda: clock[0])
    machine.push(steps=3)
    assert machine.wire.statuses == [status]  # asked once, however often it is its turn
    machine.wire.refuse = let_pass
    clock[0] += waits_seconds - 0.1
    machine.push(steps=1)
    assert machine.wire.statuses == [status]
    clock[0] += 1.0
    machine.push(steps=1)
    assert machine.wire.statuses == [status, 200]
    assert machine.told[-1].endswith("is reachable again.")


def test_batch_that_is_too_large_is_cut_until_it_fits(team: Team, key: str, tmp_path: Path) -> None:
    keep_content(team)
    machine = Machine(tmp_path, key)
    talk = make_conversation()
    talk.ask(Random(7).randbytes(30_000).hex())
    machine.write(talk)
    machine.wire.refuse = lambda request: httpx2.Response(413) if len(request.content) > 2_000 else None
    machine.push(steps=200)
    assert 413 in machine.wire.statuses
    segments = EntrySegment.objects.all()
    stored = [line for segment in segments for line in read_segment_lines(segment.facts, segment.content)]
    assert len(stored) == len(talk.lines)
    bare = [line for line in stored if not line.fact.has_content]
    assert len(bare) == 1  # the one line that alone is larger went without its words
    assert bare[0].fact.size_bytes > 60_000


def test_refused_batch_is_kept_and_the_rest_goes_on(key: str, tmp_path: Path) -> None:
    machine = Machine(tmp_path, key)
    machine.write(make_conversation("first"))
    machine.wire.refuse = answer_with(422, json={"detail": "The batch has format 1."})
    machine.push()
    machine.wire.refuse = let_pass
    machine.write(make_conversation("second"))
    machine.push()
    assert AgentSession.objects.count() == 1
    assert machine.pusher.backlog.refused_count == 1
    assert "The batch has format 1." in machine.told[0]
    machine.outbox.try_again()
    machine.push()
    assert AgentSession.objects.count() == 2


@pytest.mark.parametrize(
    ("status", "headers", "sentence"),
    [
        (401, {}, "rejected the API key"),
        (403, {}, "not allowed to send"),
        (404, {}, "is not a Plimsoll server"),
        (301, {"Location": "https://elsewhere.example/"}, "Use 'https://elsewhere.example/'"),
        (200, {}, "does not respond like a Plimsoll server"),
    ],
)
def test_wrong_key_or_address_stops_with_a_sentence(
    key: str, tmp_path: Path, status: int, headers: dict[str, str], sentence: str
) -> None:
    machine = Machine(tmp_path, key)
    machine.wire.refuse = answer_with(status, headers=headers)
    with pytest.raises(WrongSetup, match=sentence):
        machine.server.ask_rules()
    if status in (401, 403):
        machine.write(make_conversation())
        with pytest.raises(WrongSetup, match=sentence):
            machine.push()
        assert machine.pusher.backlog.batch_count == 1


def test_page_of_something_in_between_acknowledges_nothing(key: str, tmp_path: Path) -> None:
    machine = Machine(tmp_path, key)
    machine.write(make_conversation())
    machine.wire.refuse = answer_with(200, content=b"<html>Sign in to the network</html>")
    machine.push(steps=2)
    assert machine.pusher.backlog.batch_count == 1
    assert "not from Plimsoll" in machine.told[0]


def test_team_that_turns_content_off_is_sent_no_more_of_it(team: Team, key: str, tmp_path: Path) -> None:
    keep_content(team)
    machine = Machine(tmp_path, key)
    machine.write(make_conversation("first"))
    machine.push()
    TeamPolicy.objects.create(team=team, version=2, stores_content=False)
    machine.write(make_conversation("second"))
    machine.push()  # told by this answer, which kept no content of it
    machine.write(make_conversation("third"))
    machine.push()
    assert [b"Draw the chart." in body for body in machine.wire.bodies] == [True, True, False]
    kept = EntrySegment.objects.exclude(content=None).values_list("session__external_id", flat=True)
    assert set(kept) == {make_conversation("first").session_id}


def test_another_database_gets_everything(key: str, tmp_path: Path) -> None:
    machine = Machine(tmp_path, key)
    machine.write(make_conversation())
    machine.push()
    AgentSession.objects.all().delete()
    machine.restart()
    machine.push()
    assert not AgentSession.objects.exists()  # deleted there: not brought back
    Team.objects.update(created_at="2020-01-01T00:00:00Z")
    machine.restart()
    machine.push()
    assert AgentSession.objects.count() == 1


def test_server_that_went_back_to_a_backup_is_sent_what_it_lost(
    key: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = Machine(tmp_path, key)
    machine.write(make_conversation("first"))
    machine.push()
    machine.write(make_conversation("second"))
    machine.push()
    AgentSession.objects.filter(external_id=make_conversation("second").session_id).delete()
    monkeypatch.setattr("dashboard.api.pushed_lines.find_restoration", lambda: 4711)
    machine.push()
    assert AgentSession.objects.count() == 1  # nothing new, so nobody asked yet
    machine.write(make_conversation("third"))
    machine.push()
    assert AgentSession.objects.count() == 3
    assert len(machine.wire.bodies) == 4
    assert "different database" in machine.told[0]
    machine.restart()
    machine.push()
    assert len(machine.wire.bodies) == 4


def test_what_waits_is_kept_for_a_server_that_went_back_to_a_backup(
    key: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = Machine(tmp_path, key)
    path = machine.write(make_conversation())
    machine.wire.refuse = _drop_connection
    machine.push(steps=3)
    path.unlink()
    machine.wire.refuse = let_pass
    monkeypatch.setattr("dashboard.api.pushed_lines.find_restoration", lambda: 4711)
    machine.restart()
    machine.push()
    assert AgentSession.objects.get().call_count == 5


def test_what_waits_is_not_sent_to_another_team(key: str, tmp_path: Path) -> None:
    machine = Machine(tmp_path, key)
    path = machine.write(make_conversation())
    machine.wire.refuse = _drop_connection
    machine.push(steps=3)
    path.unlink()
    machine.wire.refuse = let_pass
    Team.objects.update(created_at="2020-01-01T00:00:00Z")
    machine.restart()
    machine.push()
    assert not AgentSession.objects.exists()


def test_refused_batches_do_not_keep_others_from_being_read(
    key: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outbox, "LARGEST_WAITING_BYTES", 1)
    machine = Machine(tmp_path, key)
    machine.write(make_conversation("first"))
    machine.wire.refuse = answer_with(422, json={"detail": "The batch has format 1."})
    machine.push()
    machine.wire.refuse = let_pass
    machine.write(make_conversation("second"))
    machine.push()
    assert AgentSession.objects.get().external_id == make_conversation("second").session_id
    assert machine.pusher.backlog == Backlog(batch_count=0, size_bytes=0, refused_count=1)


def test_oldest_refused_batches_go_when_they_are_too_large_together(
    key: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = Machine(tmp_path, key)
    machine.wire.refuse = answer_with(422, json={"detail": "The batch has format 1."})
    machine.write(make_conversation("first"))
    machine.push()
    size_bytes = sum(size for (size,) in machine.outbox._connection.execute("SELECT length(body) FROM batch"))
    monkeypatch.setattr(outbox, "LARGEST_REFUSED_BYTES", int(size_bytes * 1.5))
    machine.write(make_conversation("second"))
    machine.push()
    assert machine.pusher.backlog.refused_count == 1
    assert f"{len(make_conversation('first').lines)} lines were dropped" in machine.told[-1]
    machine.wire.refuse = let_pass
    machine.outbox.try_again()
    machine.push()
    assert AgentSession.objects.get().external_id == make_conversation("second").session_id


def test_last_line_without_an_ending_is_sent_once_it_is_quiet(key: str, tmp_path: Path) -> None:
    machine = Machine(tmp_path, key)
    talk = make_conversation()
    path = machine.write(talk, end=3)
    with path.open("ab") as file:
        file.write(talk.lines[3].rstrip())
    machine.push()
    assert _count_lines() == 3
    os.utime(path, (time.time() - 60, time.time() - 60))
    machine.push()
    assert _count_lines() == 4
    machine.restart()
    machine.push()
    assert len(machine.wire.bodies) == 2
    with path.open("ab") as file:
        file.write(b"\n" + talk.lines[4])
    machine.push()
    assert _count_lines() == 5


def _count_lines() -> int:
    return sum(EntrySegment.objects.values_list("entry_count", flat=True))


def test_forged_facts_are_dropped_and_counted(team: Team, key: str, client: Client) -> None:
    def send(facts: list[list[object]], **more: object) -> Any:
        body = {"format": 1, "sessions": [{"session": "s1", "lines": [[fact] for fact in facts]}], **more}
        return client.post(
            "/api/v1/ingest/lines", body, content_type="application/json", headers={"Authorization": f"Bearer {key}"}
        )

    at = "2026-05-01T10:00:00Z"
    usage = {"input_tokens": 5, "output_tokens": 7}
    facts: list[list[object]] = [
        ["good", "answer", "assistant", None, at, *[None, False, False, "s1", None, None, None, 9], ["c1", usage, "m"]],
        ["report", "answer", "report", None, at, *[None, False, False, "s1", None, None, None, 9], ["c2", usage]],
        ["minus", "answer", "assistant", None, at, *[None, False, False, "s1", None, None, None, -9], ["c3", usage]],
        ["kind", "hook", "assistant", None, at],
        ["clock", "prompt", "user", None, "2026-05-01T10:00:00"],
        ["bare", "boundary", "system", None, at],
    ]
    assert send(facts).status_code == 200
    assert list(AgentSession.objects.get().calls.values_list("call_id", flat=True)) == ["c1"]
    assert Drop.objects.get(reason=NOT_A_LINE).count == 5
    assert send([["x", "no such kind", "user"]]).status_code == 422
    assert send([], format=2).json()["detail"].startswith("The batch has format 2")
    assert send([], sessions=[{"session": ""}]).status_code == 422


def test_lines_of_another_accounts_session_are_dropped_and_named(team: Team, key: str, tmp_path: Path) -> None:
    machine = Machine(tmp_path, key)
    (talk, _) = make_talks()
    take_in(
        Origin(team, User.objects.get(username="alice"), "push"), Piece(talk.lines[0], "first line", talk.session_id)
    )
    machine.write(talk)
    machine.push()
    assert AgentSession.objects.get().developer == "alice"
    assert machine.pusher.tally.refused_lines == len(talk.lines)
    assert any("belong to another account" in sentence for sentence in machine.told)
    assert machine.pusher.backlog == Backlog(batch_count=0, size_bytes=0, refused_count=0)

"""The real client resumes what Plimsoll compacted: summary, kept messages and restored files reach the model, in this
order, and nothing that was summarised does. Figures: --log-cli-level=INFO."""

import json
import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone
from pytest_django import Settings

from dashboard.ingest.folder_watch import FolderWatch
from dashboard.ingest.follow import Follower
from dashboard.ingest.follow_delivery import IntakeDelivery
from dashboard.ingest.intake import Origin
from dashboard.models import AgentSession, ApiCall, ResumedFile, RunKind, RunState, SummarizerName, Team, TeamPolicy
from dashboard.runs.choices import RunChoices
from dashboard.runs.resume import write_beside
from dashboard.runs.resumed_files import look_at
from dashboard.runs.watched_places import FileState
from tests.builders import make_team
from tests.dashboard.runs.world import run_now
from tests.real_client.client import SECRET, TURNS, Client, hold_session, list_texts, make_client
from tests.real_client.scripted_api import ScriptedApi

pytestmark = pytest.mark.django_db(transaction=True)
KEPT_RESULTS = 5  # of a micro-compaction
PIVOT = 5  # the turn that partial compactions begin or end at
log = logging.getLogger(__name__)
EARLY, LATE = range(PIVOT), range(PIVOT, TURNS)


@dataclass
class Desk:
    """A Plimsoll that follows the client's folder."""

    client: Client
    team: Team
    session_id: str

    def follow(self) -> None:
        origin = Origin(self.team, None, "follow")
        delivery = IntakeDelivery(origin)
        follower = Follower(origin, (self.client.projects,), delivery, watch=FolderWatch(is_polling=True))
        follower.work(wait_seconds=0)
        while follower.waiting_count:
            follower.work(wait_seconds=0)

    def find(self, session_id: str) -> AgentSession:
        return AgentSession.objects.get(team=self.team, external_id=session_id)


@pytest.fixture(scope="module")
def held(tmp_path_factory: pytest.TempPathFactory) -> tuple[Client, str]:
    """A client and a session that it held; tests leave the session as it is."""
    client = make_client(tmp_path_factory.mktemp("client"))
    return client, hold_session(client)


@pytest.fixture
def desk(held: tuple[Client, str], settings: Settings) -> Desk:
    client, session_id = held
    settings.LOCAL_MODE = True
    settings.FOLLOW_ROOTS = (client.projects,)
    team = make_team("Harbour", owner="alice")
    TeamPolicy.objects.create(team=team, version=1, stores_content=True)
    return Desk(client, team, session_id)


def _resume(desk: Desk, session_id: str, kind: RunKind) -> tuple[ResumedFile, dict[str, Any]]:
    """Compacted, written beside the original, resumed by the client: the row, and the first request it sent."""
    desk.follow()
    session = desk.find(session_id)
    original = desk.client.find_file(session_id)
    before = (original.read_bytes(), original.stat().st_mtime_ns)
    pivot_uuid = _find_prompt(original, f"PROMPT-{PIVOT}:") if kind.needs_pivot else ""
    summarizer = SummarizerName.NONE if kind.is_micro else SummarizerName.EXTRACTIVE
    # The usage of the fake API is invented, so it need not agree with the lines.
    choices = RunChoices(kind=kind, summarizer=summarizer, pivot_uuid=pivot_uuid, accept_difference=True)
    run = run_now(session, choices)
    assert run.state == RunState.DONE, run.failure_sentence
    row = write_beside(run, None, by=None, now=timezone.now())
    assert look_at(row) is FileState.UNCHANGED
    with ScriptedApi() as api:
        desk.client.say(api, "GO-ON", "--resume", row.external_id)
    assert (original.read_bytes(), original.stat().st_mtime_ns) == before
    assert look_at(row) is FileState.CONTINUED
    return row, api.requests[0]


def _find_prompt(original: Path, words: str) -> str:
    """The uuid of the message that begins with these words."""
    lines = map(json.loads, original.read_text().splitlines())
    return str(next(line["uuid"] for line in lines if str(line.get("message", {}).get("content")).startswith(words)))


def _find(texts: list[tuple[str, str]], words: str) -> list[int]:
    return [place for place, (_, text) in enumerate(texts) if words in text]


def _tell(kind: RunKind, row: ResumedFile, body: dict[str, Any], texts: list[tuple[str, str]]) -> None:
    old = sum(("assistant", f"ANSWER-{turn}") in texts for turn in range(2 * TURNS))
    files = sum(bool(_find(texts, f"CONTENT-{turn} ")) for turn in range(2 * TURNS))
    size = len(json.dumps(body["messages"]))
    log.info(
        "%s: file %d bytes; sent %d messages of %d blocks, %d answers, %d files, %d bytes",
        *(kind, row.size_bytes, len(body["messages"]), len(texts), old, files, size),
    )


@pytest.mark.parametrize("kind", [RunKind.FULL, RunKind.UP_TO, RunKind.FROM])
def test_the_client_resumes_a_compacted_session(desk: Desk, kind: RunKind) -> None:
    row, body = _resume(desk, desk.session_id, kind)
    texts = list_texts(body)
    _tell(kind, row, body, texts)
    kept, gone = {RunKind.FULL: ((), range(TURNS)), RunKind.UP_TO: (LATE, EARLY), RunKind.FROM: (EARLY, LATE)}[kind]
    (summary,) = _find(texts, "Summary:")
    (go_on,) = _find(texts, "GO-ON")
    said = [("", "") if place == summary else text for place, text in enumerate(texts)]  # a summary may quote anything
    for turn in gone:
        for words in ("PROMPT-{}:", "READING-{}", "ANSWER-{}", "toolu_{:04d}"):
            assert not _find(said, words.format(turn))
    for turn in kept:
        (prompt,), (result,) = _find(said, f"PROMPT-{turn}:"), _find(said, f"tool_result toolu_{turn:04d}")
        (answer,) = _find(said, f"ANSWER-{turn}")
        assert prompt < result < answer
        assert f"CONTENT-{turn} " in said[result][1]
        assert (summary < prompt) if kind is RunKind.UP_TO else (answer < summary)
    restored = [place for turn in gone for place in _find(said, f"CONTENT-{turn} ")]
    assert len(restored) == min(5, len(gone))  # as many files come back at most
    last_kept = max((_find(said, f"ANSWER-{turn}")[0] for turn in kept), default=0)
    for place in restored:
        assert max(summary, last_kept) < place < go_on
        assert said[place][0] == "user"
    if TURNS - 2 in kept:
        assert any(SECRET in text for _, text in texts)  # of the followed file, not of the redacted store
    _check_announcements(body)


def test_the_client_resumes_a_micro_compacted_session(desk: Desk) -> None:
    row, body = _resume(desk, desk.session_id, RunKind.MICRO_IDLE)
    texts = list_texts(body)
    _tell(RunKind.MICRO_IDLE, row, body, texts)
    _check_cleared(texts, range(TURNS))
    assert any(SECRET in text for _, text in texts)


def test_what_the_client_itself_kept_of_an_earlier_compaction_is_resumed_in_its_place(desk: Desk) -> None:
    session_id = hold_session(desk.client)
    with ScriptedApi([[{"type": "text", "text": "<summary>NATIVE-SUMMARY</summary>"}]]) as api:
        desk.client.say(api, "/compact", "--resume", session_id)
    hold_session(desk.client, first_turn=TURNS, session_id=session_id)
    row, body = _resume(desk, session_id, RunKind.MICRO_IDLE)
    texts = list_texts(body)
    _tell(RunKind.MICRO_IDLE, row, body, texts)
    (summary,) = _find(texts, "NATIVE-SUMMARY")
    _check_cleared(texts, range(TURNS, 2 * TURNS))
    assert summary < _find(texts, f"PROMPT-{TURNS}:")[0]
    assert not _find(texts, "ANSWER-0")


def _check_cleared(texts: list[tuple[str, str]], turns: range) -> None:
    for turn in turns:
        (prompt,), (answer,) = _find(texts, f"PROMPT-{turn}:"), _find(texts, f"ANSWER-{turn}")
        (result,) = _find(texts, f"tool_result toolu_{turn:04d}")
        assert prompt < result < answer
        is_cleared = turn < turns.stop - KEPT_RESULTS
        assert ("[Old tool result content cleared]" in texts[result][1]) is is_cleared
        assert (f"CONTENT-{turn} " in texts[result][1]) is not is_cleared


def _check_announcements(body: dict[str, Any]) -> None:
    """The client announces its tools on demand itself: once, whatever was put back."""
    deferred = json.dumps(body["messages"])
    assert deferred.count("EnterWorktree") <= 1


def test_a_resumed_session_is_linked_to_its_origin_and_counts_nothing_twice(desk: Desk) -> None:
    session_id = desk.session_id
    row, _ = _resume(desk, session_id, RunKind.FROM)
    desk.follow()
    resumed, origin = desk.find(row.external_id), desk.find(session_id)
    assert resumed.forked_from == session_id
    assert origin.call_count == 2 * TURNS
    calls = ApiCall.objects.filter(session=resumed)
    assert calls.filter(is_counted=False).count() == 2 * PIVOT
    assert calls.filter(is_counted=True).count() == 1
    assert not ApiCall.objects.filter(session=origin, is_counted=False).exists()

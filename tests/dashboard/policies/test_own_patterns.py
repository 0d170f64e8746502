"""A team's own patterns from the form and the API to what is stored; stored ones that cannot be used any more."""

import json
import time
from typing import Any

import pytest
from django.test import Client

from dashboard.ingest.intake import Origin, take_in
from dashboard.ingest.observed import Piece
from dashboard.models import AgentSession, EntrySegment, FollowedFile, Team, TeamPolicy
from dashboard.policies.changes import change_policy
from dashboard.policies.in_force import find_policy
from dashboard.runs.texts import clean_text
from tests.builders import make_team, make_user
from tests.compaction.making import make_line
from tests.dashboard.ingest.conversation import make_conversation
from tests.dashboard.policies.test_policy_pages import STORAGE, client_of
from tests.dashboard.policies.test_redaction_page import REDACTION, TRY, redaction_form

pytestmark = pytest.mark.django_db
API_STORAGE = "/api/v1/teams/harbour/storage"
SESSION = "11111111-2222-4333-8444-555555555555"
HOSTILE = "(?x)(a{1,9}) {1,9}b"
UNUSABLE = {"badge": "B-[0-9]{6}", "behind": r"(?<=berth )[0-9]{4}"}
FEW_SECONDS = 30


@pytest.fixture
def team() -> Team:
    return make_team("Harbour", owner="olga")


@pytest.fixture
def olga(team: Team) -> Client:
    return client_of("olga")


def put(client: Client, **body: Any) -> Any:
    return client.put(API_STORAGE, {"base_version": 0, "stores_content": True, **body}, content_type="application/json")


def store(team: Team, **patterns: str) -> None:
    """As a version that matched patterns with another engine saved them."""
    TeamPolicy.objects.create(team=team, version=1, stores_content=True, own_patterns=patterns)


def send(team: Team, text: str) -> None:
    line = make_line("user", sessionId=SESSION, message={"role": "user", "content": text})
    take_in(Origin(team, None, "api"), Piece(line, "talk"))


def test_pattern_that_never_ended_is_refused_and_ingest_goes_on(team: Team, olga: Client) -> None:
    """With backtracking, 40 characters took minutes, and nothing could stop the process."""
    text = "a" * 100_000
    began = time.monotonic()
    for url in (TRY, REDACTION):
        answer = olga.post(url, redaction_form(("own", HOSTILE), sample=text[:10_000]))
        assert answer.status_code == 422
        assert "The pattern own uses (?x, which is not supported" in answer.text
    refused = put(olga, own_patterns={"own": HOSTILE})
    assert refused.status_code == 422
    assert "uses (?x" in refused.json()["detail"]
    assert not TeamPolicy.objects.exists()
    # The same without verbose mode is a pattern like any other.
    assert olga.post(REDACTION, redaction_form(("own", "(a{1,9}){1,9}b"))).status_code == 302
    assert put(olga, base_version=1, own_patterns={"own": "(a{1,9}){1,9}b"}).status_code == 200
    send(team, text)
    assert EntrySegment.objects.exclude(content=None).exists()
    assert time.monotonic() - began < FEW_SECONDS


def test_patterns_too_large_together_are_refused_at_a_field(team: Team, olga: Client) -> None:
    rows = [(f"own-{n}", "[a-z]{200}x") for n in range(6)]
    for url in (TRY, REDACTION):
        answer = olga.post(url, redaction_form(*rows, sample="abc"))
        assert answer.status_code == 422
        assert "together they compile to more than" in answer.text
    assert put(olga, own_patterns=dict(rows)).status_code == 422


def test_no_content_is_stored_while_a_stored_pattern_cannot_be_used(team: Team, olga: Client) -> None:
    store(team, **UNUSABLE)
    send(team, "berth 4711 for B-123456")
    assert AgentSession.objects.get().entry_count == 1
    assert not EntrySegment.objects.exclude(content=None).exists()
    assert clean_text(team, "berth 4711") == "[redacted:behind]"
    assert "1 stored pattern can no longer be used" in olga.get(STORAGE).text
    page = olga.get(REDACTION).text
    assert "1 stored pattern can no longer be used" in page
    assert "The pattern behind uses (?&lt;=, which is not supported" in page
    assert 'Turn off<span class="visually-hidden"> behind' not in page, "that would not unblock content"
    checks = json.loads(olga.get("/health/ready").content)["checks"]
    assert checks["redaction patterns"]["ok"] is False
    assert checks["redaction patterns"]["finding"].startswith(
        "1 pattern of 1 team cannot be used, so no content is stored"
    )
    assert "redaction patterns" in olga.get("/health/").text


def test_content_is_stored_again_when_the_pattern_is_changed(team: Team, olga: Client) -> None:
    store(team, **UNUSABLE)
    FollowedFile.objects.create(team=team, path="/talk.jsonl")
    repaired = [("badge", UNUSABLE["badge"]), ("behind", "berth [0-9]{4}")]
    assert olga.post(REDACTION, redaction_form(*UNUSABLE.items(), base=1)).status_code == 422
    assert olga.post(REDACTION, redaction_form(*repaired, base=1)).status_code == 302
    assert not FollowedFile.objects.exists(), "followed files are read again, so that content is filled in"
    send(team, "berth 4711 for B-123456")
    assert EntrySegment.objects.exclude(content=None).exists()
    assert "redaction patterns" not in json.loads(olga.get("/health/ready").content)["checks"]


def test_thresholds_can_be_changed_beside_a_pattern_that_cannot_be_used(team: Team) -> None:
    store(team, **UNUSABLE)
    current = find_policy(team)
    wanted = {**vars(current), "thresholds": {"preset": "early"}}
    changed = change_policy(team, type(current)(**wanted), by=make_user("olga"), base_version=1)
    assert (changed.version, changed.own_patterns) == (2, UNUSABLE)


@pytest.mark.parametrize("pattern", ["[a-z]", "e"])
def test_pages_of_a_session_can_be_read_where_a_pattern_withholds_its_lines(
    team: Team, olga: Client, pattern: str
) -> None:
    store(team, letters=pattern)
    talk = make_conversation()
    take_in(Origin(team, make_user("olga"), "push"), Piece(talk.data, "talk", talk.session_id))
    session = AgentSession.objects.get()
    assert session.call_count > 2
    for tab in ("transcript", "context", "compactions", "breaks", "notes"):
        assert olga.get(f"/sessions/{session.pk}/{tab}/").status_code == 200, tab
    assert "Draw the chart" in talk.data.decode()
    assert "Draw the chart" not in olga.get(f"/sessions/{session.pk}/transcript/").text
    assert olga.get(f"/sessions/{session.pk}/compact/").status_code == 200

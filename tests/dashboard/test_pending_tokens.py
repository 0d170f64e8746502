"""What arrived since the last call: in the gauge, its level, lists, tiles, the check and compactions, one number."""

from collections.abc import Callable

import pytest
from django.test import Client
from django.utils import timezone

from dashboard.agents.checks import check_session
from dashboard.ingest.intake import Origin, take_in
from dashboard.ingest.observed import Piece
from dashboard.models import AgentSession, Job, Team, TeamPolicy
from dashboard.runs.basis import read_basis
from tests.builders import make_session, make_team
from tests.dashboard.ingest.conversation import Conversation
from tests.visitors import read, read_words, sign_in

pytestmark = pytest.mark.django_db
LAST_CALL = 148_000  # tokens


@pytest.fixture
def team() -> Team:
    team = make_team("Harbour", owner="alice")
    TeamPolicy.objects.create(team=team, version=1, stores_content=True)
    return team


def take(team: Team, talk: Conversation) -> AgentSession:
    take_in(Origin(team, None, "import"), Piece(talk.data, "test", talk.session_id))
    return AgentSession.objects.get()


@pytest.fixture
def talk() -> Conversation:
    """A call below the auto-compact line, then a result of 60,000 characters: 20,000 tokens with the margin."""
    talk = Conversation()
    talk.now = timezone.now()
    talk.ask()
    talk.answer("msg_1", read=100_000, written=LAST_CALL - 100_000)
    talk.result("x" * 60_000)
    return talk


def test_result_after_the_last_call_moves_the_gauge_and_its_level(team: Team, talk: Conversation) -> None:
    session = take(team, talk)
    measured = session.context_tokens - session.pending_tokens
    assert session.pending_tokens == 20_000
    assert session.calls.get().context_tokens == measured
    assert session.level == "auto-compact"
    assert session.threads.get().pending_tokens == 20_000


def test_now_is_the_same_number_everywhere(team: Team, talk: Conversation) -> None:
    session = take(team, talk)
    now, pending = session.context_tokens, session.pending_tokens
    assert read_basis(session).before_tokens == now
    check = check_session(session, now=timezone.now())
    assert (check.reading.used_tokens, check.used_origin) == (now, "estimated")
    alice = sign_in("alice")
    shown = f"~{now / 1000:.1f}k"
    for path in ("/", "/sessions/", f"/sessions/{session.pk}/", f"/sessions/{session.pk}/context/"):
        assert shown in read_words(alice, path), path
    for path in (f"/api/v1/sessions/{session.pk}", "/api/v1/sessions"):
        answer = alice.get(path).json()
        told = answer["sessions"][0] if "sessions" in answer else answer
        assert (told["context_tokens"], told["pending_tokens"]) == (now, pending), path
    assert f"{now - pending:,} tokens measured, about 20,000 estimated" in read_words(alice, f"/sessions/{session.pk}/")


def test_crossing_is_answered_when_a_result_crosses_the_line(team: Team, talk: Conversation) -> None:
    *before, result = talk.lines
    talk.lines = before
    take(team, talk)
    assert not Job.objects.filter(kind="answer_crossing").exists()
    talk.lines = [result]
    take(team, talk)
    assert Job.objects.filter(kind="answer_crossing").count() == 1


def test_a_call_measures_what_had_arrived(team: Team, talk: Conversation) -> None:
    take(team, talk)
    talk.answer("msg_2", read=LAST_CALL, written=15_000)
    session = take(team, talk)
    assert session.pending_tokens == 0
    assert session.context_tokens == session.calls.get(call_id="msg_2").context_tokens


def test_results_between_the_lines_of_one_answer_are_not_in_its_usage(team: Team) -> None:
    talk = Conversation()
    talk.ask()
    talk.answer("msg_1", written=30_000, lines=1)
    talk.result("y" * 3_000)
    talk.answer("msg_1", written=30_000, lines=1)
    talk.result("z" * 3_000)
    assert take(team, talk).pending_tokens == 2_000


def test_after_a_compaction_all_is_an_estimate_with_system_and_tools(team: Team) -> None:
    talk = Conversation()
    talk.ask("q" * 300)
    talk.answer("msg_1", written=20_097)  # system and tools: 20,000
    talk.answer("msg_2", read=20_000, written=130_000)
    talk.compact(150_000, summary="s" * 4_000, after=9_000)
    session = take(team, talk)
    assert (session.context_tokens, session.pending_tokens) == (29_000, 29_000), "the size a boundary reports is whole"
    talk.ask("p" * 300)
    session = take(team, talk)
    assert (session.context_tokens, session.pending_tokens) == (29_100, 29_100)
    assert read_basis(session).before_tokens == 29_100
    assert "No call has measured it yet" in read_words(sign_in("alice"), f"/sessions/{session.pk}/")
    talk.answer("msg_3", read=20_000, written=12_000)
    assert take(team, talk).pending_tokens == 0


def rewind(talk: Conversation) -> None:
    """Go on from the first answer, as if the second had not been."""
    talk.ask()
    talk.answer("msg_1", written=20_000)
    kept = talk.parent
    talk.ask("A way that leads nowhere. " * 400)
    talk.answer("msg_2", read=20_000, written=120_000)
    talk.result("x" * 3_000)
    talk.parent = kept
    talk.ask("Another way.")


def type_twice(talk: Conversation) -> None:
    """A prompt that was interrupted and typed again."""
    talk.ask()
    talk.answer("msg_1", written=20_000)
    kept = talk.parent
    talk.ask("words " * 4_000)
    talk.parent = kept
    talk.ask("words " * 4_000)


def lose_a_line(talk: Conversation) -> None:
    talk.ask()
    talk.answer("msg_1", written=20_000)
    talk.result("x" * 9_000)
    talk.ask("y" * 900)
    del talk.lines[-2]


def begin_midway(talk: Conversation) -> None:
    talk.parent = "in another file"
    talk.ask()
    talk.answer("msg_1", written=90_000)
    talk.result("x" * 900)


def compact_midway(talk: Conversation) -> None:
    begin_midway(talk)
    talk.compact(90_000, summary="s" * 4_000)


def go_on_over_parallel_results(talk: Conversation) -> None:
    talk.ask()
    talk.answer("msg_1", written=20_000, lines=1)
    first = talk.parent
    talk.result("x" * 3_000)
    talk.parent = first
    talk.answer("msg_1", written=20_000, lines=1)
    talk.result("z" * 3_000)


@pytest.mark.parametrize(
    ("make", "tokens"),
    [
        (rewind, 20_053 + 4),
        (type_twice, 20_053 + 8_000),
        (lose_a_line, 20_053 + 300),
        (begin_midway, 90_053 + 300),
        (compact_midway, 44_000 + 1_343),
        (go_on_over_parallel_results, 20_053 + 2_000),
    ],
)
def test_gauge_and_compaction_follow_the_same_branch(
    team: Team, make: Callable[[Conversation], None], tokens: int
) -> None:
    talk = Conversation()
    make(talk)
    session = take(team, talk)
    assert session.context_tokens == tokens
    assert read_basis(session).before_tokens == tokens


def _list_names(client: Client, query: str) -> list[str]:
    return [each["external_id"] for each in client.get(f"/api/v1/sessions{query}").json()["sessions"]]


def test_soon_is_shown_sorted_and_counted(team: Team) -> None:
    far = {"level": "error", "level_rank": 3, "percent_left": 5, "auto_line_tokens": 167_000, "window_tokens": 200_000}
    make_session(team, "slow", **far)
    make_session(
        team,
        "fast",
        **(far | {"level": "ok", "level_rank": 1, "percent_left": 30}),
        context_tokens=120_000,
        is_soon=True,
    )
    make_session(team, "past", **(far | {"level": "auto-compact", "level_rank": 4, "percent_left": 0}))
    alice = sign_in("alice")
    assert _list_names(alice, "?sort=risk") == ["past", "fast", "slow"]
    assert _list_names(alice, "?level=soon") == ["fast"]
    overview = read_words(alice, "/")
    assert "1 past auto-compact, 1 soon" in overview
    words = read_words(alice, "/sessions/?level=soon")
    assert "ok soon" in words
    assert "close to auto-compact" in words
    assert alice.get("/api/v1/overview").json()["soon"] == 1


def test_soon_is_worked_out_from_the_growth_of_the_calls(team: Team) -> None:
    talk = Conversation()
    talk.now = timezone.now()
    talk.ask()
    for number in range(30):
        talk.answer(f"msg_{number}", read=20_000 + number * 4_700, written=4_700)
        talk.result()
    session = take(team, talk)
    assert session.level != "auto-compact"
    assert session.is_soon
    assert "at most 5 calls or 2 turns left" in read(sign_in("alice"), f"/sessions/{session.pk}/")

from datetime import timedelta
from decimal import Decimal
from itertools import pairwise
from math import ceil

import pytest
from django.db import connection
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dashboard.ingest.intake import Origin, take_in
from dashboard.ingest.observed import ObservedLine, Piece
from dashboard.ingest.segments import read_segment_lines
from dashboard.ingest.transcripts import name_session
from dashboard.models import (
    AgentSession,
    ApiCall,
    CacheBreak,
    Drop,
    EntrySegment,
    ObservedCompaction,
    SessionHour,
    Team,
    TeamPolicy,
    Thread,
    User,
)
from tests.builders import make_team
from tests.dashboard.ingest.conversation import Conversation, make_agent, make_conversation
from tests.dashboard.ingest.database_state import read_state

pytestmark = pytest.mark.django_db
EXAMPLES = 50 if connection.vendor == "postgresql" else 500  # the second round looks for what the database changes


@pytest.fixture
def origin() -> Origin:
    team = make_team("Harbour", owner="alice")
    TeamPolicy.objects.create(team=team, version=1, stores_content=True)
    return Origin(team, User.objects.get(username="alice"), "import")


def send(origin: Origin, talk: Conversation, data: bytes | None = None) -> None:
    take_in(origin, Piece(talk.data if data is None else data, "test", talk.session_id, talk.agent_id))


def test_session_has_its_calls_breaks_compactions_and_totals(origin: Origin) -> None:
    talk, agent = make_conversation(), make_agent()
    send(origin, talk)
    send(origin, agent)
    session = AgentSession.objects.get()
    assert session.external_id == talk.session_id
    assert (session.title, session.project, session.branch, session.developer) == (
        "Charts of the harbour", "harbour", "main", "alice",
    )  # fmt: skip
    assert (session.call_count, session.break_count, session.rebuild_count) == (6, 1, 1)
    assert (session.compaction_count, session.turn_count, session.problem_count) == (1, 3, 1)
    assert session.input_tokens == 6 * 3
    assert session.read_tokens == 50_000 + 10_000 + 10_000
    assert session.write_5m_tokens == 50_000 + 2_000 + 45_000 + 20_000 + 8_000
    assert session.spent_usd == sum(call.cost_usd or 0 for call in ApiCall.objects.all())
    assert session.spent_usd > 0
    assert set(Thread.objects.values_list("agent_id", "call_count")) == {("", 5), ("a1b2c3", 1)}
    found = CacheBreak.objects.get(kind="break")
    assert (found.cause, found.expected_tokens, found.read_tokens, found.recreated_tokens) == (
        "ttl_expired_5m", 52_000, 10_000, 42_000,
    )  # fmt: skip
    assert session.lost_usd == found.lost_usd
    compaction = ObservedCompaction.objects.get()
    assert (compaction.trigger, compaction.before_tokens, compaction.after_tokens) == ("auto", 167_000, 30_003)
    assert [item["kind"] for item in compaction.restored or []] == ["file"]
    assert sum(hour.call_count for hour in SessionHour.objects.all()) == 6


def test_estimated_output_is_marked_and_a_stop_reason_vouches(origin: Origin) -> None:
    send(origin, make_conversation())
    by_id = {call.call_id: call for call in ApiCall.objects.all()}
    assert not by_id["msg_harbour_1"].is_output_estimated
    assert by_id["msg_harbour_5"].is_output_estimated
    assert by_id["msg_harbour_5"].output_tokens == ceil(2 * len("Long words. " * 40) / 3.4)


def test_repeated_batch_changes_nothing(origin: Origin) -> None:
    talk = make_conversation()
    send(origin, talk)
    before, version = read_state(), AgentSession.objects.get().version
    for _ in range(2):
        send(origin, talk)
    assert read_state() == before
    assert AgentSession.objects.get().version == version


def _cut(data: bytes, cuts: list[int]) -> list[bytes]:
    """The lines of a transcript in stretches; the cuts are line numbers."""
    lines = data.splitlines(keepends=True)
    places = sorted({0, len(lines), *(cut % (len(lines) + 1) for cut in cuts)})
    return [b"".join(lines[start:end]) for start, end in pairwise(places)]


WHOLE: dict[str, object] = {}  # the state after one go, worked out once for all examples


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_split_shuffled_and_repeated_pieces_give_the_same_state(origin: Origin, data: st.DataObject) -> None:
    talk, agent, fork = make_conversation(), make_agent(), _make_fork()
    if "state" not in WHOLE:
        for whole in (talk, agent, fork):
            send(origin, whole)
        WHOLE["state"] = read_state()
    _forget_everything()
    pieces = [
        (whole, piece)
        for whole in (talk, agent, fork)
        for piece in _cut(whole.data, data.draw(st.lists(st.integers(0, 40), max_size=1)))
    ]
    for whole, piece in data.draw(st.permutations(pieces * 3)):
        send(origin, whole, piece)
    assert read_state() == WHOLE["state"]


def _make_fork() -> Conversation:
    """A session that begins with the lines of the other one and goes its own way."""
    fork = Conversation("fork")
    fork.lines = make_conversation().lines[:4]
    fork.parent = None
    fork.wait(3600).ask("Another way.")
    fork.answer("msg_fork_1", read=40_000, written=100)
    return fork


def _forget_everything() -> None:
    AgentSession.objects.all().delete()


def test_forked_calls_count_once_and_the_fullest_copy_counts(origin: Origin) -> None:
    first, fork = Conversation("first"), Conversation("second")
    first.ask()
    first.answer("msg_shared", written=10_000, output=80, lines=1)
    fork.lines = [first.lines[0]]
    fork.answer("msg_shared", written=10_000, output=20, lines=1, stop=None)
    for whole in (fork, first):
        send(origin, whole)
    counted = ApiCall.objects.get(call_id="msg_shared", is_counted=True)
    assert (counted.session.external_id, counted.output_tokens) == (first.session_id, 80)
    assert AgentSession.objects.get(external_id=fork.session_id).call_count == 0
    assert AgentSession.objects.get(external_id=fork.session_id).forked_from == first.session_id
    assert sum(session.spent_usd for session in AgentSession.objects.all()) == counted.cost_usd


def test_late_lines_are_judged_again_where_they_belong(origin: Origin) -> None:
    """Without the second answer the third looks as if the cache had been lost at once; with it, five minutes passed."""
    talk = make_conversation()
    lines = talk.data.splitlines(keepends=True)
    late = [line for line in lines if b"msg_harbour_2" in line or b"depth 12" in line]
    send(origin, talk, b"".join(line for line in lines if line not in late))
    assert CacheBreak.objects.get(kind="break").expected_tokens == 50_000
    send(origin, talk, b"".join(late))
    found = CacheBreak.objects.get(kind="break")
    assert (found.expected_tokens, found.previous_call_id) == (52_000, "msg_harbour_2")
    assert AgentSession.objects.get().call_count == 5


def test_calls_before_the_first_known_one_move_the_numbers(origin: Origin) -> None:
    talk = make_conversation()
    lines = talk.data.splitlines(keepends=True)
    send(origin, talk, b"".join(lines[6:]))
    send(origin, talk, b"".join(lines[:6]))
    numbers = dict(ApiCall.objects.filter(agent_id="").values_list("call_id", "number"))
    assert [numbers[f"msg_harbour_{index}"] for index in range(1, 6)] == [1, 2, 3, 4, 5]


def test_findings_name_lines_crossed_new_breaks_and_compactions(origin: Origin) -> None:
    talk = Conversation()
    talk.ask()
    talk.answer("m1", written=100_000)
    (first,) = take_in(origin, Piece(talk.data, "a", talk.session_id)).sessions
    assert (first.is_new, first.new_calls, first.lines_crossed) == (True, ("m1",), ())
    start = len(talk.lines)
    talk.answer("m2", read=100_000, written=50_000)
    more = b"".join(talk.lines[start:])
    (second,) = take_in(origin, Piece(more, "a", talk.session_id)).sessions
    assert second.lines_crossed == ("warning", "error")
    assert AgentSession.objects.get().level == "error"
    start = len(talk.lines)
    talk.compact()
    talk.answer("m3", read=20_000, written=20_000)
    (third,) = take_in(origin, Piece(b"".join(talk.lines[start:]), "a", talk.session_id)).sessions
    assert len(third.new_compactions) == 1
    assert AgentSession.objects.get().level == "ok"


def test_compaction_is_held_against_the_line_it_happened_under(origin: Origin) -> None:
    """A later policy moves levels and what is to come, not what was, however often the session is worked out anew."""
    talk = Conversation()
    talk.ask()
    talk.answer("msg_1", written=100_000)
    talk.compact(167_000)
    rows = ObservedCompaction.objects.order_by("at").values_list("line_tokens", "drift")
    send(origin, talk)
    assert list(rows.all()) == [(167_000, "")]
    moved = {"auto_margin_tokens": 60_000}
    TeamPolicy.objects.create(team=origin.team, version=2, thresholds=moved, created_at=talk.wait(60).now)
    talk.ask()
    talk.answer("msg_2", written=100_000)
    talk.compact(167_000)
    send(origin, talk)
    assert list(rows.all()) == [(167_000, ""), (120_000, "late")]


def test_metrics_only_team_stores_no_word_of_content(origin: Origin) -> None:
    team = make_team("Quay", owner="olga")
    quiet = Origin(team, None, "import")
    talk = make_conversation()
    send(quiet, talk)
    send(origin, talk)
    with_content, without = AgentSession.objects.order_by("-has_content")
    assert (without.call_count, without.spent_usd, without.break_count) == (
        with_content.call_count, with_content.spent_usd, with_content.break_count,
    )  # fmt: skip
    assert not without.has_content
    assert without.title == ""
    segment = EntrySegment.objects.filter(session=without).get()
    assert segment.content is None
    told = repr(list(EntrySegment.objects.filter(session=without).values())) + repr(
        [line.fact for line in _lines_of(without)]
    )
    for words in ("Draw the chart", "depth 12 m", "Long words", "Charts of the harbour", "chart.py", "What happened"):
        assert words not in told


def _lines_of(session: AgentSession) -> list[ObservedLine]:
    return [
        line
        for segment in EntrySegment.objects.filter(session=session)
        for line in read_segment_lines(segment.facts, segment.content)
    ]


def test_content_turned_on_later_is_filled_in_by_the_same_lines(origin: Origin) -> None:
    team = make_team("Quay", owner="olga")
    later = Origin(team, None, "import")
    talk = make_conversation()
    send(later, talk)
    TeamPolicy.objects.create(team=team, version=1, stores_content=True)
    send(later, talk)
    session = AgentSession.objects.get(team=team)
    assert session.has_content
    assert session.title == "Charts of the harbour"
    assert all(line.content for line in _lines_of(session))


def test_two_teams_do_not_share_sessions_calls_or_digests(origin: Origin) -> None:
    other = Origin(make_team("Quay", owner="olga"), None, "import")
    talk = make_conversation()
    send(origin, talk)
    send(other, talk)
    assert AgentSession.objects.count() == 2
    assert ApiCall.objects.filter(is_counted=True).count() == 10
    assert {team.pk for team in Team.objects.all()} == set(AgentSession.objects.values_list("team_id", flat=True))


def test_long_session_is_cut_into_segments_and_grows_its_last(origin: Origin) -> None:
    talk = Conversation()
    for number in range(60):
        talk.ask("tide " * 2_000)
        talk.answer(f"m{number}", written=100, lines=1)
    lines = talk.data.splitlines(keepends=True)
    for line in lines[:5]:
        send(origin, talk, line)
    assert EntrySegment.objects.count() == 1
    send(origin, talk, b"".join(lines[5:]))
    segments = EntrySegment.objects.order_by("number")
    assert [segment.number for segment in segments] == list(range(1, len(segments) + 1))
    assert sum(segment.entry_count for segment in segments) == len(lines)
    assert sum(len(segment.content or b"") for segment in segments) < len(talk.data) * 0.3


def test_prices_sum_to_the_hour(origin: Origin) -> None:
    talk = Conversation()
    talk.ask()
    talk.answer("m1", written=10_000)
    talk.wait(timedelta(hours=2).total_seconds()).ask()
    talk.answer("m2", read=10_000)
    send(origin, talk)
    hours = list(SessionHour.objects.order_by("hour_at").values_list("hour_at__hour", "call_count"))
    assert hours == [(10, 1), (12, 1)]
    assert (
        sum((hour.spent_usd for hour in SessionHour.objects.all()), Decimal(0)) == AgentSession.objects.get().spent_usd
    )


@pytest.mark.parametrize(
    ("path", "session", "agent"),
    [
        ("/p/fe5e1c67-53e7-4862-81ae-d0e013e3270b.jsonl", "fe5e1c67-53e7-4862-81ae-d0e013e3270b", None),
        ("fe5e1c67-53e7-4862-81ae-d0e013e3270b/subagents/agent-a1.jsonl", "fe5e1c67-53e7-4862-81ae-d0e013e3270b", "a1"),
        ("p\\fe5e1c67-53e7-4862-81ae-d0e013e3270b.jsonl", "fe5e1c67-53e7-4862-81ae-d0e013e3270b", None),
        ("/p/agent-a1.jsonl", None, "a1"),
        ("notes.jsonl", None, None),
    ],
)
def test_session_is_named_by_its_file(path: str, session: str | None, agent: str | None) -> None:
    assert name_session(path) == (session, agent)


def test_lines_name_their_session_where_the_file_does_not(origin: Origin) -> None:
    one, two = make_conversation("one"), make_conversation("two")
    taken = take_in(origin, Piece(b'{"type":"summary","summary":"first"}\n' + one.data + two.data, "both.jsonl"))
    assert [recorded.external_id for recorded in taken.sessions] == [one.session_id, two.session_id]
    assert not taken.drops
    lost = take_in(origin, Piece(b'{"type":"summary","summary":"nobody"}\n', "nobody.jsonl"))
    assert lost.drops == {"line without a session": 1}
    drop = Drop.objects.get(team=origin.team)
    assert (drop.reason, drop.count, drop.last_detail) == ("line without a session", 1, "nobody.jsonl")

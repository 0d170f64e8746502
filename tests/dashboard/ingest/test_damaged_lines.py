"""S2 for transcripts: whatever became of their lines, each is read, or named with a reason, in bounded memory.

A hundred pieces of each kind in every run; PLIMSOLL_TEST_LONG=1 makes thousands.
"""

import tracemalloc
from functools import cache

import pytest
from django.db import connection, transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from compaction.context.policy import Policy
from dashboard.ingest.drawn import draw_session
from dashboard.ingest.intake import Origin, take_in
from dashboard.ingest.observed import Piece, Prepared, Rules
from dashboard.ingest.transcripts import prepare
from dashboard.models import AgentSession, TeamPolicy
from tests.builders import make_team
from tests.compaction.recorded import list_recorded
from tests.dashboard.ingest.conversation import make_agent, make_conversation
from tests.dashboard.ingest.damaged_lines import make_damaged
from tests.faults.figures import IS_LONG
from tests.recorded_talk import write_recorded_talk

MIB = 1024 * 1024
SEEDS = st.integers(0, 2**32)
MANY = settings(max_examples=3_000 if IS_LONG else 100, deadline=None)
FEWER = settings(
    max_examples=500 if IS_LONG else 25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
OWN_LINES = [*make_conversation().lines, *make_agent().lines, *write_recorded_talk().lines]


@cache
def read_recorded_lines() -> list[bytes]:
    """Every tenth: of five megabytes enough to have each kind of line."""
    return [line for path in list_recorded() for line in path.read_bytes().splitlines()[::10] if len(line) < 20_000]


def check_prepared(prepared: Prepared) -> None:
    """Every line became a fact, a problem or a drop; every number can be kept."""
    facts = [line.fact for session in prepared.sessions for line in session.lines]
    assert len(prepared.problems) <= prepared.line_count
    assert all(problem.reason for problem in prepared.problems)
    assert len(facts) + len(prepared.problems) + sum(prepared.drops.values()) >= min(1, prepared.line_count)
    for fact in facts:
        assert fact.id
        assert fact.response is None or 0 <= fact.response.usage.output_tokens < 2**53
    for session in prepared.sessions:
        draw_session(session, Policy())


@pytest.mark.parametrize("keeps_content", [True, False])
@MANY
@given(seed=SEEDS)
def test_damaged_lines_are_read_or_named(*, keeps_content: bool, seed: int) -> None:
    rules = Rules(keeps_content=keeps_content, digest_key=b"k" * 32)
    check_prepared(prepare(Piece(make_damaged(OWN_LINES, seed), "damaged", "s"), rules))


@pytest.mark.recorded_data
@MANY
@given(seed=SEEDS)
def test_damaged_lines_of_recorded_sessions_are_read_or_named(seed: int) -> None:
    rules = Rules(keeps_content=True, digest_key=b"k" * 32)
    check_prepared(prepare(Piece(make_damaged(read_recorded_lines(), seed), "damaged", "s"), rules))


@settings(max_examples=100 if IS_LONG else 5, deadline=None)
@given(seed=SEEDS)
def test_damaged_lines_take_no_more_memory_than_a_multiple_of_theirs(seed: int) -> None:
    rules = Rules(keeps_content=True, digest_key=b"k" * 32)
    data = make_damaged(OWN_LINES, seed, most=2_000)
    prepare(Piece(data, "damaged", "s"), rules)  # what the first one loads and keeps is nobody's fault
    tracemalloc.start()
    prepare(Piece(data, "damaged", "s"), rules)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4 * MIB + 20 * len(data)


@pytest.mark.django_db
@FEWER
@given(seed=SEEDS)
def test_damaged_lines_are_stored_or_counted(seed: int) -> None:
    with transaction.atomic():
        team = make_team("Harbour", owner="olga")
        TeamPolicy.objects.create(team=team, version=1, stores_content=True)
        piece = Piece(make_damaged(OWN_LINES, seed), "damaged", "s")
        first = take_in(Origin(team, None, "upload"), piece)
        again = take_in(Origin(team, None, "upload"), piece)
        connection.check_constraints()
        assert (again.line_count, again.new_line_count) == (first.line_count, 0)
        assert AgentSession.objects.count() == len({each.session_pk for each in first.sessions})
        transaction.set_rollback(True)

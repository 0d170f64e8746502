"""Two connections that write sessions which share calls: totals are those of the rows, whoever was first.

On SQLite writers take turns; the same must come out.
"""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, as_completed
from functools import partial

import pytest
from django.db import connection
from django.db.models import Sum

from dashboard.ingest import record as recording
from dashboard.ingest.counting import Claim, Counted, decide_counting, weigh_copies
from dashboard.ingest.intake import Origin, make_rules, take_in
from dashboard.ingest.observed import ObservedSession, Piece
from dashboard.ingest.record import Recorded, Source, record
from dashboard.ingest.transcripts import prepare
from dashboard.models import AgentSession, ApiCall, SessionHour
from dashboard.policies.in_force import find_policy
from tests.builders import make_team
from tests.dashboard.ingest.conversation import Conversation
from tests.dashboard.running import wait_until

pytestmark = pytest.mark.django_db(transaction=True)
WAIT_SECONDS = 60


@pytest.fixture
def origin() -> Origin:
    return Origin(make_team("Harbour", owner="alice"), None, "import")


def observe(origin: Origin, talk: Conversation) -> ObservedSession:
    rules = make_rules(origin.team, find_policy(origin.team))
    return prepare(Piece(talk.data, "test", talk.session_id), rules).sessions[0]


def in_thread(write: Callable[[], Recorded]) -> Callable[[], Recorded]:
    def run() -> Recorded:
        try:
            return write()
        finally:
            connection.close()

    return run


def is_somebody_waiting() -> bool:
    """For a lock that this connection may hold; elsewhere than on PostgreSQL nobody can be asked."""
    if connection.vendor != "postgresql":
        return True
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'")
        return bool(cursor.fetchone()[0])


def assert_totals_are_those_of_the_rows() -> None:
    for session in AgentSession.objects.all():
        counted = ApiCall.objects.filter(session=session, is_counted=True)
        spent = counted.aggregate(spent=Sum("cost_usd"))["spent"] or 0
        assert (session.call_count, session.spent_usd) == (counted.count(), spent)
        by_hour = SessionHour.objects.filter(session=session).aggregate(spent=Sum("spent_usd"))["spent"] or 0
        assert by_hour == spent


def test_beaten_session_that_grows_meanwhile_keeps_what_it_got(origin: Origin) -> None:
    first, fork = Conversation("first"), Conversation("fork")
    first.ask()
    first.answer("msg_shared", written=10_000, output=80, lines=1)
    fork.ask()
    fork.answer("msg_shared", written=10_000, output=20, lines=1)
    take_in(origin, Piece(fork.data, "test", fork.session_id))
    fork.answer("msg_more", read=10_000, written=500, lines=1)
    source = Source(origin.team, None, "import", find_policy(origin.team).lines_policy)
    is_written = threading.Event()

    def hold_on(_: Recorded) -> None:
        is_written.set()
        wait_until(is_somebody_waiting, seconds=WAIT_SECONDS, what="the other writer waits")

    with ThreadPoolExecutor(1) as pool:
        growing = pool.submit(in_thread(lambda: record(source, observe(origin, fork), hold_on)))
        assert is_written.wait(WAIT_SECONDS)
        record(source, observe(origin, first))
        growing.result(WAIT_SECONDS)
    calls = dict(ApiCall.objects.filter(is_counted=True).values_list("call_id", "session__external_id"))
    assert calls == {"msg_shared": first.session_id, "msg_more": fork.session_id}
    assert_totals_are_those_of_the_rows()


def test_fuller_copy_that_is_written_before_this_one_counts(origin: Origin, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was worked out before the transaction is worked out again in it."""
    first, fork = Conversation("first"), Conversation("fork")
    for talk, output in ((first, 80), (fork, 20)):
        talk.ask()
        talk.answer("msg_shared", written=10_000, output=output, lines=1)
        talk.answer(f"msg_{output}", read=10_000, lines=1)
    source = Source(origin.team, None, "import", find_policy(origin.team).lines_policy)

    def weigh_and_be_overtaken(claim: Claim) -> Counted:
        found = weigh_copies(claim)
        monkeypatch.undo()
        record(source, observe(origin, first))
        return found

    monkeypatch.setattr(recording, "weigh_copies", weigh_and_be_overtaken)
    record(source, observe(origin, fork))
    assert ApiCall.objects.get(call_id="msg_shared", is_counted=True).session.external_id == first.session_id
    assert list(AgentSession.objects.order_by("external_id").values_list("call_count", flat=True)) in ([1, 2], [2, 1])
    assert_totals_are_those_of_the_rows()


def test_sessions_that_beat_each_other_at_once_are_both_written(
    origin: Origin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each is held by its writer when the other wants it."""
    one, other = Conversation("one"), Conversation("other")
    for talk in (one, other):
        talk.ask()
    one.answer("msg_a", written=1_000, output=20, lines=1)
    other.answer("msg_b", written=1_000, output=20, lines=1)
    for talk in (one, other):
        take_in(origin, Piece(talk.data, "test", talk.session_id))
    one.answer("msg_b", written=1_000, output=80, lines=1)
    other.answer("msg_a", written=1_000, output=80, lines=1)
    meeting = threading.Barrier(2 if connection.vendor == "postgresql" else 1)
    met: set[int] = set()

    def meet_first(claim: Claim) -> Counted:
        if threading.get_ident() not in met:
            met.add(threading.get_ident())
            meeting.wait(WAIT_SECONDS)
        return decide_counting(claim)

    monkeypatch.setattr(recording, "decide_counting", meet_first)
    source = Source(origin.team, None, "import", find_policy(origin.team).lines_policy)
    with ThreadPoolExecutor(2) as pool:
        observed = [observe(origin, talk) for talk in (one, other)]
        writing = [pool.submit(in_thread(partial(record, source, each))) for each in observed]
        for written in as_completed(writing, 2 * WAIT_SECONDS):  # whose failure leaves the other waiting comes first
            written.result()
    calls = dict(ApiCall.objects.filter(is_counted=True).values_list("call_id", "session__external_id"))
    assert calls == {"msg_a": other.session_id, "msg_b": one.session_id}
    assert_totals_are_those_of_the_rows()

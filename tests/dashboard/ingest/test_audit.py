"""The job that audits a compaction, also when the lines of one compaction arrive apart, and stored audits."""

import pytest

from dashboard.ingest import audit as audit_job
from dashboard.ingest.intake import Origin, take_in
from dashboard.ingest.observed import Piece
from dashboard.ingest.stored_entries import StoredThread, read_thread
from dashboard.jobs.perform import perform_due
from dashboard.models import AgentSession, Job, ObservedCompaction, TeamPolicy
from tests.builders import make_team
from tests.dashboard.ingest.conversation import Conversation

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def origin() -> Origin:
    team = make_team("Harbour", owner="alice")
    TeamPolicy.objects.create(team=team, version=1, stores_content=True)
    return Origin(team, None, "follow")


def _compacted_talk(summary: str) -> Conversation:
    talk = Conversation()
    talk.ask("Please chart the tides of the northern basin, never touch the locks.")
    talk.answer("m1", written=50_000)
    talk.compact(summary=summary)
    talk.ask("Go on.")
    talk.answer("m2", read=10_000, written=20_000)
    return talk


def _audit(origin: Origin, talk: Conversation, *pieces: bytes) -> ObservedCompaction:
    for piece in pieces:
        take_in(origin, Piece(piece, "test", talk.session_id))
        perform_due()
    return ObservedCompaction.objects.get()


def test_losses_are_found_once_the_conversation_is_stored(origin: Origin) -> None:
    talk = _compacted_talk("Nothing was said.")
    found = _audit(origin, talk, talk.data)
    assert found.audited_at is not None
    assert found.retained_percent is not None
    assert found.retained_percent < 50
    assert found.audit is not None
    assert "northern basin" in found.audit["lost"][0]["text"]
    jobs = Job.objects.filter(kind="audit_compactions").count()
    _audit(origin, talk, talk.data)
    assert Job.objects.filter(kind="audit_compactions").count() == jobs


def test_boundary_that_arrives_before_its_summary_is_audited_with_it(origin: Origin) -> None:
    talk = _compacted_talk("All user messages: Please chart the tides of the northern basin, never touch the locks.")
    end = next(number for number, line in enumerate(talk.lines, 1) if b"compact_boundary" in line)
    early = _audit(origin, talk, b"".join(talk.lines[:end]))
    assert (early.audited_at, early.retained_percent) == (None, None)
    found = _audit(origin, talk, *talk.lines[end:])
    assert found.audited_at is not None
    assert found.retained_percent == 100


def test_thread_is_unpacked_once_for_all_its_compactions(origin: Origin, monkeypatch: pytest.MonkeyPatch) -> None:
    talk = _compacted_talk("Nothing was kept.")
    talk.compact(summary="Nothing was kept again.")
    talk.ask("Continue.")
    talk.answer("m3", read=10_000, written=20_000)
    take_in(origin, Piece(talk.data, "test", talk.session_id))
    reads: list[str] = []

    def read_and_count(session: AgentSession, agent_id: str) -> StoredThread:
        reads.append(agent_id)
        return read_thread(session, agent_id)

    monkeypatch.setattr(audit_job, "read_thread", read_and_count)
    perform_due()
    assert reads == [""]
    assert [row.audited_at is not None for row in ObservedCompaction.objects.all()] == [True, True]

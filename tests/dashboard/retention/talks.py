"""A session that has a row in every table, with one word in every text of it."""

from datetime import datetime, timedelta

from django.db import connection
from django.utils import timezone

from compaction.transcripts.subagents import AgentMeta
from dashboard.ingest.intake import Origin, take_in, take_in_agent_meta
from dashboard.ingest.observed import Piece
from dashboard.ingest.segments import compress, expand
from dashboard.models import (
    AgentSession,
    CapturedRequest,
    Job,
    LineCrossing,
    NotesExtraction,
    ObservedCompaction,
    PromptShape,
    ResumedFile,
    RunCallback,
    RunRevision,
    SessionNote,
    Team,
    TeamPolicy,
    ThreadBreaker,
)
from tests.builders import make_team
from tests.dashboard.ingest.conversation import Conversation
from tests.session_rows import make_run

WORD = "Zanzibar"
PART = {"part": "requirements", "weight": 30, "found": 1, "present": 2, "retained": 50.0}
LOST = {"part": "requirements", "text": WORD, "entry": "", "weight": 15.0}
AUDIT = {"version": 2, "parts": [PART], "lost_count": 1, "lost": [LOST]}
NOW = timezone.now()


def make_origin(**policy: object) -> Origin:
    """A team that stores content, decided long ago."""
    team = make_team("Harbour", owner="olga", admin="anna", member="mia")
    decided_at = NOW - timedelta(days=400)
    TeamPolicy.objects.create(team=team, version=1, created_at=decided_at, **{"stores_content": True, **policy})
    return Origin(team, None, "follow")


def make_talk(name: str = "harbour", *, at: datetime) -> Conversation:
    talk = Conversation(name)
    talk.now = at
    talk.ask(f"Sail to {WORD}, never touch the locks.")
    talk.answer(f"{name}-1", written=50_000, words=f"{WORD} it is.")
    talk.wait(60).compact(summary=f"The summary speaks of {WORD}.")
    talk.ask(f"And on from {WORD}.")
    talk.answer(f"{name}-2", read=10_000, written=20_000, words=f"From {WORD}.")
    talk.add({"type": "summary", "summary": f"Trip to {WORD}", "leafUuid": talk.parent})
    return talk


def send(origin: Origin, talk: Conversation) -> None:
    take_in(origin, Piece(talk.data, "test", talk.session_id))


def furnish(origin: Origin, talk: Conversation) -> AgentSession:
    """The session of the talk, with what other ways in and our own compactions add to it."""
    send(origin, talk)
    take_in_agent_meta(origin, talk.session_id, "a1", AgentMeta("Explore", f"Look at {WORD}"))
    session = AgentSession.objects.get(external_id=talk.session_id)
    ended_at = session.last_at
    CapturedRequest.objects.create(session=session, call_id="c", at=ended_at, body=compress(WORD.encode()))
    shape = PromptShape.objects.create(
        team=origin.team, digest=f"d-{talk.session_id}", prints={}, content=compress(WORD.encode()), seen_at=ended_at
    )
    session.shape_uses.create(shape=shape)
    ThreadBreaker.objects.create(session=session)
    session.unanswered_calls.create(team=origin.team, name="u", kind="failed")
    session.redaction_counts.create(
        team=origin.team, segment_number=1, rule="github-token", day=ended_at.date(), count=2
    )
    told = {"team": origin.team, "session": session}
    LineCrossing.objects.create(**told, used_tokens=2, line_tokens=1, answer="suggest")
    SessionNote.objects.create(**told, number=1, text=WORD, writer="person", written_at=ended_at)
    NotesExtraction.objects.create(session=session, job=Job.objects.create(kind="notes", key=f"n-{session.pk}"))
    ObservedCompaction.objects.filter(session=session).update(
        audit=AUDIT,
        restored=[{"kind": "file", "name": f"{WORD}.py", "tokens": 7, "entry": "e"}],
    )
    words = {"instructions": WORD, "details": compress(WORD.encode()), "hook_notes": [{"words": WORD}]}
    run = make_run(session, created_at=ended_at, **words)
    RunCallback.objects.create(run=run, url="https://hooks.example/", sealed_secret=b"x")
    run.attempts.create(number=1, path="plain")
    RunRevision.objects.create(run=run, number=1, text=WORD, analysis=WORD, audit=AUDIT)
    ResumedFile.objects.create(team=origin.team, run=run, origin=session, external_id="r", path="/x", size_bytes=1)
    return session


def find_word(team: Team) -> list[str]:
    """Tables and columns that still say it, compressed or not."""
    found = []
    with connection.cursor() as cursor:
        for table in connection.introspection.table_names(cursor):
            if not table.startswith("dashboard_") or "search" in table:
                continue
            cursor.execute(f'SELECT * FROM "{table}"')
            columns = [column[0] for column in cursor.description]
            for row in cursor.fetchall():
                found += [f"{table}.{name}" for name, value in zip(columns, row, strict=True) if _says(value)]
    return sorted(set(found))


def _says(value: object) -> bool:
    if isinstance(value, bytes | memoryview):
        data = bytes(value)
        return WORD.encode() in (expand(data) if data[:4] == b"\x28\xb5\x2f\xfd" else data)
    return WORD in str(value)

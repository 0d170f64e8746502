"""The writer of counts by rule: how many marks each stored text holds. Called where the text is written, in its
transaction."""

from collections.abc import Collection, Iterable, Mapping
from datetime import date, datetime

from django.db.models import Exists, OuterRef, QuerySet
from django.utils import timezone

from dashboard.ingest.segments import DayMarks, count_line_marks, count_marks, expand, read_segment_lines
from dashboard.models import (
    AgentSession,
    EntrySegment,
    PromptShape,
    RedactionCount,
    RunRevision,
    SessionNote,
    Team,
)


def count_segments(session: AgentSession, marks: Mapping[int, DayMarks], *, replaced: Collection[int] = ()) -> None:
    """Store the marks of segments by number. `replaced` are those that may have been counted before."""
    if replaced:
        RedactionCount.objects.filter(session=session, segment_number__in=replaced).delete()
    insert_segment_counts(session.team_id, [(session.pk, number, counts) for number, counts in marks.items()])


def insert_segment_counts(team_pk: int, counted: Iterable[tuple[int, int, DayMarks]]) -> None:
    """Store the marks of new segments: key of the session, number, marks."""
    rows = [
        RedactionCount(team_id=team_pk, session_id=session, segment_number=number, rule=rule, day=day, count=count)
        for session, number, marks in counted
        for (day, rule), count in marks.items()
    ]
    if rows:
        RedactionCount.objects.bulk_create(rows)


def count_shapes(team: Team, shapes: QuerySet[PromptShape]) -> None:
    """Count the marks of system prompts and tools that were redacted and are not counted yet."""
    counted = Exists(RedactionCount.objects.filter(shape=OuterRef("pk")))
    for shape in shapes.filter(~counted, is_redacted=True).exclude(content=None):
        if shape.content is not None:
            _count_once(team, count_marks(expand(shape.content)), shape.seen_at, shape=shape)


def count_note(note: SessionNote, redactions: Mapping[str, int]) -> None:
    """`redactions`: what was taken out of the text before it was stored. Marks that it repeats from a transcript are
    counted there."""
    _count_once(note.team, redactions, note.written_at, note=note)


def count_revision(revision: RunRevision, redactions: Mapping[str, int]) -> None:
    """As `count_note`, for a summary that a person edited."""
    _count_once(revision.run.team, redactions, revision.created_at, revision=revision)


def _count_once(
    team: Team, counts: Mapping[str, int], at: datetime, **text: PromptShape | SessionNote | RunRevision
) -> None:
    rows = [
        RedactionCount(team=team, rule=rule, day=_day_of(at), count=count, **text) for rule, count in counts.items()
    ]
    if rows:
        RedactionCount.objects.bulk_create(rows, ignore_conflicts=True)


def _day_of(at: datetime) -> date:
    return timezone.localtime(at, timezone.get_default_timezone()).date()


def recount_session(session: AgentSession) -> None:
    """Count the lines of a session that an earlier version stored, and the system prompts that it used. Its row is
    locked by whoever writes it."""
    redacted = EntrySegment.objects.filter(session=session, redacted_count__gt=0).exclude(content=None)
    marks = {row.number: count_line_marks(read_segment_lines(row.facts, row.content)) for row in redacted.iterator()}
    RedactionCount.objects.filter(session=session).delete()
    count_segments(session, marks)
    count_shapes(session.team, PromptShape.objects.filter(uses__session=session))

"""Forgetting what was said: every text of a session, a run or a prompt goes, every number stays."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec
from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet

from compaction.timeline.observations import without_content
from dashboard.ingest.observed import ObservedLine
from dashboard.ingest.segments import read_segment_lines
from dashboard.ingest.stored_lines import replace_segment
from dashboard.models import (
    AgentSession,
    CapturedRequest,
    CompactionRun,
    EntrySegment,
    ObservedCompaction,
    PromptShape,
    RedactionCount,
    RunRevision,
    SessionNote,
    ShapeUse,
    Team,
    Thread,
)
from dashboard.runs.endings import OPEN_STATES

SEGMENTS_AT_ONCE = 20  # two to three milliseconds each
RUNS_AT_ONCE = 20
SHAPES_AT_ONCE = 50


def find_wordy_sessions(team: Team, since: datetime) -> QuerySet[AgentSession]:
    """Sessions with words that are too old; of those still going on, only their older lines."""
    described = Exists(Thread.objects.filter(session=OuterRef("pk")).exclude(description=""))
    lasting = Q(has_content=True) & (Q(started_at__lt=since) | Q(last_at__lt=since))
    ended = Q(last_at__lt=since) & (~Q(title="") | Q(described))
    return AgentSession.objects.filter(lasting | ended, team=team)


def forget_session(session: AgentSession, since: datetime, *, now: datetime) -> bool:
    """Whether there was something to forget."""
    behind: int | None = 0
    while behind is not None:
        behind = _forget_lines(session.pk, since, behind=behind, now=now)
    return AgentSession.objects.filter(pk=session.pk, content_removed_at=now).exists()


@transaction.atomic
def _forget_lines(session_pk: int, since: datetime, *, behind: int, now: datetime) -> int | None:
    """The lines of some segments behind that number, and with the last of them all else; None when that is done.

    The session's row is locked and its version raised, so that a batch which is being recorded is worked out again.
    """
    session = AgentSession.objects.select_for_update().filter(pk=session_pk).first()
    if session is None:
        return None
    is_over = session.last_at < since
    old = EntrySegment.objects.filter(session=session, number__gt=behind)
    if not is_over:
        old = old.exclude(content=None)
    batch = list(old.order_by("number")[:SEGMENTS_AT_ONCE])
    is_changed = sum(_forget_segment(session, segment, None if is_over else since) for segment in batch) > 0
    if len(batch) < SEGMENTS_AT_ONCE:
        is_changed |= _forget_rest(session, since, is_over=is_over)
    if is_changed:
        session.has_content = EntrySegment.objects.filter(session=session).exclude(content=None).exists()
        session.content_removed_at = now
        session.version += 1
        session.save(update_fields=["title", "has_content", "content_removed_at", "version"])
    return batch[-1].number if len(batch) == SEGMENTS_AT_ONCE else None


def _forget_segment(session: AgentSession, segment: EntrySegment, since: datetime | None) -> bool:
    """The lines that are older, or all. Their facts become those of a team that stores no content; but while a session
    goes on, its title is one of their words. A line without a time is as old as the one before it."""
    lines = [
        ObservedLine(line.fact, line.content or None) for line in read_segment_lines(segment.facts, segment.content)
    ]
    at = next((line.fact.at for line in lines if line.fact.at), None)
    left = []
    for line in lines:
        at = line.fact.at or at
        if since is None:
            left.append(ObservedLine(without_content(line.fact)))
        elif at is not None and at < since:
            left.append(ObservedLine(msgspec.structs.replace(line.fact, has_content=False, is_redacted=False)))
        else:
            left.append(line)
    if left == lines and (segment.content is None or since is not None):
        return False
    replace_segment(session, segment, left)
    return True


def _forget_rest(session: AgentSession, since: datetime, *, is_over: bool) -> bool:
    old = Q() if is_over else Q(at__lt=since)
    changed = CapturedRequest.objects.filter(old, session=session).delete()[0]
    old_notes = Q() if is_over else Q(written_at__lt=since)
    changed += SessionNote.objects.filter(old_notes, session=session).delete()[0]
    for compaction in ObservedCompaction.objects.filter(old, session=session):
        restored = _forget_names(compaction.restored)
        audit = remove_lost_texts(compaction.audit)
        if (restored, audit) != (compaction.restored, compaction.audit):
            compaction.restored, compaction.audit = restored, audit
            compaction.save(update_fields=["restored", "audit"])
            changed += 1
    if is_over:
        changed += Thread.objects.filter(session=session).exclude(description="").update(description="")
        changed += bool(session.title)
        session.title = ""
    return bool(changed)


def _forget_names(restored: list[dict[str, Any]] | None) -> list[dict[str, Any]] | None:
    return None if restored is None else [{**thing, "name": ""} for thing in restored]


def remove_lost_texts(audit: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return an audit with its figures alone."""
    return None if audit is None else {**audit, "lost": []}


@transaction.atomic
def forget_runs(team: Team, since: datetime, *, now: datetime) -> int:
    """How many compactions of ours lost their words; 0 when none is left that is too old."""
    old = CompactionRun.objects.filter(team=team, created_at__lt=since, content_removed_at=None)
    pks = list(old.exclude(state__in=OPEN_STATES).values_list("pk", flat=True)[:RUNS_AT_ONCE])
    for revision in RunRevision.objects.filter(run__in=pks):
        revision.text, revision.analysis = "", ""
        revision.audit = remove_lost_texts(revision.audit)
        revision.save(update_fields=["text", "analysis", "audit"])
    RedactionCount.objects.filter(revision__run__in=pks).delete()
    return CompactionRun.objects.filter(pk__in=pks).update(
        instructions="", outcome=None, details=None, hook_notes=[], content_removed_at=now
    )


@transaction.atomic
def forget_shapes(team: Team, since: datetime) -> int:
    """System prompts and tools that only old sessions had; their prints, which breaks are judged by, stay."""
    used = ShapeUse.objects.filter(shape=OuterRef("pk"), session__last_at__gte=since)
    old = PromptShape.objects.filter(~Exists(used), team=team, seen_at__lt=since).exclude(content=None)
    pks = list(old.values_list("pk", flat=True)[:SHAPES_AT_ONCE])
    RedactionCount.objects.filter(shape__in=pks).delete()
    return PromptShape.objects.filter(pk__in=pks).update(content=None)

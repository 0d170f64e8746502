"""Writing many new sessions at once: one statement per table instead of some for every session.

Only sessions that nobody knows, that we did not write ourselves, and whose calls nobody else has. Those that share
calls are written one by one, the others go to `record`. Should another process write one of them meanwhile, a unique
constraint says so and nothing of the batch is kept.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

from django.db import DatabaseError, OperationalError, transaction
from django.db.models import Model
from django.utils import timezone

from dashboard.ingest.counting import Claim, decide_counting, find_counted, total_again
from dashboard.ingest.drawn import DrawnSession, Table
from dashboard.ingest.picture.columns import Row
from dashboard.ingest.picture.spelling import read_time, spell_json, spell_time
from dashboard.ingest.record import FollowUp, Recorded, Source, keep_shapes, note_shape_uses
from dashboard.ingest.redaction_counts import insert_segment_counts
from dashboard.ingest.rows import insert_rows
from dashboard.ingest.segments import DayMarks
from dashboard.models import (
    LEVELS,
    AgentSession,
    ApiCall,
    CacheBreak,
    DeletedSession,
    EntrySegment,
    ObservedCompaction,
    ResumedFile,
    SessionChange,
    SessionHour,
    Team,
    Thread,
    UnansweredCall,
)

FIRST_VERSION = 1


def record_new(
    source: Source, drawn: Sequence[DrawnSession], follow_up: FollowUp | None = None
) -> tuple[list[Recorded], list[DrawnSession]]:
    """Write what is new in one transaction; what was not written is handed back, to be recorded one by one.

    Raises OperationalError when the database cannot be written; then nothing of it was kept."""
    new, others = _find_new(source.team, drawn)
    if not new:
        return [], others
    try:
        with transaction.atomic():
            recorded = _write(source, new)
            _follow_up(source, recorded, follow_up)
    except OperationalError:
        raise
    except (DatabaseError, OverflowError):
        return [], list(drawn)  # another process was faster, or one of them cannot be written: not all suffer
    return recorded, others


def record_sharing(source: Source, drawn: DrawnSession, follow_up: FollowUp | None = None) -> Recorded | None:
    """Write a session that nobody knows, whose calls others have too; None where `record` has to.

    Raises OperationalError when the database cannot be written; then nothing of it was kept."""
    if _find_known(source.team, [drawn.external_id]):
        return None
    try:
        with transaction.atomic():
            counted = decide_counting(_make_claim(source, drawn))
            (recorded,) = _write(source, [drawn.count_without(counted.uncounted)], counted.uncounted)
            for session_pk in sorted(counted.beaten):
                total_again(session_pk)
            recorded = replace(recorded, also_changed=tuple(sorted(counted.beaten)))
            _follow_up(source, [recorded], follow_up)
    except OperationalError:
        raise
    except (DatabaseError, OverflowError):
        return None
    return recorded


def _make_claim(source: Source, drawn: DrawnSession) -> Claim:
    (started_at,), (forked_from,) = (drawn.session.list_column(name) for name in ("started_at", "forked_from"))
    outputs = dict(zip(drawn.calls.keys, drawn.calls.list_column("output_tokens"), strict=True))
    owner = source.find_owner(drawn.developer)
    return Claim(
        team_pk=source.team.pk,
        session_pk=None,
        owner_pk=owner.pk if owner else None,
        external_id=drawn.external_id,
        started_at=started_at and read_time(started_at),
        forked_from=forked_from,
        outputs=outputs,
    )


def _follow_up(source: Source, recorded: Sequence[Recorded], follow_up: FollowUp | None) -> None:
    if follow_up is not None:
        for each in recorded:
            follow_up(each)
    changed = [pk for each in recorded for pk in (each.session_pk, *each.also_changed)]
    SessionChange.objects.note(source.team.pk, changed)


def _find_known(team: Team, names: Sequence[str]) -> set[str]:
    known = set(AgentSession.objects.filter(team=team, external_id__in=names).values_list("external_id", flat=True))
    # Deleted since it was last asked: `record` has it asked anew.
    known.update(DeletedSession.objects.filter(team=team, external_id__in=names).values_list("external_id", flat=True))
    # Sessions that go on from a compaction of ours have an origin to be found.
    known.update(ResumedFile.objects.filter(team=team, external_id__in=names).values_list("external_id", flat=True))
    return known


def _find_new(team: Team, drawn: Sequence[DrawnSession]) -> tuple[list[DrawnSession], list[DrawnSession]]:
    known = _find_known(team, [session.external_id for session in drawn])
    taken = find_counted(team.pk, chain.from_iterable(session.calls.keys for session in drawn))
    new, others = [], []
    for session in drawn:
        call_ids = session.calls.keys
        if session.external_id in known or not taken.isdisjoint(call_ids):
            others.append(session)
        else:
            new.append(session)
        known.add(session.external_id)
        taken.update(call_ids)
    return new, others


def _write(source: Source, new: Sequence[DrawnSession], uncounted: Collection[str] = ()) -> list[Recorded]:
    keep_shapes(source, [shape for session in new for shape in session.shapes])
    pks = _insert_sessions(source, new)
    owned = [(pks[session.external_id], session) for session in new]
    team: Row = {"team_id": source.team.pk}
    _insert_counted(ApiCall, [(pk, session.calls) for pk, session in owned], team, uncounted)
    _insert_counted(CacheBreak, [(pk, session.losses) for pk, session in owned], team, uncounted)
    _insert_tables(ObservedCompaction, [(pk, session.compactions) for pk, session in owned], team)
    _insert_tables(Thread, [(pk, session.threads) for pk, session in owned], {})
    _insert_tables(SessionHour, [(pk, session.hours) for pk, session in owned], team)
    _insert_tables(UnansweredCall, [(pk, session.unanswered) for pk, session in owned], team)
    insert_rows(EntrySegment, _SEGMENT_COLUMNS, list(_list_segments(owned)))
    insert_segment_counts(source.team.pk, _list_marks(owned))
    note_shape_uses([(pk, shape.digest) for pk, session in owned for shape in session.shapes], source)
    return [_tell(pk, session) for pk, session in owned]


def _insert_counted(
    model: type[Model], tables: Sequence[tuple[int, Table]], fixed: Row, uncounted: Collection[str]
) -> None:
    if uncounted:
        split = [(pk, *table.split(uncounted)) for pk, table in tables]
        _insert_tables(model, [(pk, named) for pk, named, _ in split], fixed | {"is_counted": False})
        tables = [(pk, rest) for pk, _, rest in split]
    _insert_tables(model, tables, fixed | {"is_counted": True})


def _insert_tables(model: type[Model], tables: Iterable[tuple[int, Table]], fixed: Row) -> None:
    """`fixed`: columns that are the same for all."""
    filled = [(pk, table) for pk, table in tables if table.rows]
    if filled:
        values = tuple(fixed.values())
        rows = [(pk, *values, *row) for pk, table in filled for row in table.rows]
        insert_rows(model, ("session_id", *fixed, *filled[0][1].columns), rows)


_SEGMENT_COLUMNS = (
    "session_id", "number", "facts", "content", "entry_count", "raw_bytes", "redacted_count", "last_at",
)  # fmt: skip


def _insert_sessions(source: Source, new: Sequence[DrawnSession]) -> dict[str, int]:
    """Their keys by external id."""
    columns = new[0].session.columns
    now = spell_time(timezone.now())
    fixed: Row = {
        "team_id": source.team.pk,
        "collector": source.identity.collector,
        "sources": spell_json([source.name]),
        "version": FIRST_VERSION,
        "policy_version": source.policy_version,
        "price_version": source.price_version,
    }
    owned = ("owner_id", "developer", "has_content")
    rows = []
    for session in new:
        owner = source.find_owner(session.developer)
        own = (owner.pk, owner.username) if owner else (None, session.developer)
        rows.append([*fixed.values(), *own, session.has_content, *session.session.rows[0]])
    last_at = len(fixed) + len(owned) + columns.index("last_at")
    for row in rows:
        row[last_at] = row[last_at] or now  # lines without any time: as old as their arrival
    insert_rows(AgentSession, (*fixed, *owned, *columns), rows)
    names = [session.external_id for session in new]
    return dict(AgentSession.objects.filter(team=source.team, external_id__in=names).values_list("external_id", "pk"))


def _list_segments(owned: Iterable[tuple[int, DrawnSession]]) -> Iterator[tuple[Any, ...]]:
    for pk, session in owned:
        for number, segment in enumerate(session.segments, 1):
            yield (
                pk,
                number,
                segment.facts,
                segment.content,
                segment.entry_count,
                segment.raw_bytes,
                segment.redacted_count,
                None if segment.last_at is None else spell_time(segment.last_at),
            )


def _list_marks(owned: Iterable[tuple[int, DrawnSession]]) -> Iterator[tuple[int, int, DayMarks]]:
    for pk, session in owned:
        for number, segment in enumerate(session.segments, 1):
            yield pk, number, segment.marks


def _tell(pk: int, session: DrawnSession) -> Recorded:
    losses = zip(session.losses.keys, session.losses.list_column("kind"), strict=True)
    level_rank = session.session.list_column("level_rank")[0]
    return Recorded(
        session_pk=pk,
        external_id=session.external_id,
        version=FIRST_VERSION,
        is_new=True,
        new_line_count=session.line_count,
        new_calls=tuple(session.calls.keys),
        new_breaks=tuple(call_id for call_id, kind in losses if kind == "break"),
        new_compactions=tuple(session.compactions.keys),
        lines_crossed=tuple(LEVELS[2 : level_rank + 1]),
        level_rank=level_rank,
        context_tokens=session.session.list_column("context_tokens")[0],
        last_at=max((segment.last_at for segment in session.segments if segment.last_at), default=None),
    )

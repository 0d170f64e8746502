"""Compactions of a team, by clients and by Plimsoll, as one list: filtered, newest first, paged by position."""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any, TypeVar

from django.db.models import F, IntegerField, Model, OuterRef, Q, QuerySet, Subquery
from django.db.models.fields.json import KT
from django.db.models.functions import Cast

from dashboard import access
from dashboard.access import Actor
from dashboard.models import (
    AgentSession,
    CompactionKind,
    CompactionRun,
    ObservedCompaction,
    RunKind,
    RunRevision,
    RunState,
)
from dashboard.pages.compaction_filters import BAND_PERCENTS, UNKNOWN, CompactionFilters, Performer, RetainedBand
from dashboard.pages.compaction_rows import make_row
from dashboard.pages.keyset import Place, read_place
from dashboard.pages.ledger import PAGE_SIZE, name_session
from dashboard.pages.run_rows import STATE_STYLES, make_run_row, read_runs
from dashboard.pages.thread_names import name_by_id
from dashboard.words import format_size, format_size_change, saves_nothing

_MICRO_KINDS = [kind for kind in RunKind if kind.is_micro]
_ENDED_WITHOUT_RESULT = (RunState.FAILED, RunState.CANCELLED)
_Row = TypeVar("_Row", bound=Model)
_PREFIXES = {"c": Performer.CLIENT, "p": Performer.PLIMSOLL}


@dataclass(frozen=True)
class Position:
    """A row of the list. At the same moment compactions by clients come first, then higher ids."""

    performer: Performer
    place: Place

    def __str__(self) -> str:
        return f"{self.performer[0]}{self.place}"


@dataclass(frozen=True)
class HistoryRow:
    """One compaction. None: not recorded, not measured, or not applicable."""

    performer: Performer
    id: int
    at: datetime
    session_id: int
    external_id: str
    session_name: str
    project: str
    developer: str
    thread: str
    kind: str
    state: str  # of a run; of a compaction by the client done or failed
    state_style: str
    trigger: str
    is_mid_task: bool | None
    before_tokens: int | None
    after_tokens: int | None
    sizes: str
    retained_percent: Decimal | None
    retained_note: str  # why there is no percentage
    lost_count: int | None
    restored_count: int | None
    cost_usd: Decimal | None
    duration_seconds: float | None

    @property
    def is_own(self) -> bool:
        return self.performer is Performer.PLIMSOLL

    @property
    def saves_nothing(self) -> bool:
        return saves_nothing(self.before_tokens, self.after_tokens)

    @property
    def is_done(self) -> bool:
        return self.state == RunState.DONE

    @property
    def position(self) -> Position:
        return Position(self.performer, Place(self.at, self.id))


@dataclass(frozen=True)
class HistoryPage:
    """One page of the list. `next`: the last row, where there are more."""

    rows: tuple[HistoryRow, ...]
    next: Position | None


def parse_position(text: str) -> Position | None:
    """Return a position as a link carries it; None for anything else."""
    performer, place = _PREFIXES.get(text[:1]), read_place(text[1:])
    return Position(performer, place) if performer and place and place.at is not None else None


def list_history(
    actor: Actor, filters: CompactionFilters, *, before: Position | None = None, size: int = PAGE_SIZE
) -> HistoryPage:
    """Newest first. One query for each kind by the client, and one for runs."""
    rows: list[HistoryRow] = []
    if filters.includes(Performer.CLIENT):
        for kind in filters.kinds:  # each in the order of the index compaction_by_time
            observed = find_observed(actor, filters, kind).select_related("session")
            newest = _cut(observed, Performer.CLIENT, before).order_by(F("at").desc(), "-id")[: size + 1]
            rows += [_build_observed_row(actor, row, filters) for row in newest]
    if filters.includes(Performer.PLIMSOLL) and not filters.mid_task:
        runs = _add_lost_count(find_runs(actor, filters)).select_related("session")
        newest_runs = _cut(runs, Performer.PLIMSOLL, before).order_by("-created_at", "-id")[: size + 1]
        rows += [_build_run_row(actor, run, filters) for run in newest_runs]
    rows.sort(key=lambda row: (row.at, row.performer is Performer.CLIENT, row.id), reverse=True)
    page = rows[:size]
    return HistoryPage(tuple(page), page[-1].position if len(rows) > size else None)


def find_observed(actor: Actor, filters: CompactionFilters, *kinds: CompactionKind) -> QuerySet[ObservedCompaction]:
    """Return the compactions by clients that match, of these kinds."""
    period = filters.period
    found = access.compactions(actor).filter(team=filters.team, at__gte=period.start_at, at__lt=period.end_at)
    # With one kind the index compaction_by_time has the order of the list.
    found = found.filter(kind=kinds[0]) if len(kinds) == 1 else found.filter(kind__in=kinds)
    if filters.mid_task:
        found = found.filter(is_mid_task={"yes": True, "no": False, UNKNOWN: None}[filters.mid_task])
    return found.filter(_match_common(filters), _match_retained(filters.retained, "retained_percent"))


def find_runs(actor: Actor, filters: CompactionFilters) -> QuerySet[CompactionRun]:
    """Return the runs that match, as read_runs does. None is known to be mid-task."""
    period, kinds = filters.period, Q()
    failed = Q(state__in=_ENDED_WITHOUT_RESULT)
    matches = {
        CompactionKind.FULL: ~failed & ~Q(kind__in=_MICRO_KINDS),
        CompactionKind.MICRO: ~failed & Q(kind__in=_MICRO_KINDS),
        CompactionKind.FAILED: failed,
    }
    for kind in filters.kinds:
        kinds |= matches[kind]
    found = access.runs(actor).filter(
        kinds, _match_common(filters), team=filters.team, created_at__gte=period.start_at, created_at__lt=period.end_at
    )
    return read_runs(found).filter(_match_retained(filters.retained, "revised_percent"))


def _match_common(filters: CompactionFilters) -> Q:
    wanted: dict[str, Any] = {}
    if filters.trigger:
        wanted["trigger"] = "" if filters.trigger == UNKNOWN else filters.trigger
    if filters.project:
        wanted["session__project"] = filters.project
    if filters.developer:
        wanted["session__developer"] = filters.developer
    if filters.agent:
        wanted["session__is_claude_code"] = filters.agent == "claude_code"
    return Q(**wanted)


def _match_retained(band: str, column: str) -> Q:
    if not band:
        return Q()
    if band == RetainedBand.NOT_MEASURED:
        return Q(**{column: None})
    low, end = BAND_PERCENTS[RetainedBand(band)]
    return Q(**{f"{column}__gte": low, f"{column}__lt": end})


def _cut(rows: QuerySet[_Row], performer: Performer, before: Position | None) -> QuerySet[_Row]:
    """Leave out everything up to the position `before`."""
    if before is None:
        return rows
    column = "at" if performer is Performer.CLIENT else "created_at"
    at, is_before = before.place.at, f"{column}__lt"
    if performer is before.performer:
        return rows.filter(Q(**{f"{column}__lte": at}) & (Q(**{is_before: at}) | Q(id__lt=before.place.id)))
    if performer is Performer.CLIENT:
        return rows.filter(**{is_before: at})
    return rows.filter(**{f"{column}__lte": at})


def _add_lost_count(runs: QuerySet[CompactionRun]) -> QuerySet[CompactionRun]:
    newest = RunRevision.objects.filter(run=OuterRef("pk")).order_by("-number")
    lost = newest.values(lost=Cast(KT("audit__lost_count"), IntegerField()))
    return runs.annotate(revised_lost=Subquery(lost[:1]))


def _name_session(actor: Actor, session: AgentSession, filters: CompactionFilters) -> str:
    session.team = filters.team  # saves a join: the list is of one team
    return name_session(session, reads_content=access.reads_content(actor, session))


def _build_observed_row(actor: Actor, compaction: ObservedCompaction, filters: CompactionFilters) -> HistoryRow:
    session = compaction.session
    name = _name_session(actor, session, filters)
    row = make_row(compaction, session_name=name, thread=name_by_id(compaction.agent_id), scale_tokens=0)
    if compaction.at is None:
        raise ValueError(f"Compaction {compaction.pk} has no time.")  # the period leaves such out
    return HistoryRow(
        performer=Performer.CLIENT,
        id=row.id,
        at=compaction.at,
        session_id=session.pk,
        external_id=session.external_id,
        session_name=name,
        project=session.project,
        developer=session.developer,
        thread=row.thread,
        kind=row.kind,
        state=RunState.FAILED if row.has_failed else RunState.DONE,
        state_style=STATE_STYLES[RunState.FAILED if row.has_failed else RunState.DONE],
        trigger=row.trigger,
        is_mid_task=row.is_mid_task,
        before_tokens=row.before_tokens,
        after_tokens=row.after_tokens,
        sizes=format_size(row.before_tokens)
        if row.has_failed
        else format_size_change(row.before_tokens, row.after_tokens),
        retained_percent=row.retained_percent,
        retained_note=row.audit_state.label if row.is_full else "",
        lost_count=None if compaction.audit is None else compaction.audit["lost_count"],
        restored_count=row.restored_count,
        cost_usd=None,
        duration_seconds=row.duration_seconds,
    )


def _build_run_row(actor: Actor, run: CompactionRun, filters: CompactionFilters) -> HistoryRow:
    session = run.session
    name = _name_session(actor, session, filters)
    row = make_run_row(run, session=session, thread=name_by_id(run.agent_id), scale_tokens=0, reads_content=False)
    return HistoryRow(
        performer=Performer.PLIMSOLL,
        id=row.id,
        at=row.created_at,
        session_id=session.pk,
        external_id=session.external_id,
        session_name=name,
        project=session.project,
        developer=session.developer,
        thread=row.thread,
        kind=row.kind_words,
        state=row.state.value,
        state_style=row.state_style,
        trigger=row.trigger,
        is_mid_task=None,
        before_tokens=row.before_tokens,
        after_tokens=row.after_tokens,
        sizes=format_size_change(
            row.before_tokens,
            row.after_tokens,
            is_before_estimated=row.before_origin == "estimate",
            is_after_estimated=row.after_origin == "estimate",
        ),
        retained_percent=row.retained_percent,
        retained_note="not measured" if row.is_done else "",
        lost_count=vars(run).get("revised_lost"),
        restored_count=None,
        cost_usd=row.spent_usd if row.asks_model else Decimal(0),
        duration_seconds=row.duration_seconds,
    )

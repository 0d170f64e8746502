"""Crossings of the auto-compact line: noticed while a session is recorded, answered once by a job, told to people."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Exists, OuterRef, Q

from compaction.context.thresholds import Level
from dashboard import access
from dashboard.access import Actor
from dashboard.models import AgentSession, ApiCall, AutomaticMode, LineCrossing, ObservedCompaction, RunState, Team
from dashboard.session_levels import LEVEL_RANKS

AUTO_RANK = LEVEL_RANKS[Level.AUTO_COMPACT]
REARM_PERCENT = 5  # below the line: small ups and downs are one crossing
FRESH_FOR = timedelta(hours=1)  # a crossing in an imported history of last year is nobody's concern now


def find_last_crossing(session_pk: int, agent_id: str = "") -> LineCrossing | None:
    return LineCrossing.objects.filter(session=session_pk, agent_id=agent_id).order_by("-pk").first()


def is_armed(session_pk: int, last: LineCrossing | None) -> bool:
    """Whether the next crossing is a new one: after the last, the context fell 5% below the line, or was compacted."""
    if last is None:
        return True
    since = {"session": session_pk, "agent_id": last.agent_id}
    low_tokens = last.line_tokens * (100 - REARM_PERCENT) // 100
    later = ApiCall.objects.filter(**since, number__gt=last.call_number)
    if later.filter(context_tokens__lte=low_tokens).exists():
        return True
    return ObservedCompaction.objects.filter(**since, kind="full", call_number__gte=last.call_number).exists()


def list_waiting(actor: Actor, team: Team, *, now: datetime, limit: int = 5) -> list[LineCrossing]:
    """Suggestions and quiet failures, newest first, one for a session: of those that are still above the line and not
    long silent."""
    rows = access.crossings(actor).filter(Q(run=None) | Q(run__state=RunState.FAILED), team=team, dismissed_at=None)
    rows = rows.filter(session__level_rank__gte=AUTO_RANK, session__last_at__gte=now - FRESH_FOR)
    later = LineCrossing.objects.filter(session=OuterRef("session"), agent_id=OuterRef("agent_id"))
    rows = rows.exclude(Exists(later.filter(pk__gt=OuterRef("pk"))))
    # The sessions by a query of their own: mostly nothing waits, and theirs is the widest table.
    waiting = list(rows.order_by("-pk")[:limit].select_related("run").prefetch_related("session"))
    for crossing in waiting:
        crossing.team = crossing.session.team = team
    return waiting


def find_waiting(session: AgentSession) -> LineCrossing | None:
    """The one that is still open for this session, if it is still above the line."""
    if session.level_rank < AUTO_RANK:
        return None
    last = find_last_crossing(session.pk)
    if last is None or last.dismissed_at is not None:
        return None
    return last if last.run is None or last.run.state == RunState.FAILED else None


def dismiss(actor: Actor, crossing: LineCrossing, *, now: datetime) -> bool:
    """Not shown any more until the line is crossed anew; for those who could act on it. False: it was gone already."""
    access.require_run(actor, crossing.session)
    open_one = LineCrossing.objects.filter(pk=crossing.pk, dismissed_at=None)
    return bool(open_one.update(dismissed_at=now, dismissed_by=actor.user))


@dataclass(frozen=True)
class Suggestion:
    """A crossing as pages tell it."""

    crossing: LineCrossing
    may_run: bool

    @property
    def headline(self) -> str:
        """What happened, in the few words of a folded notice."""
        crossed = f"Auto-compact threshold of {self.crossing.line_tokens:,} tokens crossed"
        if self.crossing.run is not None:
            return f"{crossed}, and the automatic run failed"
        return f"{crossed}, but no automatic run was started" if self.crossing.refusal else crossed

    @property
    def sentence(self) -> str:
        if self.crossing.run is not None:
            return f"{self.headline}: {self.crossing.run.failure_sentence}"
        if self.crossing.refusal:
            return f"{self.headline}: {self.crossing.refusal}"
        if self.crossing.answer == AutomaticMode.RUN:
            return f"{self.headline}. An automatic run is about to start."
        return f"{self.headline}. Compact now to avoid an automatic compaction in the middle of a task."


def list_suggestions(actor: Actor, team: Team, *, now: datetime) -> list[Suggestion]:
    return [suggest(actor, crossing) for crossing in list_waiting(actor, team, now=now)]


def suggest(actor: Actor, crossing: LineCrossing) -> Suggestion:
    return Suggestion(crossing, access.may_run(actor, crossing.session))

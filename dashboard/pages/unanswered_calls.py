"""Calls of a session without an answer that counts: refused, failed, cut, without figures; and those that counted."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Max, Q

from compaction.timeline.observations import WITHOUT_ANSWER, WITHOUT_USAGE
from dashboard import access
from dashboard.access import Actor
from dashboard.models import AgentSession, ApiCall, Thread, UnansweredCall, UnansweredKind
from dashboard.pages.session_calls import name_thread
from dashboard.proxy.wire import Ending

MOST_SHOWN = 50
_CUT = [ending.value for ending in Ending if ending is not Ending.WHOLE]
_ERROR = "error: "
_REASONS = {
    Ending.CLIENT_LEFT.value: "client disconnected",
    Ending.UPSTREAM_FAILED.value: "upstream closed the connection",
    Ending.SILENT.value: "response timed out",
    Ending.STOPPED.value: "Plimsoll was stopped",
    WITHOUT_USAGE: "response without token usage",
    WITHOUT_ANSWER: "empty response",
}
_WHAT = {UnansweredKind.UNMEASURED: "not measured"}


@dataclass(frozen=True)
class UnansweredRow:
    """`call_pk` is None where nothing of an answer came."""

    at: datetime | None
    thread: str
    what: str
    status: int | None
    reason: str
    attempt: int | None
    model: str
    duration_seconds: float | None
    source: str
    added: str
    call_pk: int | None = None


@dataclass(frozen=True)
class UnansweredCalls:
    rows: tuple[UnansweredRow, ...]
    total: int
    count_calls: int  # that only counted tokens
    counted_at: datetime | None

    @property
    def has_any(self) -> bool:
        return bool(self.total or self.count_calls)


def read_unanswered(actor: Actor, session: AgentSession, threads: Sequence[Thread]) -> UnansweredCalls:
    """The newest of them. Four queries at most."""
    names = {thread.agent_id: name_thread(thread) for thread in threads}
    told = access.unanswered_calls(actor).filter(session=session)
    failed = told.filter(kind__in=(UnansweredKind.FAILED, UnansweredKind.UNMEASURED))
    cut = access.calls(actor).filter(Q(stop_reason__in=_CUT) | Q(stop_reason__startswith=_ERROR), session=session)
    newest = ("-at", "-id")
    rows = [
        *(_show_failed(row, names) for row in failed.order_by(*newest)[:MOST_SHOWN]),
        *(_show_cut(row, names) for row in cut.order_by(*newest)[:MOST_SHOWN]),
    ]
    rows.sort(key=lambda row: row.at.timestamp() if row.at else 0.0, reverse=True)
    counted = told.filter(kind=UnansweredKind.COUNT)
    total = len(rows) if len(rows) < MOST_SHOWN else failed.count() + cut.count()
    count_calls = counted.count()
    last = counted.aggregate(last=Max("at"))["last"] if count_calls else None
    return UnansweredCalls(tuple(rows[:MOST_SHOWN]), total, count_calls, last)


def _show_failed(row: UnansweredCall, names: dict[str, str]) -> UnansweredRow:
    return UnansweredRow(
        at=row.at,
        thread=names.get(row.agent_id, row.agent_id or "main"),
        what=_WHAT.get(UnansweredKind(row.kind), "failed"),
        status=row.status,
        reason=_REASONS.get(row.reason, row.reason),
        attempt=row.attempt,
        model=row.model,
        duration_seconds=row.duration_seconds,
        source=row.source,
        added=row.added,
    )


def _show_cut(call: ApiCall, names: dict[str, str]) -> UnansweredRow:
    reason = call.stop_reason.removeprefix(_ERROR)
    return UnansweredRow(
        at=call.ended_at or call.at,
        thread=names.get(call.agent_id, call.agent_id or "main"),
        what="partial",
        status=200,  # it had begun
        reason=_REASONS.get(reason, reason),
        attempt=None,
        model=call.model,
        duration_seconds=call.duration_seconds,
        source=call.provenance.get("usage", ""),
        added=call.added,
        call_pk=call.pk,
    )

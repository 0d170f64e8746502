"""The calls of a session in one order over all its threads, what happened at them, and pages of a table of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from itertools import starmap
from operator import attrgetter
from typing import NamedTuple

from django.db.models import ExpressionWrapper, F, IntegerField, Q

from compaction.cache.calls import is_beside_conversation
from compaction.cache.causes import CAUSES
from dashboard import access
from dashboard.access import Actor
from dashboard.models import AgentSession, ApiCall, CompactionKind, LossKind, Thread
from dashboard.words import say_size, say_usd

PAGE_SIZE = 50
MAIN = "main"
# SQLite keeps 0 and 1: with nothing to convert, rows are handed over in half the time.
_AS_STORED = ExpressionWrapper(F("is_counted"), output_field=IntegerField())
_TITLES = {cause.value: note.title for cause, note in CAUSES.items()}


class PlacedCall(NamedTuple):
    """What a figure needs of a call. Thousands are read as tuples: as objects of the database they take far longer."""

    pk: int
    call_id: str
    agent_id: str
    number: int  # in its thread
    context_tokens: int
    read_tokens: int
    write_5m_tokens: int
    write_1h_tokens: int
    input_tokens: int
    output_tokens: int
    is_counted: bool
    query_source: str = ""
    at: datetime | None = None

    @property
    def is_beside(self) -> bool:
        """Made for a title, a summary or the like: paid for, but not what the window holds."""
        return is_beside_conversation(self.query_source or None)


@dataclass(frozen=True, slots=True)
class LossAt:
    """A break or an expected rebuild at a call."""

    pk: int
    call_id: str
    kind: str
    cause: str
    lost_usd: Decimal | None

    @property
    def title(self) -> str:
        return say_cause(self.cause)

    @property
    def is_break(self) -> bool:
        return self.kind == LossKind.BREAK


@dataclass(frozen=True, slots=True)
class CompactionAt:
    """A compaction behind the call of its thread with this number."""

    agent_id: str
    call_number: int
    kind: str
    trigger: str
    before_tokens: int | None
    after_tokens: int | None
    saved_tokens: int | None

    @property
    def sentence(self) -> str:
        if self.kind == CompactionKind.FAILED:
            return "a compaction failed before it"
        if self.kind == CompactionKind.MICRO:
            saved = "" if self.saved_tokens is None else f", {say_size(self.saved_tokens)} freed"
            return f"micro-compaction before it{saved}"
        if self.before_tokens is None or self.after_tokens is None:
            return "compacted before it"
        return f"compacted before it: {say_size(self.before_tokens)} → {say_size(self.after_tokens)}"


@dataclass(frozen=True, slots=True)
class SessionCalls:
    """All calls of a session in order; a call's place is its position in `calls`, from 1."""

    calls: tuple[PlacedCall, ...]
    losses: dict[str, LossAt]  # by call id
    compactions: tuple[CompactionAt, ...]

    @property
    def copy_count(self) -> int:
        return sum(not call.is_counted for call in self.calls)

    def find_index(self, pk: int) -> int | None:
        return next((index for index, call in enumerate(self.calls) if call.pk == pk), None)

    def list_thread(self, agent_id: str) -> list[PlacedCall]:
        return [call for call in self.calls if call.agent_id == agent_id]


@dataclass(frozen=True, slots=True)
class CallRow:
    """One line of the table."""

    call: PlacedCall
    place: int
    thread: str
    events: tuple[str, ...]
    at: datetime | None
    is_output_estimated: bool
    cost_usd: Decimal | None

    @property
    def figures(self) -> tuple[str, ...]:
        """Context and tokens by kind."""
        call = self.call
        counts = (call.context_tokens, call.read_tokens, call.write_5m_tokens, call.write_1h_tokens, call.input_tokens)
        output = f"~{call.output_tokens:,}" if self.is_output_estimated else f"{call.output_tokens:,}"
        return (*[f"{count:,}" for count in counts], output, say_usd(self.cost_usd))


@dataclass(frozen=True, slots=True)
class CallPage:
    """Newest calls first. `older_than` is the call behind which the next page begins; None on the last one."""

    rows: tuple[CallRow, ...]
    total: int
    has_agents: bool
    is_newest: bool
    older_than: int | None


def read_calls(actor: Actor, session: AgentSession, *, is_timed: bool = False) -> SessionCalls:
    """Three queries, however many calls there are. The calls carry their times only when asked: the database sorts by
    them in passing, while handing them over takes half of the time that reading takes."""
    fields = [_AS_STORED if name == "is_counted" else name for name in PlacedCall._fields if is_timed or name != "at"]
    by_time = (F("at").asc(nulls_first=True), "agent_id", "number")
    calls = access.calls(actor).filter(session=session).order_by(*by_time)
    losses = access.breaks(actor).filter(session=session)
    compactions = access.compactions(actor).filter(session=session).order_by("agent_id", "call_number", "pk")
    told = ("agent_id", "call_number", "kind", "trigger", "before_tokens", "after_tokens", "saved_tokens")
    found = (LossAt(*row) for row in losses.values_list("pk", "call_id", "kind", "cause", "lost_usd"))
    return SessionCalls(
        calls=weave_threads(tuple(starmap(PlacedCall, calls.values_list(*fields)))),
        losses={loss.call_id: loss for loss in found},
        compactions=tuple(CompactionAt(*row) for row in compactions.values_list(*told)),
    )


def list_calls(
    actor: Actor, session: AgentSession, *, agent: str | None, after: int | None, limit: int
) -> tuple[list[ApiCall], int | None] | None:
    """Thread by thread in order, and the call to go on after; None when there is no such call to start behind."""
    found = access.calls(actor).filter(session=session)
    if agent is not None:
        found = found.filter(agent_id=agent)
    if after is not None:
        last = access.calls(actor).filter(session=session, pk=after).first()
        if last is None:
            return None
        same = Q(agent_id=last.agent_id)
        behind = same & Q(number__gt=last.number) | same & Q(number=last.number, pk__gt=last.pk)
        found = found.filter(behind | Q(agent_id__gt=last.agent_id))
    rows = list(found.order_by("agent_id", "number", "pk")[: limit + 1])
    return rows[:limit], rows[limit - 1].pk if len(rows) > limit else None


def weave_threads(calls: Sequence[PlacedCall]) -> tuple[PlacedCall, ...]:
    """Calls sorted by time, put right: time says which thread is next, a thread's own order says which of its calls.

    Clocks of a client jump and lines come without a time; the calls of one thread are never out of order for that.
    """
    threads: dict[str, list[PlacedCall]] = {}
    for call in calls:
        threads.setdefault(call.agent_id, []).append(call)
    following = {agent_id: iter(sorted(own, key=attrgetter("number"))) for agent_id, own in threads.items()}
    return tuple(next(following[call.agent_id]) for call in calls)


def read_page(actor: Actor, calls: SessionCalls, threads: Sequence[Thread], *, before: int | None) -> CallPage:
    """One page, newest first, of the calls before a certain one; a call that is not here begins at the newest."""
    end = None if before is None else calls.find_index(before)
    stop = len(calls.calls) if end is None else end
    start = max(0, stop - PAGE_SIZE)
    shown = list(enumerate(calls.calls[start:stop], start + 1))
    found = access.calls(actor).filter(pk__in=[call.pk for _, call in shown])
    rest = {pk: told for pk, *told in found.values_list("pk", "at", "is_output_estimated", "cost_usd")}
    names = {thread.agent_id: name_thread(thread) for thread in threads}
    return CallPage(
        rows=tuple(
            CallRow(call, place, names.get(call.agent_id, call.agent_id), _list_events(calls, call), *rest[call.pk])
            for place, call in reversed(shown)
            if call.pk in rest
        ),
        total=len(calls.calls),
        has_agents=any(thread.agent_id for thread in threads),
        is_newest=end is None,
        older_than=shown[0][1].pk if start > 0 else None,
    )


def _list_events(calls: SessionCalls, call: PlacedCall) -> tuple[str, ...]:
    events = [
        one.sentence
        for one in calls.compactions
        if one.agent_id == call.agent_id and one.call_number == call.number - 1
    ]
    loss = calls.losses.get(call.call_id)
    if loss is not None:
        words = "cache break" if loss.is_break else "expected rebuild"
        events.append(f"{words}: {loss.title.rstrip('.')}, {say_usd(loss.lost_usd)}")
    if call.is_beside:
        events.append(f"beside the conversation: {call.query_source}")
    if not call.is_counted:
        events.append("copy, not counted")
    return tuple(events)


def name_thread(thread: Thread) -> str:
    """Short and different from the others of its session: its kind, and how its id begins."""
    if not thread.agent_id:
        return MAIN
    return f"{thread.agent_type or 'sub-agent'} {thread.agent_id.removeprefix('agent-')[:7]}"


def say_cause(code: str) -> str:
    """What people call a cause; one that this version does not know is named as it is stored."""
    return _TITLES.get(code, code)

"""The calls of a session in one order over all its threads, what happened at them, and pages of a table of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from itertools import starmap
from operator import attrgetter
from typing import NamedTuple, Protocol, TypeVar

from django.db.models import ExpressionWrapper, F, IntegerField, Q, QuerySet

from compaction.cache.causes import CAUSES
from compaction.transcripts.client_protocol import is_beside_conversation
from dashboard import access
from dashboard.access import Actor
from dashboard.kept_query import KeptQuery, Open
from dashboard.models import AgentSession, ApiCall, CacheBreak, CompactionKind, LossKind, ObservedCompaction, Thread
from dashboard.pages.thread_names import name_agent
from dashboard.words import saves_nothing, say_size, say_usd

PAGE_SIZE = 50
MAIN = "main"
# SQLite keeps 0 and 1: with nothing to convert, rows are handed over in half the time.
_AS_STORED = ExpressionWrapper(F("is_counted"), output_field=IntegerField())
_TITLES = {cause.value: note.title for cause, note in CAUSES.items()}


class OrderedCall(Protocol):
    """What the order of calls is made of."""

    @property
    def pk(self) -> int: ...
    @property
    def agent_id(self) -> str: ...
    @property
    def number(self) -> int: ...


class CallKey(NamedTuple):
    pk: int
    agent_id: str
    number: int


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


_Call = TypeVar("_Call", bound=OrderedCall)


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

    pk: int
    agent_id: str
    call_number: int
    kind: str
    trigger: str
    before_tokens: int | None
    after_tokens: int | None
    saved_tokens: int | None

    @property
    def sentence(self) -> str:
        return self.say("before this call")

    def say(self, place: str) -> str:
        """Before or after a call."""
        if self.kind == CompactionKind.FAILED:
            return f"a compaction failed {place}"
        if self.kind == CompactionKind.MICRO:
            saved = "" if self.saved_tokens is None else f", {say_size(self.saved_tokens)} freed"
            return f"micro-compaction {place}{saved}"
        if self.before_tokens is None or self.after_tokens is None:
            return f"compacted {place}"
        ending = ", nothing saved" if saves_nothing(self.before_tokens, self.after_tokens) else ""
        return f"compacted {place}: {say_size(self.before_tokens)} → {say_size(self.after_tokens)}{ending}"

    @property
    def sentence_after(self) -> str:
        return self.say("after this call")


@dataclass(frozen=True, slots=True)
class CallOrder:
    """All calls of a session in order."""

    calls: Sequence[OrderedCall]
    losses: dict[str, LossAt]  # by call id
    compactions: tuple[CompactionAt, ...]

    def find_index(self, pk: int) -> int | None:
        return next((index for index, call in enumerate(self.calls) if call.pk == pk), None)

    def list_thread(self, agent_id: str) -> list[int]:
        """The keys of its calls."""
        return [call.pk for call in self.calls if call.agent_id == agent_id]


@dataclass(frozen=True, slots=True)
class SessionCalls(CallOrder):
    """The same with all that a figure needs."""

    calls: tuple[PlacedCall, ...]

    @property
    def copy_count(self) -> int:
        return sum(not call.is_counted for call in self.calls)


@dataclass(frozen=True, slots=True)
class CallRow:
    """One line of the table."""

    call: PlacedCall
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
        output, usd = f"{call.output_tokens:,}", say_usd(self.cost_usd)
        if self.is_output_estimated:
            output, usd = f"~{output}", usd if self.cost_usd is None else f"~{usd}"
        return (*[f"{count:,}" for count in counts], output, usd)


@dataclass(frozen=True, slots=True)
class CallPage:
    """Newest calls first. `older_than` is the call behind which the next page begins; None on the last one."""

    rows: tuple[CallRow, ...]
    skipped: int  # newer calls than those on the page
    total: int
    has_agents: bool
    is_newest: bool
    older_than: int | None

    @property
    def first_row(self) -> int:
        return self.skipped + 1

    @property
    def last_row(self) -> int:
        return self.skipped + len(self.rows)


_FIELDS = [_AS_STORED if name == "is_counted" else name for name in PlacedCall._fields]
_BY_TIME = (F("at").asc(nulls_first=True), "agent_id", "number")
_KEYS = KeptQuery(lambda: _list_keys().order_by("agent_id", "number"))
_KEYS_BY_TIME = KeptQuery(lambda: _list_keys().order_by(*_BY_TIME))
_LOSSES = KeptQuery(lambda: CacheBreak.objects.filter(session_id=Open("session")).values_list(*LossAt.__slots__))
_COMPACTIONS = KeptQuery(
    lambda: (
        ObservedCompaction.objects.filter(session_id=Open("session"))
        .order_by("agent_id", "call_number", "pk")
        .values_list(*CompactionAt.__slots__)
    )
)


def _list_keys() -> QuerySet[ApiCall, tuple[int, str, int]]:
    return ApiCall.objects.filter(session_id=Open("session")).values_list(*CallKey._fields)


def read_calls(actor: Actor, session: AgentSession, *, is_timed: bool = False) -> SessionCalls:
    """Three queries, however many calls there are. The calls carry their times only when asked: the database sorts by
    them in passing, while handing them over takes half of the time that reading takes."""
    fields = [name for name in _FIELDS if is_timed or name != "at"]
    calls = access.calls(actor).filter(session=session).order_by(*_BY_TIME)
    return SessionCalls(
        calls=weave_threads(tuple(starmap(PlacedCall, calls.values_list(*fields)))),
        losses=_read_losses(session),
        compactions=_read_compactions(session),
    )


def read_order(session: AgentSession) -> CallOrder:
    """What a page of the table and a picked call need of all the others. Calls of one thread have their order in an
    index; times are read only where there are several."""
    keys = list(starmap(CallKey, _KEYS.read(session=session.pk)))
    if keys and keys[0].agent_id != keys[-1].agent_id:
        keys = list(weave_threads(list(starmap(CallKey, _KEYS_BY_TIME.read(session=session.pk)))))
    return CallOrder(keys, _read_losses(session), _read_compactions(session))


def _read_losses(session: AgentSession) -> dict[str, LossAt]:
    return {loss.call_id: loss for loss in starmap(LossAt, _LOSSES.read(session=session.pk))}


def _read_compactions(session: AgentSession) -> tuple[CompactionAt, ...]:
    return tuple(starmap(CompactionAt, _COMPACTIONS.read(session=session.pk)))


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


def weave_threads(calls: Sequence[_Call]) -> tuple[_Call, ...]:
    """Calls sorted by time, put right: time says which thread is next, a thread's own order says which of its calls.

    Clocks of a client jump and lines come without a time; the calls of one thread are never out of order for that.
    """
    threads: dict[str, list[_Call]] = {}
    for call in calls:
        threads.setdefault(call.agent_id, []).append(call)
    following = {agent_id: iter(sorted(own, key=attrgetter("number"))) for agent_id, own in threads.items()}
    return tuple(next(following[call.agent_id]) for call in calls)


def read_page(actor: Actor, calls: CallOrder, threads: Sequence[Thread], *, before: int | None) -> CallPage:
    """One page, newest first, of the calls before a certain one; a call that is not here begins at the newest."""
    end = None if before is None else calls.find_index(before)
    stop = len(calls.calls) if end is None else end
    start = max(0, stop - PAGE_SIZE)
    shown = [call.pk for call in calls.calls[start:stop]]
    found = access.calls(actor).filter(pk__in=shown)
    told = {row[0]: row for row in found.values_list(*_FIELDS, "is_output_estimated", "cost_usd")}
    names = {thread.agent_id: name_thread(thread) for thread in threads}
    rows = []
    for pk in reversed(shown):
        if pk in told:
            *columns, is_estimated, cost_usd = told[pk]
            call = PlacedCall(*columns)
            name, events = names.get(call.agent_id, call.agent_id), _list_events(calls, call)
            rows.append(CallRow(call, name, events, call.at, is_estimated, cost_usd))
    return CallPage(
        rows=tuple(rows),
        skipped=len(calls.calls) - stop,
        total=len(calls.calls),
        has_agents=any(thread.agent_id for thread in threads),
        is_newest=end is None,
        older_than=shown[0] if start > 0 else None,
    )


def _list_events(calls: CallOrder, call: PlacedCall) -> tuple[str, ...]:
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
        events.append(f"outside the conversation: {call.query_source}")
    if not call.is_counted:
        events.append("copy, not counted")
    return tuple(events)


def name_thread(thread: Thread) -> str:
    return name_agent(thread.agent_id, thread.agent_type) if thread.agent_id else MAIN


def say_cause(code: str) -> str:
    """What people call a cause; one that this version does not know is named as it is stored."""
    return _TITLES.get(code, code)

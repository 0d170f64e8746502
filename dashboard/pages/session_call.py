"""One call of a session in detail: tokens and dollars by kind, times, verdict on its cache, its neighbours."""

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal

from compaction.cache.breaks import DEFAULT_POLICY
from compaction.context.forecast import NextCallCost, price_next_call
from compaction.context.prices import Cost, cost_of
from compaction.transcripts.entries import Usage
from dashboard import access
from dashboard.access import Actor
from dashboard.models import ApiCall, CacheBreak, LossKind, Thread
from dashboard.pages.session_calls import CallOrder, name_thread, say_cause
from dashboard.words import say_tokens, say_usd

TRANSCRIPT = "transcript"
# Sums of rounded figures: what differs by less is rounding, what differs by more was charged for something else.
_ROUNDING_USD = Decimal("0.000001")


@dataclass(frozen=True, slots=True)
class KindCost:
    """One kind of tokens: its name, its colour, how many, and what they cost; None where no price is known."""

    name: str
    style: str
    tokens: int
    usd: Decimal | None


@dataclass(frozen=True, slots=True)
class CallVerdict:
    """What happened to the cache at a call, as a sentence; `break_pk` is None where there is nothing more to read."""

    kind: str
    title: str
    sentence: str
    break_pk: int | None = None


@dataclass(frozen=True, slots=True)
class CallDetails:
    call: ApiCall
    place: int
    thread: str
    kinds: tuple[KindCost, ...]
    other_usd: Decimal | None  # charged beyond the tokens by kind: searches, further samplings, tiers
    price_source: str
    verdict: CallVerdict
    sources: tuple[tuple[str, str], ...]  # field, who told it
    previous_pk: int | None
    next_pk: int | None
    next_cost: NextCallCost | None

    @property
    def is_last(self) -> bool:
        return self.next_pk is None

    @property
    def prompt_tokens(self) -> int:
        return sum(kind.tokens for kind in self.kinds[:-1])

    @property
    def hit_rate(self) -> float | None:
        return self.call.read_tokens / self.prompt_tokens if self.prompt_tokens else None


def read_call(actor: Actor, calls: CallOrder, threads: tuple[Thread, ...], pk: int) -> CallDetails | None:
    """None when the session has no such call. Two queries."""
    index = calls.find_index(pk)
    if index is None:
        return None
    call = access.calls(actor).filter(pk=pk).first()
    if call is None:
        return None
    loss = access.breaks(actor).filter(session_id=call.session_id, call_id=call.call_id).first()
    siblings = calls.list_thread(call.agent_id)
    own = siblings.index(pk)
    usage = make_usage(call)
    cost = cost_of(usage, call.model, call.at)
    is_last = own + 1 == len(siblings)
    names = {thread.agent_id: name_thread(thread) for thread in threads}
    return CallDetails(
        call=call,
        place=index + 1,
        thread=names.get(call.agent_id, call.agent_id),
        kinds=tuple(_list_kinds(call, cost)),
        other_usd=_find_other(call, cost),
        price_source=cost.source if cost else "",
        verdict=judge_shown(call, usage, loss),
        sources=tuple(sorted(call.provenance.items())),
        previous_pk=siblings[own - 1] if own else None,
        next_pk=None if is_last else siblings[own + 1],
        next_cost=price_next_call(usage, call.model, call.at) if is_last else None,
    )


def make_usage(call: ApiCall) -> Usage:
    return Usage(
        input_tokens=call.input_tokens,
        output_tokens=call.output_tokens,
        cache_creation_tokens=call.write_5m_tokens + call.write_1h_tokens,
        cache_creation_5m_tokens=call.write_5m_tokens,
        cache_creation_1h_tokens=call.write_1h_tokens,
        cache_read_tokens=call.read_tokens,
    )


def judge_shown(call: ApiCall, usage: Usage, loss: CacheBreak | None) -> CallVerdict:
    """The stored verdict, or why there is none."""
    if loss is not None:
        gone = f"{say_tokens(loss.lost_tokens)} tokens were gone, {say_tokens(loss.recreated_tokens)} written again"
        is_break = loss.kind == LossKind.BREAK
        title = say_cause(loss.cause)
        words = f"{gone}: {say_usd(loss.lost_usd)} at list price."
        return CallVerdict(
            "cache break" if is_break else "expected rebuild", title, words, loss.pk if is_break else None
        )
    if usage.prompt_tokens == 0:
        return CallVerdict("nothing", "No prompt.", "The call reports no tokens, so there is nothing to judge.")
    if not DEFAULT_POLICY.judges(call.model, call.query_source or None, usage):
        return CallVerdict("not judged", "Not judged.", "Calls of this model or purpose cache in another way.")
    if call.number == 1:
        return CallVerdict("nothing", "First call.", "The first call of a thread fills the cache.")
    return CallVerdict("nothing", "The cache held.", "The call found what the call before it had left in the cache.")


def _list_kinds(call: ApiCall, cost: Cost | None) -> Iterator[KindCost]:
    yield KindCost("cache read", "read", call.read_tokens, cost.read_usd if cost else None)
    yield KindCost("written, 5 min", "write5m", call.write_5m_tokens, cost.write_5m_usd if cost else None)
    yield KindCost("written, 1 h", "write1h", call.write_1h_tokens, cost.write_1h_usd if cost else None)
    yield KindCost("uncached", "fresh", call.input_tokens, cost.input_usd if cost else None)
    yield KindCost("output", "output", call.output_tokens, cost.output_usd if cost else None)


def _find_other(call: ApiCall, cost: Cost | None) -> Decimal | None:
    """The stored price holds more than the kinds where the call had searches, several samplings or another tier."""
    if call.cost_usd is None or cost is None:
        return None
    other: Decimal = call.cost_usd - cost.total_usd
    return other if abs(other) > _ROUNDING_USD else None

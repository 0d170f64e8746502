"""One call of a session in detail: tokens and dollars by kind, times, verdict on its cache, its neighbours."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum

from compaction.cache.policy import DEFAULT_POLICY
from compaction.context.call_costs import Cost, compute_cost
from compaction.context.forecast import NextCallCost, compute_next_call_cost
from compaction.llm.names import read_model_name
from compaction.llm.prices import Price
from compaction.transcripts.client_protocol import is_beside_conversation
from compaction.transcripts.entries import Usage
from compaction.transcripts.output_estimate import describe_output_estimate
from dashboard import access
from dashboard.access import Actor
from dashboard.models import ApiCall, CacheBreak, LossKind, Thread
from dashboard.pages.calls_around import find_neighbours
from dashboard.pages.session_calls import CallOrder, CompactionAt, name_thread, say_cause
from dashboard.policies.in_force import find_policy
from dashboard.words import join_words, say_tokens, say_usd

_SOURCES = {"proxy": "the proxy", "otlp": "telemetry (OTLP)", "api": "the JSON API"}
_TRANSCRIPT = "the transcript"
_FIELDS = {
    "usage": "tokens",
    "model": "model",
    "stop_reason": "stop reason",
    "duration_seconds": "duration",
    "ttft_seconds": "first token",
    "request_id": "request",
}
# Sums of rounded figures: what differs by less is rounding, what differs by more was charged for something else.
_ROUNDING_USD = Decimal("0.000001")


@dataclass(frozen=True, slots=True)
class KindCost:
    """One kind of tokens: its name, its colour, how many, and what they cost; None where no price is known."""

    name: str
    style: str
    tokens: int
    usd: Decimal | None


class VerdictKind(StrEnum):
    """As the API names them; `label` is for pages."""

    BREAK = "break"
    REBUILD = "expected rebuild"
    NO_PROMPT = "no prompt"
    NOT_JUDGED = "not judged"
    FIRST = "first"
    HELD = "held"

    @property
    def label(self) -> str:
        return _LABELS.get(self, self.value)


_LABELS = {
    VerdictKind.BREAK: "cache break",
    VerdictKind.NO_PROMPT: "not checked",
    VerdictKind.NOT_JUDGED: "not checked",
    VerdictKind.FIRST: "first call",
    VerdictKind.HELD: "cache hit",
}


@dataclass(frozen=True, slots=True)
class CallVerdict:
    """What happened to the cache at a call, as a sentence; `break_id` is None where nothing was lost, `title` is empty
    where the kind says it all."""

    kind: VerdictKind
    title: str
    sentence: str
    break_id: int | None = None


@dataclass(frozen=True, slots=True)
class CallDetails:
    call: ApiCall
    thread: str
    kinds: tuple[KindCost, ...]
    other_usd: Decimal | None  # charged beyond the tokens by kind: searches, further samplings, tiers
    price_source: str
    verdict: CallVerdict
    compactions_before: tuple[CompactionAt, ...]
    compactions_after: tuple[CompactionAt, ...]
    told_by: str
    previous_pk: int | None
    next_pk: int | None
    next_cost: NextCallCost | None

    @property
    def is_last(self) -> bool:
        return self.next_pk is None

    @property
    def output_estimate(self) -> str:
        return explain_output(self.call)

    @property
    def prompt_tokens(self) -> int:
        return sum(kind.tokens for kind in self.kinds[:-1])

    @property
    def hit_rate(self) -> float | None:
        return self.call.read_tokens / self.prompt_tokens if self.prompt_tokens else None


def read_call(actor: Actor, calls: CallOrder, threads: tuple[Thread, ...], pk: int) -> CallDetails | None:
    """None when the session has no such call. Two queries, and one more where its thread was compacted."""
    if calls.find_index(pk) is None:
        return None
    call = access.calls(actor).filter(pk=pk).select_related("session__team").first()
    if call is None:
        return None
    loss = access.breaks(actor).filter(session_id=call.session_id, call_id=call.call_id).first()
    siblings = calls.list_thread(call.agent_id)
    own = siblings.index(pk)
    usage = make_usage(call)
    own_price = find_policy(call.session.team).find_price(call.model) if call.session.team.has_own_prices else None
    cost = compute_cost(usage, call.model, call.at, team_price=own_price)
    is_last = own + 1 == len(siblings)
    names = {thread.agent_id: name_thread(thread) for thread in threads}
    before, after = _find_compactions(call, calls)
    return CallDetails(
        call=call,
        thread=names.get(call.agent_id, call.agent_id),
        kinds=tuple(_list_kinds(call, cost)),
        other_usd=_find_other(call, cost),
        price_source=cost.source if cost else "",
        verdict=judge_shown(call, usage, loss, own_price),
        compactions_before=before,
        compactions_after=after,
        told_by=say_sources(call),
        previous_pk=siblings[own - 1] if own else None,
        next_pk=None if is_last else siblings[own + 1],
        next_cost=compute_next_call_cost(usage, call.model, call.at, team_price=own_price) if is_last else None,
    )


def explain_output(call: ApiCall) -> str:
    """Explain an estimated output and how far it can be trusted; empty where the output was reported."""
    if not call.is_output_estimated:
        return ""
    return describe_output_estimate(read_model_name(call.model).base)


def make_usage(call: ApiCall) -> Usage:
    return Usage(
        input_tokens=call.input_tokens,
        output_tokens=call.output_tokens,
        cache_creation_tokens=call.write_5m_tokens + call.write_1h_tokens,
        cache_creation_5m_tokens=call.write_5m_tokens,
        cache_creation_1h_tokens=call.write_1h_tokens,
        cache_read_tokens=call.read_tokens,
    )


def judge_shown(call: ApiCall, usage: Usage, loss: CacheBreak | None, own_price: Price | None = None) -> CallVerdict:
    """The stored verdict, or why there is none."""
    if loss is not None:
        kind = VerdictKind.BREAK if loss.kind == LossKind.BREAK else VerdictKind.REBUILD
        gone = f"{say_tokens(loss.lost_tokens)} tokens lost, {say_tokens(loss.recreated_tokens)} re-written to cache"
        words = f"{gone}: {say_usd(loss.lost_usd)} at {'your' if own_price else 'list'} price."
        return CallVerdict(kind, say_cause(loss.cause), words, loss.pk)
    if usage.prompt_tokens == 0:
        return CallVerdict(VerdictKind.NO_PROMPT, "", "The call reported no prompt tokens.")
    if not DEFAULT_POLICY.judges(call.model, call.query_source or None, usage):
        return CallVerdict(VerdictKind.NOT_JUDGED, "", "Calls of this model or purpose use the cache differently.")
    if call.number == 1:
        return CallVerdict(VerdictKind.FIRST, "", "The first call of a thread fills the cache.")
    return CallVerdict(VerdictKind.HELD, "", "The call read what the previous call had written to the cache.")


def say_sources(call: ApiCall) -> str:
    """Who told of it. A report names the model only where no line of a transcript does."""
    told: Mapping[str, str] = call.provenance
    by_source: dict[str, list[str]] = {}
    for field, source in sorted(told.items()):
        by_source.setdefault(_SOURCES.get(source, source), []).append(_FIELDS.get(field, field))
    has_line = not told or ("model" not in told and call.model != "")
    if len(by_source) + has_line == 1:
        return _TRANSCRIPT if has_line else next(iter(by_source))
    parts = [f"{join_words(fields)}: {source}" for source, fields in by_source.items()]
    return "; ".join([*parts, f"everything else: {_TRANSCRIPT}"] if has_line else parts)


def _find_compactions(call: ApiCall, calls: CallOrder) -> tuple[tuple[CompactionAt, ...], tuple[CompactionAt, ...]]:
    """Those between it and the calls of the conversation on both sides."""
    own = [one for one in calls.compactions if one.agent_id == call.agent_id]
    if not own or is_beside_conversation(call.query_source or None):
        return (), ()
    last, following = find_neighbours(call)
    before = tuple(one for one in own if (last or 0) <= one.call_number < call.number)
    after = tuple(
        one for one in own if call.number <= one.call_number and (following is None or one.call_number < following)
    )
    return before, after


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

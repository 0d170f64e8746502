"""Calls for programs: each with the verdict on its cache, its price by kind, and what the prompt after it costs."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal

from django.db.models import Max

from compaction.context.call_costs import compute_cost
from compaction.context.forecast import NextCallCost, compute_next_call_cost
from compaction.llm.prices import Price
from compaction.transcripts.entries import Usage
from dashboard import access
from dashboard.access import Actor
from dashboard.models import AgentSession, ApiCall
from dashboard.pages.session_call import CallVerdict, judge_shown, make_usage
from dashboard.policies.in_force import find_policy

_STORED_USD = Decimal("0.00000001")  # what differs by less is rounding


@dataclass(frozen=True, slots=True)
class KindPrices:
    """Dollars by kind of tokens at your or the list price; `other_usd` is what was charged beyond them."""

    read_usd: Decimal
    write_5m_usd: Decimal
    write_1h_usd: Decimal
    uncached_usd: Decimal
    output_usd: Decimal
    other_usd: Decimal


@dataclass(frozen=True, slots=True)
class ToldCall:
    call: ApiCall
    verdict: CallVerdict
    prices: KindPrices | None  # None where no price is known
    next_prompt: NextCallCost | None  # of the last call of a thread alone


def tell_calls(actor: Actor, session: AgentSession, calls: Sequence[ApiCall]) -> Iterator[ToldCall]:
    """Two queries for all of them, and one more where the team has prices of its own."""
    ids = [call.call_id for call in calls]
    losses = {loss.call_id: loss for loss in access.breaks(actor).filter(session=session, call_id__in=ids)}
    ends = access.calls(actor).filter(session=session).order_by().values_list("agent_id").annotate(Max("number"))
    lasts = dict(ends)
    policy = find_policy(session.team) if session.team.has_own_prices else None
    for call in calls:
        usage = make_usage(call)
        own_price = policy.find_price(call.model) if policy else None
        yield ToldCall(
            call=call,
            verdict=judge_shown(call, usage, losses.get(call.call_id), own_price),
            prices=_price(call, usage, own_price),
            next_prompt=compute_next_call_cost(usage, call.model, call.at, team_price=own_price)
            if call.number == lasts[call.agent_id]
            else None,
        )


def _price(call: ApiCall, usage: Usage, own_price: Price | None) -> KindPrices | None:
    cost = compute_cost(usage, call.model, call.at, team_price=own_price)
    if cost is None or call.cost_usd is None:
        return None
    return KindPrices(
        read_usd=cost.read_usd,
        write_5m_usd=cost.write_5m_usd,
        write_1h_usd=cost.write_1h_usd,
        uncached_usd=cost.input_usd,
        output_usd=cost.output_usd,
        other_usd=(call.cost_usd - cost.total_usd).quantize(_STORED_USD),
    )

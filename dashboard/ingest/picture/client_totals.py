"""What the client itself says it spent and used: held against the calls, never added to them."""

from collections.abc import Iterable
from decimal import Decimal, InvalidOperation

from compaction.timeline.observations import LineKind, Observation
from dashboard.ingest.picture.columns import fit_count, fit_usd


def find_client_cost(facts: Iterable[Observation]) -> Decimal | None:
    """The largest of what it tells in several ways: its running total, its metrics, its reports of calls. Each of them
    only ever grows, and each may have been listened to for a part of the session only."""
    running: list[Decimal] = []
    added: dict[LineKind, Decimal] = {}
    for fact in facts:
        cost_usd = _read_usd(fact.cost_usd)
        if cost_usd is None:
            continue
        if fact.kind is LineKind.COST:
            running.append(cost_usd)
        else:
            added[fact.kind] = added.get(fact.kind, Decimal(0)) + cost_usd
    return fit_usd(max((*running, *added.values()), default=None))


def find_client_tokens(facts: Iterable[Observation]) -> int | None:
    """All tokens of its metrics: input, output, read from the cache, written to it. None where it sends none."""
    counts = [fact.tokens for fact in facts if fact.kind is LineKind.COUNTER and fact.tokens is not None]
    return fit_count(sum(counts)) if counts else None


def _read_usd(text: str | None) -> Decimal | None:
    if text is None:
        return None
    try:
        return Decimal(text)
    except InvalidOperation:
        return None

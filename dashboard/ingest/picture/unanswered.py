"""Rows of calls that no model answered. What several tell of is one row, known by its request."""

from collections.abc import Iterable, Mapping

from compaction.timeline.observations import WITHOUT_USAGE, FailedCall, LineKind, Observation
from dashboard.ingest.picture.columns import Row, fit, fit_count, fit_id

_KINDS = {LineKind.FAILURE: "failed", LineKind.COUNT: "count"}
_LARGEST_STATUS = 999


def draw_unanswered(agent_id: str, facts: Iterable[Observation]) -> dict[str, Row]:
    """By request id, or by the id of the line. What one does not say, another may."""
    rows: dict[str, Row] = {}
    for fact in facts:
        kind = _KINDS.get(fact.kind)
        if kind is not None:
            told = fact.failed_call or FailedCall(reason=fact.name, source="otlp" if fact.type == "report" else "")
            name = fit_id(told.request_id or fact.id)
            row = _draw(agent_id, "unmeasured" if told.reason == WITHOUT_USAGE else kind, fact, told)
            rows[name] = _join(rows[name], row) if name in rows else row
    return rows


def _draw(agent_id: str, kind: str, fact: Observation, told: FailedCall) -> Row:
    return {
        "agent_id": agent_id,
        "kind": kind,
        "at": fact.at,
        "status": told.status if told.status and told.status <= _LARGEST_STATUS else None,
        "reason": fit(told.reason, 200),
        "attempt": None if told.attempt is None else min(told.attempt, _LARGEST_STATUS),
        "model": fit(told.model, 200),
        "duration_seconds": told.duration_seconds,
        "counted_tokens": None if told.counted_tokens is None else fit_count(told.counted_tokens),
        "source": fit(told.source, 20),
        "added": fit(", ".join(told.added), 60),
    }


def _join(one: Row, other: Row) -> Row:
    """The proxy saw the call itself: what it says goes first."""
    first, second = (one, other) if one["source"] == "proxy" else (other, one)
    filled: Mapping[str, object] = {column: value for column, value in first.items() if value not in (None, "")}
    return {**second, **filled}

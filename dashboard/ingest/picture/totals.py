"""Totals of a session over the calls that count: a copy in a fork is shown there, and paid for once."""

from collections.abc import Container, Iterable
from datetime import datetime
from decimal import Decimal

from dashboard.ingest.picture.columns import Row
from dashboard.ingest.picture.drawing import SessionPicture

_NOTHING_USD = Decimal(0)


Totals = tuple[Row, dict[str, Row], dict[datetime, Row]]


def add_totals(picture: SessionPicture, uncounted: Container[str]) -> Totals:
    """Columns of the session, of its threads by agent, and of its hours by start, without the `uncounted` calls."""
    calls = {call_id: row for call_id, row in picture.calls.items() if call_id not in uncounted}
    losses = {call_id: row for call_id, row in picture.losses.items() if call_id not in uncounted}
    breaks = {call_id: row for call_id, row in losses.items() if row["kind"] == "break"}
    full = [row for row in picture.compactions.values() if row["kind"] == "full"]
    session: Row = {
        **{name: sum(row[name] for row in calls.values()) for name in _TOKENS},
        "spent_usd": _add(row["cost_usd"] for row in calls.values()),
        "lost_usd": _add(row["lost_usd"] for row in breaks.values()),
        "avoidable_usd": _add(row["lost_usd"] for row in breaks.values() if row["is_avoidable"]),
        "call_count": len(calls),
        "unpriced_count": sum(row["cost_usd"] is None for row in calls.values()),
        "break_count": len(breaks),
        "rebuild_count": len(losses) - len(breaks),
        "compaction_count": len(full),
        "mid_task_count": sum(row["is_mid_task"] is True for row in full),
        "micro_count": len(picture.compactions) - len(full),
    }
    threads = {
        agent_id: {
            "spent_usd": _add(row["cost_usd"] for row in calls.values() if row["agent_id"] == agent_id),
            "lost_usd": _add(row["lost_usd"] for row in breaks.values() if row["agent_id"] == agent_id),
        }
        for agent_id in picture.threads
    }
    return session, threads, _add_hours(calls, breaks)


_TOKENS = ("input_tokens", "read_tokens", "write_5m_tokens", "write_1h_tokens", "output_tokens")


def _add_hours(calls: dict[str, Row], breaks: dict[str, Row]) -> dict[datetime, Row]:
    hours: dict[datetime, Row] = {}
    for call_id, row in calls.items():
        if row["at"] is None:
            continue
        hour_at = row["at"].replace(minute=0, second=0, microsecond=0)
        hour = hours.setdefault(hour_at, dict.fromkeys(_HOURLY, 0) | dict.fromkeys(_HOURLY_USD, _NOTHING_USD))
        hour["call_count"] += 1
        hour["read_tokens"] += row["read_tokens"]
        hour["input_tokens"] += sum(row[name] for name in _TOKENS[:4])
        hour["output_tokens"] += row["output_tokens"]
        hour["spent_usd"] += row["cost_usd"] or _NOTHING_USD
        if call_id in breaks:
            hour["break_count"] += 1
            hour["lost_usd"] += breaks[call_id]["lost_usd"] or _NOTHING_USD
    return hours


_HOURLY = ("call_count", "input_tokens", "read_tokens", "output_tokens", "break_count")
_HOURLY_USD = ("spent_usd", "lost_usd")


def _add(amounts: Iterable[Decimal | None]) -> Decimal:
    return sum((amount for amount in amounts if amount is not None), _NOTHING_USD)

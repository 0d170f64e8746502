"""Totals of a session over the calls that count: a copy in a fork is shown there, and paid for once."""

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from decimal import Decimal

from dashboard.ingest.picture.columns import Row
from dashboard.ingest.picture.drawing import SessionPicture

_NOTHING_USD = Decimal(0)


Totals = tuple[Row, dict[str, Row], dict[datetime, Row]]


def add_totals(picture: SessionPicture, uncounted: Collection[str]) -> Totals:
    """Columns of the session, of its threads by agent, and of its hours by start, without the `uncounted` calls."""
    calls, losses = picture.calls, picture.losses
    if uncounted:
        calls = {call_id: row for call_id, row in calls.items() if call_id not in uncounted}
        losses = {call_id: row for call_id, row in losses.items() if call_id not in uncounted}
    breaks = {call_id: row for call_id, row in losses.items() if row["kind"] == "break"}
    full = [row for row in picture.compactions.values() if row["kind"] == "full"]
    session: Row = {
        **{name: sum([row[name] for row in calls.values()]) for name in _TOKENS},
        "spent_usd": _add(row["cost_usd"] for row in calls.values()),
        "lost_usd": _add(row["lost_usd"] for row in breaks.values()),
        "avoidable_usd": _add(row["lost_usd"] for row in breaks.values() if row["is_avoidable"]),
        "call_count": len(calls),
        "unpriced_count": [row["cost_usd"] for row in calls.values()].count(None),
        "break_count": len(breaks),
        "rebuild_count": len(losses) - len(breaks),
        "compaction_count": len(full),
        "mid_task_count": sum(row["is_mid_task"] is True for row in full),
        "micro_count": sum(row["kind"] == "micro" for row in picture.compactions.values()),
    }
    spent_usd, lost_usd = _add_by_thread(calls, "cost_usd"), _add_by_thread(breaks, "lost_usd")
    threads: dict[str, Row] = {
        agent_id: {
            "spent_usd": spent_usd.get(agent_id, _NOTHING_USD),
            "lost_usd": lost_usd.get(agent_id, _NOTHING_USD),
        }
        for agent_id in picture.threads
    }
    return session, threads, _add_hours(calls, breaks)


def _add_by_thread(rows: Mapping[str, Row], column: str) -> dict[str, Decimal]:
    sums: dict[str, Decimal] = {}
    for row in rows.values():
        amount = row[column]
        if amount is not None:
            agent_id = row["agent_id"]
            sums[agent_id] = sums.get(agent_id, _NOTHING_USD) + amount
    return sums


_TOKENS = ("input_tokens", "read_tokens", "write_5m_tokens", "write_1h_tokens", "output_tokens")


def _add_hours(calls: dict[str, Row], breaks: dict[str, Row]) -> dict[datetime, Row]:
    hours: dict[datetime, Row] = {}
    for call_id, row in calls.items():
        if row["at"] is None:
            continue
        hour_at = row["at"].replace(minute=0, second=0, microsecond=0)
        hour = hours.get(hour_at)
        if hour is None:
            hour = hours[hour_at] = dict.fromkeys(_HOURLY, 0) | dict.fromkeys(_HOURLY_USD, _NOTHING_USD)
        hour["call_count"] += 1
        hour["read_tokens"] += row["read_tokens"]
        hour["input_tokens"] += (
            row["input_tokens"] + row["read_tokens"] + row["write_5m_tokens"] + row["write_1h_tokens"]
        )
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

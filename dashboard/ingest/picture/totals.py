"""Totals of a session over the calls that count: a copy in a fork is shown there, and paid for once."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from itertools import repeat

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
        "avoidable_usd": _add(row["avoidable_usd"] for row in breaks.values()),
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
    broken = [breaks.get(call_id) for call_id in calls] if breaks else repeat(None)
    grouped: dict[datetime, list[tuple[Row, Row | None]]] = {}
    hour_at, group = None, list[tuple[Row, Row | None]]()
    for row, loss in zip(calls.values(), broken, strict=False):
        at = row["at"]
        if at is None:
            continue
        if hour_at is None or not hour_at <= at < hour_at + _HOUR:  # nearly never: calls follow each other closely
            hour_at = at.replace(minute=0, second=0, microsecond=0)
            group = grouped.setdefault(hour_at, [])
        group.append((row, loss))
    return {
        hour_at: _add_hour([row for row, _ in group], [loss for _, loss in group if loss])
        for hour_at, group in grouped.items()
    }


def _add_hour(calls: Sequence[Row], breaks: Sequence[Row]) -> Row:
    read_tokens = sum([row["read_tokens"] for row in calls])
    return {
        "call_count": len(calls),
        "input_tokens": read_tokens
        + sum([row["input_tokens"] + row["write_5m_tokens"] + row["write_1h_tokens"] for row in calls]),
        "read_tokens": read_tokens,
        "output_tokens": sum([row["output_tokens"] for row in calls]),
        "break_count": len(breaks),
        "spent_usd": _add([row["cost_usd"] for row in calls]),
        "lost_usd": _add([row["lost_usd"] for row in breaks]),
    }


_HOUR = timedelta(hours=1)


def _add(amounts: Iterable[Decimal | None]) -> Decimal:
    return sum((amount for amount in amounts if amount is not None), _NOTHING_USD)

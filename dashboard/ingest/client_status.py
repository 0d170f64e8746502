"""The decoder of status lines: what Claude Code hands to a status line, as facts of its session."""

from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from compaction.timeline.observations import REPORT, ClientReport, LineKind, Observation
from dashboard.client.status_values import StatusValues, read_status
from dashboard.ingest.client_json import find_time, read_clean_text, read_moment, read_objects, read_text
from dashboard.ingest.observed import ObservedLine, ObservedSession, Prepared, Rules

NAME = "statusline"
NO_SESSION = "status without a session"
_LONGEST_AHEAD = timedelta(days=32)  # of limits that start anew each month
_REASONS = 8


def prepare_statuses(data: bytes, rules: Rules, *, arrived_at: datetime) -> Prepared:
    """Everything that can be done without a database. Nothing of a status is content."""
    told, problems = read_objects(data, NAME)
    sessions: dict[str, list[ObservedLine]] = {}
    drops: Counter[str] = Counter()
    for status in told:
        values = read_status(status)
        session_id = read_text(values.session_id)
        if session_id is None:
            drops[NO_SESSION] += 1
            continue
        at = find_time(status.get("plimsoll_at"), arrived_at=arrived_at)
        lines = sessions.setdefault(session_id, [])
        lines.extend(ObservedLine(fact) for fact in _read_facts(values, at, rules))
    return Prepared(
        name=NAME,
        sessions=tuple(ObservedSession(name, tuple(lines)) for name, lines in sessions.items()),
        line_count=len(told) + len(problems),
        problems=tuple(problems),
        drops=dict(drops),
    )


def _read_facts(values: StatusValues, at: datetime, rules: Rules) -> list[Observation]:
    """How things stand, which each later status replaces; and the last miss, which stays."""
    latest = at + _LONGEST_AHEAD
    told = ClientReport(
        event="status",
        model=read_text(values.model),
        context_tokens=values.used_tokens,
        window_tokens=values.window_tokens,
        cache_expires_at=read_moment(values.warm_until, latest=latest),
        rate_limits=_list_limits(values, latest, rules),
    )
    now = Observation(
        id="status:now",
        kind=LineKind.STATUS,
        type=REPORT,
        at=at,
        version=read_clean_text(values.client_version, rules, 60),
        cost_usd=None if values.cost_usd is None or values.cost_usd < 0 else f"{values.cost_usd:.8f}",
        client_report=told,
    )
    miss = _read_miss(values.cache, latest, rules)
    return [now] if miss is None else [now, miss]


def _list_limits(
    values: StatusValues, latest: datetime, rules: Rules
) -> tuple[tuple[str, float, datetime | None], ...]:
    return tuple(
        (
            read_clean_text(name, rules, 40) or "",
            limit["used_percentage"],
            read_moment(limit.get("resets_at"), latest=latest),
        )
        for name, limit in sorted(values.rate_limits.items())
    )


def _read_miss(cache: Mapping[str, Any], latest: datetime, rules: Rules) -> Observation | None:
    """None where the client does not say when, or does not know why."""
    missed_at = read_moment(cache.get("last_miss_at"), latest=latest)
    cause = cache.get("last_miss_cause")
    causes = cause.get("causes") if isinstance(cause, dict) else None
    names = [read_clean_text(name, rules, 60) for name in causes[:_REASONS]] if isinstance(causes, list) else []
    reasons = tuple(name for name in names if name)
    if missed_at is None or not reasons:
        return None
    return Observation(
        id=f"status:miss:{missed_at.astimezone(UTC).isoformat()}",
        kind=LineKind.STATUS,
        type=REPORT,
        at=missed_at,
        client_report=ClientReport(event="miss", reasons=reasons),
    )

"""Rows of sessions for tests of lists and states, made straight in the database, a thousand as quickly as ten."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

from dashboard.models import AgentSession, CacheBreak, CompactionRun, ObservedCompaction

START = datetime(2026, 11, 2, 9, 0, tzinfo=UTC)


def make_breaks(session: AgentSession, count: int, **columns: object) -> list[CacheBreak]:
    """A minute apart; `columns` hold for every one."""
    given: dict[str, object] = {
        "kind": "break",
        "cause": "unexplained",
        "grade": "unknown",
        "model": session.model,
        "expected_tokens": 50_000,
        "read_tokens": 10_000,
        "lost_tokens": 40_000,
        "recreated_tokens": 38_000,
        "lost_usd": Decimal("0.25"),
        "gap_seconds": 41.0,
        "ttl": "5m",
        **columns,
    }
    if given.get("is_avoidable"):
        given.setdefault("avoidable_usd", given["lost_usd"])
    held = CacheBreak.objects.filter(session=session).count()
    return CacheBreak.objects.bulk_create(
        CacheBreak(
            team=session.team,
            session=session,
            call_id=f"{session.external_id}-{held + number}",
            call_number=held + number,
            **{"at": START + timedelta(minutes=number), **given},
        )
        for number in range(1, count + 1)
    )


def make_compactions(session: AgentSession, count: int, **columns: object) -> list[ObservedCompaction]:
    """An hour apart, each compacting the summary of the one before."""
    given: dict[str, object] = {
        "kind": "full",
        "trigger": "auto",
        "before_tokens": 167_000,
        "after_tokens": 51_000,
        "after_origin": "next call",
        "saved_tokens": 116_000,
        **columns,
    }
    held = ObservedCompaction.objects.filter(session=session).count()
    return ObservedCompaction.objects.bulk_create(
        ObservedCompaction(
            team=session.team,
            session=session,
            entry_uuid=f"{session.external_id}-{held + number}",
            **{"chain_number": held + number, "at": START + timedelta(hours=number), **given},
        )
        for number in range(1, count + 1)
    )


def make_run(session: AgentSession, **columns: object) -> CompactionRun:
    """A compaction of our own that is done; without a stored result, unless told otherwise."""
    given: dict[str, object] = {
        "kind": "full",
        "summarizer": "extractive",
        "source": "page",
        "state": "done",
        "stage": "done",
        "before_tokens": 150_000,
        "after_tokens": 21_000,
        **columns,
    }
    return CompactionRun.objects.create(team=session.team, session=session, **given)

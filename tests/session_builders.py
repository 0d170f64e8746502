"""Builders of sessions as the pages find them: threads of calls by the thousand, breaks, compactions."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal

from dashboard.models import AgentSession, ApiCall, CacheBreak, ObservedCompaction, Thread

START = datetime(2026, 11, 2, 9, 0, tzinfo=UTC)


def make_calls(session: AgentSession, count: int, *, agent_id: str = "", **columns: object) -> list[ApiCall]:
    """A thread of calls half a minute apart, each 500 tokens fuller than the last; `columns` hold for every call."""
    calls = list(_draft_calls(session, count, agent_id, columns))
    ApiCall.objects.bulk_create(calls)
    contexts = [call.context_tokens for call in calls]
    Thread.objects.create(
        session=session,
        agent_id=agent_id,
        agent_type="Explore" if agent_id else "",
        model=session.model,
        context_tokens=contexts[-1] if contexts else 0,
        peak_tokens=max(contexts, default=0),
        call_count=count,
    )
    return calls


def _draft_calls(session: AgentSession, count: int, agent_id: str, columns: dict[str, object]) -> Iterator[ApiCall]:
    for number in range(1, count + 1):
        read = 20_000 + 500 * (number - 1)
        tokens = {"input_tokens": 4, "read_tokens": read, "write_5m_tokens": 460, "output_tokens": 36}
        given: dict[str, object] = {
            "at": START + timedelta(seconds=30 * number),
            "ended_at": START + timedelta(seconds=30 * number + 5),
            "turn": 1 + number // 10,
            "model": session.model,
            "client_version": session.client_version,
            "stop_reason": "tool_use",
            "cost_usd": Decimal("0.01"),
            **tokens,
            "context_tokens": read + 500,
            **columns,
        }
        call_id = f"msg_{session.pk}_{agent_id}_{number}"
        yield ApiCall(
            team=session.team, session=session, agent_id=agent_id, number=number, call_id=call_id,
            request_id=f"req_{number}", **given,
        )  # fmt: skip


def add_break(call: ApiCall, *, kind: str = "break", **columns: object) -> CacheBreak:
    given = {"cause": "tools_changed", "grade": "request", "lost_tokens": 20_000, "recreated_tokens": 18_000, **columns}
    given.setdefault("lost_usd", Decimal("0.06"))
    return CacheBreak.objects.create(
        team=call.team, session=call.session, agent_id=call.agent_id, call_id=call.call_id, call_number=call.number,
        at=call.at or START, kind=kind, model=call.model, **given,
    )  # fmt: skip


def add_compaction(session: AgentSession, *, behind: int, **columns: object) -> ObservedCompaction:
    """A full compaction of the main conversation behind its call with this number."""
    given = {"kind": "full", "trigger": "auto", "before_tokens": 167_000, "after_tokens": 51_000, **columns}
    return ObservedCompaction.objects.create(
        team=session.team, session=session, entry_uuid=f"boundary-{behind}", call_number=behind, **given
    )

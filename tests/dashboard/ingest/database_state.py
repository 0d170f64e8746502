"""Everything the database says about sessions, without numbers that only count writes."""

from typing import Any

from dashboard.ingest.segments import read_segment_lines
from dashboard.models import (
    AgentSession,
    ApiCall,
    CacheBreak,
    EntrySegment,
    ObservedCompaction,
    PromptShape,
    SessionHour,
    ShapeUse,
    Thread,
    UnansweredCall,
)

_BY_SESSION = (ApiCall, CacheBreak, ObservedCompaction, SessionHour, Thread, UnansweredCall)
_WRITES_ONLY = {"id", "version", "session_id", "audited_at", "seen_at"}


def read_state() -> dict[str, list[Any]]:
    """Rows by table; lines are compared as a set, as segments may cut them anywhere."""
    state: dict[str, list[Any]] = {"sessions": _rows(AgentSession.objects.values())}
    for model in _BY_SESSION:
        state[model.__name__] = [
            {"session": external_id, **row}
            for external_id, row in sorted(
                (
                    (row.pop("session__external_id"), row)
                    for row in _rows(model.objects.values(*_columns(model), "session__external_id"))
                ),
                key=repr,
            )
        ]
    state["shapes"] = _rows(PromptShape.objects.values())
    state["uses"] = sorted(ShapeUse.objects.values_list("session__external_id", "shape__digest"))
    state["lines"] = sorted(
        (segment.session.external_id, line.fact.id, line.content or b"")
        for segment in EntrySegment.objects.select_related("session")
        for line in read_segment_lines(segment.facts, segment.content)
    )
    return state


def _columns(model: Any) -> list[str]:
    return [field.attname for field in model._meta.concrete_fields]


def _rows(rows: Any) -> list[dict[str, Any]]:
    kept = [{name: _plain(value) for name, value in row.items() if name not in _WRITES_ONLY} for row in rows]
    return sorted(kept, key=repr)


def _plain(value: Any) -> Any:
    return bytes(value) if isinstance(value, memoryview) else value

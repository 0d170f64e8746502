"""What the client's own words change in a session's picture: its window, its cache's end, that it is over."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime

from compaction.context.tokens import ContextSize
from compaction.context.windows import ModelInUse
from compaction.llm.names import read_model_name
from compaction.timeline.calls import Call
from compaction.timeline.observations import LineKind, Observation


def find_status(facts: Iterable[Observation]) -> Observation | None:
    """The last status line; there is one fact of it, replaced by each later one."""
    return next(
        (
            fact
            for fact in facts
            if fact.kind is LineKind.STATUS and fact.client_report and not fact.client_report.reasons
        ),
        None,
    )


def find_end(facts: Iterable[Observation]) -> datetime | None:
    ends = (fact.at for fact in facts if fact.client_report is not None and fact.client_report.event == "SessionEnd")
    return max((at for at in ends if at is not None), default=None)


def add_reported_window(in_use: ModelInUse | None, status: Observation | None) -> ModelInUse | None:
    """The window that the client reports, as long as it speaks of the model in use."""
    told = status.client_report if status is not None else None
    if told is None:
        return in_use
    if in_use is None:
        if not told.model:
            return None
        version = status.version if status is not None else None
        return ModelInUse(told.model, client_version=version, reported_window_tokens=told.window_tokens)
    if told.model and read_model_name(told.model).base != read_model_name(in_use.model).base:
        return in_use
    return replace(in_use, reported_window_tokens=told.window_tokens)


def find_reported_context(calls: Sequence[Call], status: Observation | None) -> ContextSize | None:
    """Where no call is known the status line is all there is."""
    told = status.client_report if status is not None else None
    if status is None or told is None or calls or not told.context_tokens:
        return None
    return ContextSize(told.context_tokens, 0, status.id)


def find_reported_warmth(calls: Sequence[Call], status: Observation | None) -> datetime | None:
    """The client's own word on when the cache ends, unless a call came after it."""
    if status is None or status.client_report is None or status.at is None:
        return None
    last_at = max((call.started_at for call in calls if call.started_at is not None), default=None)
    return status.client_report.cache_expires_at if last_at is None or last_at <= status.at else None

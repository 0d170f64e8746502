"""What the client said of itself in hooks, on its status line, in telemetry: quiet facts, each with its teller."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime

from compaction.timeline.observations import REPORT, ClientReport, LineKind, Observation
from dashboard.ingest.client_hooks import NAME as HOOKS
from dashboard.ingest.client_status import NAME as STATUS_LINE
from dashboard.ingest.otlp.telling import SOURCE as TELEMETRY
from dashboard.ingest.stored_lines import read_stored_lines
from dashboard.models import AgentSession

_TELLERS = {HOOKS, STATUS_LINE, TELEMETRY}
_LIMITS = {"five_hour": "5-hour rate limit", "seven_day": "7-day rate limit"}


@dataclass(frozen=True, slots=True)
class ClientWord:
    """`at`: when the client said it; `resets_at` only of a limit."""

    name: str
    value: str
    teller: str
    at: datetime | None
    resets_at: datetime | None = None


def read_client_words(session: AgentSession) -> tuple[ClientWord, ...]:
    """Nothing is read where no such teller ever spoke."""
    if _TELLERS.isdisjoint(session.sources):
        return ()
    facts = read_stored_lines(session).facts.values()
    return (*_list_limits(facts), *_list_starts(facts), *_count_results(facts))


def _list_limits(facts: Iterable[Observation]) -> Iterator[ClientWord]:
    for fact, told in _find_newest(facts, "status"):
        for name, used_percent, resets_at in told.rate_limits:
            words = _LIMITS.get(name, f"Rate limit {name.replace('_', ' ')}")
            yield ClientWord(words, f"{used_percent:.0f}% used", "status line", fact.at, resets_at)


def _list_starts(facts: Iterable[Observation]) -> Iterator[ClientWord]:
    for fact, told in _find_newest(facts, "SessionStart"):
        if told.context_tokens is not None:
            yield ClientWord("Context at last start", f"{told.context_tokens:,} tokens", "hook", fact.at)
        if told.is_cache_expired is not None:
            state = "probably expired" if told.is_cache_expired else "probably warm"
            yield ClientWord("Cache at last start", state, "hook", fact.at)


def _find_newest(facts: Iterable[Observation], event: str) -> list[tuple[Observation, ClientReport]]:
    """None or one."""
    found = [
        (fact, fact.client_report)
        for fact in facts
        if fact.client_report is not None and fact.client_report.event == event
    ]
    return sorted(found, key=lambda each: each[0].at.timestamp() if each[0].at else 0.0)[-1:]


def _count_results(facts: Iterable[Observation]) -> Iterator[ClientWord]:
    results = [fact for fact in facts if fact.kind is LineKind.RESULT and fact.type == REPORT]
    if results:
        size_bytes = sum(fact.size_bytes for fact in results)
        last_at = max((fact.at for fact in results if fact.at), default=None)
        yield ClientWord("Tool results", f"{len(results):,}, {size_bytes:,} bytes", "telemetry", last_at)

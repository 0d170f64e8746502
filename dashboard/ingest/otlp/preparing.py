"""An export as bytes made ready for `record`: decoded, read item by item, sorted into sessions, drops counted."""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import StrEnum

from compaction.timeline.observations import Observation
from dashboard.ingest.observed import ObservedLine, ObservedSession, ObservedShape, Prepared, Rules
from dashboard.ingest.otlp import json_form, protobuf_form
from dashboard.ingest.otlp.counters import read_point
from dashboard.ingest.otlp.events import read_event
from dashboard.ingest.otlp.spans import read_span
from dashboard.ingest.otlp.telling import SOURCE, Dropped, Told, find_developer
from dashboard.ingest.otlp.values import MOST_ITEMS, Export, Item

TOO_MANY = f"more than {MOST_ITEMS:,} items in one export"


class Signal(StrEnum):
    LOGS = "logs"
    METRICS = "metrics"
    TRACES = "traces"


class Form(StrEnum):
    PROTOBUF = "application/x-protobuf"
    JSON = "application/json"


@dataclass(frozen=True, slots=True)
class PreparedExport:
    """`rejected` items were meant for here and could not be taken; `sentence` says why."""

    prepared: Prepared
    rejected: int = 0
    sentence: str = ""


def prepare_export(data: bytes, signal: Signal, form: Form, rules: Rules) -> PreparedExport:
    """Raises Undecodable, and nothing else whatever the bytes are."""
    reader = json_form if form is Form.JSON else protobuf_form
    match signal:
        case Signal.LOGS:
            return _sort(reader.read_logs(data), lambda record: read_event(record, rules), rules)
        case Signal.METRICS:
            return _sort(reader.read_metrics(data), lambda point: read_point(point, rules), rules)
        case Signal.TRACES:
            return _sort(reader.read_spans(data), lambda span: read_span(span, rules), rules)


@dataclass(slots=True)
class _Drawer:
    facts: dict[str, Observation] = field(default_factory=dict)
    shapes: dict[str, ObservedShape] = field(default_factory=dict)
    developer: str = ""


def _sort(export: Export[Item], read: Callable[[Item], Told | Dropped], rules: Rules) -> PreparedExport:
    drawers: dict[str, _Drawer] = {}
    drops: Counter[str] = Counter()
    redaction_count = 0
    for item in export.items:
        told = read(item)
        if isinstance(told, Dropped):
            drops[told.value] += 1
            continue
        drawer = drawers.get(told.session_id)
        if drawer is None:
            drawer = drawers[told.session_id] = _Drawer()
        drawer.developer = drawer.developer or find_developer(item.attributes, item.resource, rules)
        drawer.facts.update((fact.id, fact) for fact in told.facts)
        drawer.shapes.update((shape.digest, shape) for shape in told.shapes)
        redaction_count += told.redaction_count
    if export.other_count:
        drops[Dropped.UNKNOWN.value] += export.other_count
    if export.left_out:
        drops[TOO_MANY] += export.left_out
    prepared = Prepared(
        name=SOURCE,
        sessions=tuple(_observe(name, drawer) for name, drawer in drawers.items()),
        line_count=len(export.items) + export.other_count,
        drops=dict(drops),
        redactions={"prompt": redaction_count} if redaction_count else {},
    )
    return PreparedExport(prepared, *_find_rejected(drops))


def _observe(name: str, drawer: _Drawer) -> ObservedSession:
    lines: Iterable[ObservedLine] = map(ObservedLine, drawer.facts.values())
    return ObservedSession(name, tuple(lines), tuple(drawer.shapes.values()), drawer.developer)


_REJECTED = (Dropped.NO_SESSION.value, Dropped.CUMULATIVE.value, Dropped.CUT_BODY.value, TOO_MANY)


def _find_rejected(drops: Counter[str]) -> tuple[int, str]:
    """What nobody has a use for is counted, not refused."""
    refused = {reason: drops[reason] for reason in _REJECTED if drops[reason]}
    told = "; ".join(f"{count:,} of them: {reason}" for reason, count in refused.items())
    return sum(refused.values()), f"Dropped: {told}." if told else ""

"""Zoomed ranges of the timeline, as addresses and plotly's axes have them."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from django.utils import timezone

from dashboard.chart_data import TimelineAxis
from dashboard.charts.timeline_columns import Span
from dashboard.person_zone import find_zone

_LARGEST_NUMBER = 10**9
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def read_range(query: Mapping[str, str], axis: TimelineAxis) -> Span | None:
    """Return the range of ?from= and ?to=, None where there is none: call numbers, or times in the zone ?zone=."""
    start, end = query.get("from", ""), query.get("to", "")
    is_timed = axis is TimelineAxis.TIME
    span = _read_times(start, end, query.get("zone", "")) if is_timed else _read_numbers(start, end)
    return span if span is not None and span.start < span.end else None


def write_range(span: Span, axis: TimelineAxis) -> list[Any]:
    """Return the two ends for plotly: numbers, or times of the viewer's wall clock."""
    if axis is TimelineAxis.CALL:
        return [round(span.start, 3), round(span.end, 3)]
    moments = (_EPOCH + timedelta(milliseconds=position) for position in span)
    return [f"{moment:%Y-%m-%d %H:%M:%S}.{moment.microsecond // 1000:03d}" for moment in moments]


def _read_numbers(start: str, end: str) -> Span | None:
    try:
        span = Span(float(start), float(end))
    except ValueError:
        return None
    # Comparisons with "nan" are false.
    return span if all(abs(number) < _LARGEST_NUMBER for number in span) else None


def _read_times(start: str, end: str, zone_name: str) -> Span | None:
    """A link may be opened in another zone than the one it was made in."""
    zone = find_zone(zone_name) or timezone.get_current_timezone()
    try:
        moments = [timezone.localtime(datetime.fromisoformat(text).replace(tzinfo=zone)) for text in (start, end)]
    except (ValueError, OverflowError):
        return None
    return Span(*((moment.replace(tzinfo=UTC) - _EPOCH) / timedelta(milliseconds=1) for moment in moments))

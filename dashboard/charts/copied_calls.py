"""Shade behind the calls that a fork repeats from its origin: they are shown there and counted once."""

from collections.abc import Collection, Iterator, Sequence
from itertools import groupby
from typing import Any

from dashboard.chart_data import TimelineAxis, TimelineCall
from dashboard.charts.timeline_columns import find_position


def shade_copies(calls: Sequence[TimelineCall], copies: Collection[str], axis: TimelineAxis) -> list[dict[str, Any]]:
    """Return one area per run of copies, which are given by key."""
    areas = [_shade_run(run, axis) for run in _list_runs(calls, copies)] if copies else []
    if areas:
        areas[0]["label"] = {
            "text": "copied from the original session, not counted",
            "textposition": "top left",
            "font": {"color": "var(--ink-2)", "size": 11},
        }
    return areas


def _list_runs(calls: Sequence[TimelineCall], copies: Collection[str]) -> Iterator[list[TimelineCall]]:
    for is_copied, run in groupby(calls, lambda call: call.key in copies):
        if is_copied:
            yield list(run)


def _shade_run(run: Sequence[TimelineCall], axis: TimelineAxis) -> dict[str, Any]:
    start, end = find_position(run[0], axis), find_position(run[-1], axis)
    # By call, as wide as the calls of the conversation that they are or stand below.
    return _draw_area(round(start) - 0.5, round(end) + 0.5) if axis is TimelineAxis.CALL else _draw_area(start, end)


def _draw_area(start: float, end: float) -> dict[str, Any]:
    return {
        "type": "rect",
        "layer": "below",
        "x0": start,
        "x1": end,
        "y0": 0,
        "y1": 1,
        "yref": "paper",
        "fillcolor": "var(--sunken)",
        "line": {"width": 0},
    }

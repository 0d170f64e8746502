"""Shade behind the calls that a fork repeats from its origin: they are shown there and counted once."""

from collections.abc import Collection, Iterator, Sequence
from itertools import groupby
from typing import Any

from dashboard.chart_data import TimelineAxis, TimelineCall
from dashboard.charts.timeline import find_place


def shade_copies(
    figure: dict[str, Any], calls: Sequence[TimelineCall], copies: Collection[str], axis: TimelineAxis
) -> dict[str, Any]:
    """The same figure with one area per run of copies, which are told by key; without copies the very same."""
    shown = [call for call in calls if axis is TimelineAxis.CALL or call.at is not None]
    areas = [_shade_run(run, axis) for run in _list_runs(shown, copies)]
    if not areas:
        return figure
    areas[0]["label"] = {
        "text": "copied from the original session, not counted",
        "textposition": "top left",
        "font": {"color": "var(--ink-2)", "size": 11},
    }
    layout = figure["layout"]
    return {**figure, "layout": {**layout, "shapes": [*areas, *layout.get("shapes", ())]}}


def _list_runs(calls: Sequence[TimelineCall], copies: Collection[str]) -> Iterator[list[TimelineCall]]:
    for is_copied, run in groupby(calls, lambda call: call.key in copies):
        if is_copied:
            yield list(run)


def _shade_run(run: Sequence[TimelineCall], axis: TimelineAxis) -> dict[str, Any]:
    start, end = find_place(run[0], axis), find_place(run[-1], axis)
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

"""Shade behind the calls that a fork repeats from its origin: they are shown there and counted once."""

from collections.abc import Iterator, Sequence
from typing import Any

from dashboard.chart_data import TimelineAxis, TimelineCall


def shade_copies(figure: dict[str, Any], copies: Sequence[TimelineCall], axis: TimelineAxis) -> dict[str, Any]:
    """The same figure with one area per run of copies; without copies the very same."""
    if axis is TimelineAxis.CALL:
        areas = [_draw_area(run[0].number - 0.5, run[-1].number + 0.5) for run in _list_runs(copies)]
    else:
        timed = [call for call in copies if call.at is not None]
        areas = [_draw_area(_find_moment(run[0]), _find_moment(run[-1])) for run in _list_runs(timed)]
    if not areas:
        return figure
    areas[0]["label"] = {
        "text": "copied from the origin, not counted",
        "textposition": "top left",
        "font": {"color": "var(--ink-2)", "size": 11},
    }
    layout = figure["layout"]
    return {**figure, "layout": {**layout, "shapes": [*areas, *layout.get("shapes", ())]}}


def _list_runs(calls: Sequence[TimelineCall]) -> Iterator[list[TimelineCall]]:
    run: list[TimelineCall] = []
    for call in calls:
        if run and call.number != run[-1].number + 1:
            yield run
            run = []
        run.append(call)
    if run:
        yield run


def _find_moment(call: TimelineCall) -> float:
    return call.at.timestamp() * 1000 if call.at else 0.0


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

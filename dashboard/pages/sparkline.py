"""A sparkline: shares over time as a tiny drawing made on the server, with the same in words."""

from collections.abc import Sequence
from functools import lru_cache
from html import escape

from django.utils.html import format_html
from django.utils.safestring import SafeString

from dashboard.words import UNKNOWN, say_percent

_WIDTH, _HEIGHT, _PADDING = 72, 18, 2
# By whole percents: finer than a pixel.
_RISES = [f"{_PADDING + (1 - percent / 100) * (_HEIGHT - 2 * _PADDING):.1f}" for percent in range(101)]
_WORDS = [say_percent(percent / 100) for percent in range(101)]
_SIZE = f'width="{_WIDTH}" height="{_HEIGHT}" viewBox="0 0 {_WIDTH} {_HEIGHT}"'
LAST_HIT = "hit rate of the last call"
_NOTHING = format_html('<span class="dim">{}</span>', UNKNOWN)


def draw_sparkline(shares: Sequence[float | None], name: str = LAST_HIT) -> SafeString:
    """Shares from 0 to 1, oldest first, on a fixed scale; unknown ones are gaps. The last known one has a dot."""
    known = [share for share in shares if share is not None]
    if not known:
        return _NOTHING
    points = [
        None if share is None else f"{x} {_RISES[round(100 * min(max(share, 0.0), 1.0))]}"
        for x, share in zip(_spread(len(shares)), shares, strict=True)
    ]
    last = next(point for point in reversed(points) if point is not None)
    low, high = say_percent(min(known)), say_percent(max(known))
    label = escape(f"{name} {say_percent(known[-1])}, between {low} and {high} before")
    return _draw(_trace(points), last, label)


def draw_hits(percents: Sequence[int]) -> SafeString:
    """Hit rates in whole percents, all known: the same drawing in less time, as a list has fifty."""
    if not percents:
        return _NOTHING
    low, high = min(percents), max(percents)
    if low < 0 or high > 100:
        return draw_sparkline([percent / 100 for percent in percents])
    points = [f"{x} {_RISES[percent]}" for x, percent in zip(_spread(len(percents)), percents, strict=True)]
    label = f"{LAST_HIT} {_WORDS[percents[-1]]}, between {_WORDS[low]} and {_WORDS[high]} before"
    return _draw(f"M{'L'.join(points)}", points[-1], label)


def _draw(path: str, last: str, label: str) -> SafeString:
    # format_html, which looks at every number, takes as long as the drawing.
    x, _, y = last.partition(" ")
    return SafeString(
        f'<svg class="sparkline" role="img" aria-label="{label}" {_SIZE}>'
        f'<path d="{path}"/><circle cx="{x}" cy="{y}" r="2"/></svg>'
    )


@lru_cache(maxsize=64)
def _spread(count: int) -> tuple[str, ...]:
    """Where the points stand from left to right; a session has one of few counts."""
    step = (_WIDTH - 2 * _PADDING) / max(1, count - 1)
    return tuple(f"{_PADDING + place * step:.1f}" for place in range(count))


def _trace(points: Sequence[str | None]) -> str:
    """One line from point to point; where one is missing another begins."""
    parts, is_drawing = [], False
    for point in points:
        if point is not None:
            parts.append(f"{'L' if is_drawing else 'M'}{point}")
        is_drawing = point is not None
    return "".join(parts)

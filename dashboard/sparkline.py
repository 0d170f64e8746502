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
_SIZE = f'width="{_WIDTH}" height="{_HEIGHT}" viewBox="0 0 {_WIDTH} {_HEIGHT}"'


def draw_sparkline(shares: Sequence[float | None], name: str = "hit rate") -> SafeString:
    """Shares from 0 to 1, oldest first, on a fixed scale; unknown ones are gaps. The last known one has a dot."""
    known = [share for share in shares if share is not None]
    if not known:
        return format_html('<span class="dim">{}</span>', UNKNOWN)
    places = zip(_spread(len(shares)), shares, strict=True)
    points = [None if share is None else (x, _rise(share)) for x, share in places]
    last_x, last_y = next(point for point in reversed(points) if point is not None)
    low, high = say_percent(min(known)), say_percent(max(known))
    label = escape(f"{name} {say_percent(known[-1])}, between {low} and {high} before")
    # A list draws fifty: format_html, which looks at every number, takes as long as the drawing.
    return SafeString(
        f'<svg class="sparkline" role="img" aria-label="{label}" {_SIZE}>'
        f'<path d="{_trace(points)}"/><circle cx="{last_x}" cy="{last_y}" r="2"/></svg>'
    )


@lru_cache(maxsize=64)
def _spread(count: int) -> tuple[str, ...]:
    """Where the points stand from left to right; a session has one of few counts."""
    step = (_WIDTH - 2 * _PADDING) / max(1, count - 1)
    return tuple(f"{_PADDING + place * step:.1f}" for place in range(count))


def _rise(share: float) -> str:
    return _RISES[round(100 * min(max(share, 0.0), 1.0))]


def _trace(points: Sequence[tuple[str, str] | None]) -> str:
    parts, is_drawing = [], False
    for point in points:
        if point is not None:
            parts.append(f"{'L' if is_drawing else 'M'}{point[0]} {point[1]}")
        is_drawing = point is not None
    return "".join(parts)

"""A sparkline: shares over time as a tiny drawing made on the server, with the same in words."""

from collections.abc import Sequence

from django.utils.html import format_html
from django.utils.safestring import SafeString

from dashboard.words import UNKNOWN, say_percent

_WIDTH, _HEIGHT, _PADDING = 72, 18, 2


def draw_sparkline(shares: Sequence[float | None], name: str = "hit rate") -> SafeString:
    """Shares from 0 to 1, oldest first, on a fixed scale; unknown ones are gaps. The last known one has a dot."""
    known = [share for share in shares if share is not None]
    if not known:
        return format_html('<span class="dim">{}</span>', UNKNOWN)
    step = (_WIDTH - 2 * _PADDING) / max(1, len(shares) - 1)
    points = [None if share is None else (_PADDING + place * step, _rise(share)) for place, share in enumerate(shares)]
    last_x, last_y = next(point for point in reversed(points) if point is not None)
    low, high = say_percent(min(known)), say_percent(max(known))
    return format_html(
        '<svg class="sparkline" role="img" aria-label="{}" width="{}" height="{}" viewBox="0 0 {} {}">'
        '<path d="{}"/><circle cx="{}" cy="{}" r="2"/></svg>',
        f"{name} {say_percent(known[-1])}, between {low} and {high} before",
        _WIDTH,
        _HEIGHT,
        _WIDTH,
        _HEIGHT,
        _trace(points),
        f"{last_x:.1f}",
        f"{last_y:.1f}",
    )


def _rise(share: float) -> float:
    return _PADDING + (1 - min(max(share, 0.0), 1.0)) * (_HEIGHT - 2 * _PADDING)


def _trace(points: Sequence[tuple[float, float] | None]) -> str:
    parts, is_drawing = [], False
    for point in points:
        if point is not None:
            parts.append(f"{'L' if is_drawing else 'M'}{point[0]:.1f} {point[1]:.1f}")
        is_drawing = point is not None
    return "".join(parts)

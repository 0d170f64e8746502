"""The gauge in one line of text: bar with the four lines, what is left, how long the cache stays warm, cost."""

from collections.abc import Mapping
from typing import NamedTuple

from dashboard.client.status_values import StatusValues

BAR_CELLS = 20
NARROW_BAR_CELLS = 10
# In rising order; of lines in one cell the highest is drawn.
MARKS = {"warning": "╎", "error": "╎", "auto": "│", "blocking": "┃"}
ASCII = str.maketrans({"█": "#", "░": ".", "╎": ":", "│": "|", "┃": "!", "▕": "[", "▏": "]", "·": "-", "∞": "?"})
_COLOURS = {"ok": "32", "warning": "33", "error": "31", "auto": "31", "blocking": "1;31"}

StatusLines = Mapping[str, int | None]


class Surface(NamedTuple):
    """What the line is written on."""

    width: int = 80
    has_colour: bool = True
    is_ascii: bool = False


def draw_gauge(values: StatusValues, lines: StatusLines | None, surface: Surface, *, now: float) -> str:
    """One line that fits the width; empty where nothing is known."""
    pieces = [*_draw_room(values, lines, surface), *_tell_cache(values, now=now), *_tell_cost(values)]
    while pieces and sum(map(len, pieces)) + 3 * (len(pieces) - 1) > surface.width:
        pieces.pop()
    text = " · ".join(pieces)
    if surface.is_ascii:
        text = text.translate(ASCII)
    level = find_level(lines, values.used_tokens or 0)
    return f"\x1b[{_COLOURS[level]}m{text}\x1b[0m" if text and surface.has_colour and level else text


def find_level(lines: StatusLines | None, used_tokens: int) -> str:
    """The highest line reached; empty where the window is not known."""
    if lines is None:
        return ""
    reached = [name for name in MARKS if lines[name] is not None and used_tokens >= (lines[name] or 0)]
    return reached[-1] if reached else "ok"


def compute_percent_left(lines: StatusLines, used_tokens: int) -> int:
    limit = lines["limit"] or 0
    if limit <= 0:
        return 0
    return (200 * max(0, limit - used_tokens) + limit) // (2 * limit)


def _draw_room(values: StatusValues, lines: StatusLines | None, surface: Surface) -> list[str]:
    used = values.used_tokens
    if lines is None:
        return [] if used is None else [f"{spell_tokens(used)} tokens, window unknown"]
    left = compute_percent_left(lines, used or 0)
    purpose = "left" if lines["auto"] is None else "until auto-compact"
    percent = f"{left}% {purpose if surface.width >= 60 else 'left'}"
    room = f"{spell_tokens(used or 0)}/{spell_tokens(lines['window'] or 0)}"
    cells = BAR_CELLS if surface.width >= 70 else NARROW_BAR_CELLS if surface.width >= 40 else 0
    return [f"{_draw_bar(lines, used or 0, cells)} {percent}" if cells else percent, room]


def _draw_bar(lines: StatusLines, used_tokens: int, cells: int) -> str:
    window = max(1, lines["window"] or 0)
    full = min(cells, (used_tokens * cells + window // 2) // window)
    bar = ["█"] * full + ["░"] * (cells - full)
    for name, mark in MARKS.items():
        tokens = lines[name]
        if tokens is not None:
            bar[min(cells - 1, tokens * cells // window)] = mark
    return f"▕{''.join(bar)}▏"


def _tell_cache(values: StatusValues, *, now: float) -> list[str]:
    told = []
    if values.warm_until is not None:
        left_seconds = max(0, int(values.warm_until - now))
        told.append(f"warm {left_seconds // 60}:{left_seconds % 60:02d}" if left_seconds else "cache cold")
    elif values.cache.get("warm") is False:
        told.append("cache cold")
    if values.misses:
        told.append(f"{values.misses} cache miss{'es' if values.misses > 1 else ''}")
    return told


def _tell_cost(values: StatusValues) -> list[str]:
    return [] if values.cost_usd is None else [f"${values.cost_usd:,.2f}"]


def spell_tokens(tokens: int) -> str:
    if tokens >= 999_500:
        return f"{tokens / 1_000_000:.2f}".rstrip("0").rstrip(".") + "M"
    return f"{round(tokens / 1000)}k" if tokens >= 1000 else str(tokens)

"""Tags that draw: gauges and sparklines on the server, figures for the script in the page. A row is put together here,
as a list draws fifty of them."""

import secrets
from collections.abc import Iterator, Sequence
from functools import lru_cache
from html import escape

import orjson
from django import template
from django.template.loader import render_to_string
from django.utils.safestring import SafeString

from dashboard.charts import Chart
from dashboard.pages.gauge_bar import SOON_EXPLAINED, GaugeBar, GaugeScale
from dashboard.pages.sparkline import LAST_HIT, draw_sparkline

register = template.Library()

# (height of the drawing, height of the bar in its middle), in pixels
_SIZES = {"row": (14, 8), "card": (20, 12), "header": (26, 16)}
_LEAST_FILL_PIXELS = 3
_SOON = f' <span class="badge lv-auto" title="{SOON_EXPLAINED}">soon</span>'
# What would end a script, or begin one, inside the page: the same in other letters.
_HARMLESS = {ord(letter): f"\\u{ord(letter):04X}" for letter in "<>&"}


@register.simple_tag
def gauge(bar: GaugeBar, size: str = "row") -> SafeString:
    """One gauge in one of three sizes. A row tells how its lines are worked out as its title, the larger ones line by
    line."""
    drawing = _draw_svg(bar, size)
    if size == "row":
        return _draw_row(bar, drawing)
    # Only chance keeps the ids of tooltips apart: fragments join the page later.
    values = {"bar": bar, "size": size, "drawing": drawing, "tip_id": f"tip-{secrets.token_hex(4)}"}
    return render_to_string("parts/gauge.html", values)


@register.simple_tag
def sparkline(shares: Sequence[float | None], name: str = LAST_HIT) -> SafeString:
    """Shares over time, oldest first."""
    return draw_sparkline(shares, name)


@register.simple_tag
def figure(chart: Chart) -> SafeString:
    """The values for static/js/charts.js, as json_script writes them in twenty times the time."""
    values = orjson.dumps(chart.serialize_figure()).decode().translate(_HARMLESS)
    return SafeString(f'<script id="{escape(chart.figure_id)}" type="application/json">{values}</script>')


def _draw_row(bar: GaugeBar, drawing: SafeString) -> SafeString:
    if bar.scale is None:
        # That the level is not known either goes without saying, and would make the column wider than all others.
        title, badge = escape(bar.notice), ""
    else:
        title = " ".join(filter(None, (bar.parts_words, f"{bar.left_words} · {_say_lines(bar.scale, bar.notice)}")))
        badge = f' <span class="badge lv-{bar.style}">{bar.level_words}</span>{_SOON if bar.is_soon else ""}'
    return SafeString(
        f'<div class="gauge gauge-row" title="{title}">{drawing}<div class="gauge-says">'
        f"<b>{bar.used_words}</b> <span>{bar.window_words}</span>{badge}</div></div>"
    )


@lru_cache(maxsize=256)
def _say_lines(scale: GaugeScale, notice: str) -> str:
    return escape("\n".join(filter(None, (scale.labels, scale.sums, notice))))


def _draw_svg(bar: GaugeBar, size: str) -> SafeString:
    height, thickness = _SIZES[size]
    fill = "".join(_draw_fill(bar, (height - thickness) // 2, thickness))
    ticks = _draw_ticks(bar.scale, height) if bar.scale else ""
    # format_html for every shape takes half of the time a list page has; here are numbers and our own names only.
    return SafeString(
        f'<svg class="gauge-bar gauge-{bar.style}" role="img" aria-label="{escape(bar.sentence)}" '
        f'width="100%" height="{height}">{fill}{ticks}</svg>'
    )


def _draw_fill(bar: GaugeBar, top: int, thickness: int) -> Iterator[str]:
    if not bar.is_known:
        place = f'x="0.5" y="{top + 0.5}" width="99.5%" height="{thickness - 1}"'
        yield f'<rect class="gauge-none" {place} rx="4"/>'
        return
    within = min(bar.fill_percent, bar.window_percent)
    width = _LEAST_FILL_PIXELS if bar.used_tokens > 0 and within < 1 else f"{within}%"
    yield f'<rect class="gauge-track" y="{top}" width="100%" height="{thickness}" rx="4"/>'
    yield f'<rect class="gauge-fill" y="{top}" width="{width}" height="{thickness}" rx="4"/>'
    edge = bar.window_percent
    if bar.is_over_full:
        middle, stroke = top + thickness / 2, f'stroke-width="{thickness}"'
        yield f'<line class="gauge-over" x1="{edge}%" x2="{bar.fill_percent}%" y1="{middle}" y2="{middle}" {stroke}/>'
    if bar.shows_edge:
        yield f'<line class="gauge-edge" x1="{edge}%" x2="{edge}%" y2="{2 * top + thickness}"/>'
    if bar.peak_percent is not None and bar.peak_percent > bar.fill_percent:
        x = f'x1="{bar.peak_percent}%" x2="{bar.peak_percent}%"'
        yield f'<line class="gauge-peak" {x} y1="{top}" y2="{top + thickness}"/>'


@lru_cache(maxsize=256)
def _draw_ticks(scale: GaugeScale, height: int) -> str:
    # All halos first: in a long window the ticks lie so close that a halo would cover its neighbour.
    halos, marks = [], []
    for tick in scale.ticks:
        place = f'x1="{tick.percent}%" x2="{tick.percent}%" y2="{height}"'
        name = f"tick-{tick.style} dashed" if tick.is_dashed else f"tick-{tick.style}"
        halos.append(f'<line class="gauge-halo" {place}/>')
        marks.append(f'<line class="{name}" {place}/>')
    return "".join(halos + marks)

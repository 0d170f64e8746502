"""Rows of the table of sessions and the options of its filters, put together here: a page has hundreds of parts, and
the template engine takes longer for them than everything else together. Text of people is escaped.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime, tzinfo
from html import escape

from django import template
from django.urls import reverse
from django.utils import timezone
from django.utils.safestring import SafeString

from dashboard.pages.gauge_bar import GaugeScale
from dashboard.pages.gauges import SessionRow
from dashboard.pages.session_columns import ALL_COLUMNS, COLUMN_TERMS, COLUMN_WORDS, DEFAULT_COLUMNS
from dashboard.pages.session_filters import SessionFilters, SortName
from dashboard.pages.sparkline import draw_hits
from dashboard.templatetags.drawings import gauge
from dashboard.templatetags.plimsoll import say_ago, term
from dashboard.words import say_model, say_percent, say_size, say_usd

register = template.Library()

_HEADING_STYLES = {"developer": "of-developer", "context": "of-context"}
_COLUMN_SORTS = {
    "developer": SortName.DEVELOPER,
    "context": SortName.RISK,
    "forecast": SortName.FORECAST,
    "compactions": SortName.COMPACTIONS,
    "hits": SortName.HIT_RATE,
    "breaks": SortName.LOST,
    "spent": SortName.SPEND,
    "warm": SortName.WARM,
    "active": SortName.ACTIVE,
}


@register.simple_tag
def session_rows(rows: Iterable[SessionRow], columns: Sequence[str] = DEFAULT_COLUMNS) -> SafeString:
    """`columns`: as dashboard.pages.session_columns names them."""
    now, zone = timezone.now(), timezone.get_current_timezone()
    shown = frozenset(columns or DEFAULT_COLUMNS)
    return SafeString("".join([_draw_row(row, now, zone, shown) for row in rows]))


@register.simple_tag
def session_head(
    columns: Sequence[str] = DEFAULT_COLUMNS, *, filters: SessionFilters | None = None, sorting: bool = False
) -> SafeString:
    """The headings of the session and of these columns; with `sorting` those that have a sort are links to it."""
    here, sorted_by = reverse("sessions"), filters if sorting else None
    shown = columns or DEFAULT_COLUMNS
    headings = [_draw_heading(name, sorted_by, here) for name in ALL_COLUMNS if name in shown]
    return SafeString(_draw_first_heading(sorted_by, here) + "".join(headings))


def _draw_first_heading(filters: SessionFilters | None, here: str) -> str:
    """Titles are content, which not everybody may read: no list is sorted by them, but by the project below them."""
    if filters is None:
        return '<th scope="col">Session</th>'
    url = escape(_sort_url(filters, SortName.PROJECT, here))
    return f'<th scope="col"{_say_order(filters, SortName.PROJECT)}>Session, <a href="{url}">project</a></th>'


def _draw_heading(name: str, filters: SessionFilters | None, here: str) -> str:
    kind = f' class="{_HEADING_STYLES.get(name, "num")}"'
    sort = _COLUMN_SORTS.get(name)
    if filters is None or sort is None:
        return f'<th scope="col"{kind}>{_explain_column(name)}</th>'
    heading = _explain_column(name, _sort_url(filters, sort, here))
    return f'<th scope="col"{kind}{_say_order(filters, sort)}>{heading}</th>'


def _sort_url(filters: SessionFilters, sort: SortName, here: str) -> str:
    query = filters.sort_query(sort)
    return f"{here}?{query}" if query else here


def _say_order(filters: SessionFilters, sort: SortName) -> str:
    if filters.sort is not sort:
        return ""
    return f' aria-sort="{"ascending" if filters.is_rising else "descending"}"'


def _explain_column(name: str, url: str = "") -> str:
    words = COLUMN_WORDS[name]
    if name in COLUMN_TERMS:
        return term(COLUMN_TERMS[name], words, url)
    return f'<a href="{escape(url)}">{words}</a>' if url else words


@register.simple_tag
def line_sums(rows: Iterable[SessionRow], columns: Sequence[str] = DEFAULT_COLUMNS) -> SafeString:
    """How the lines of these gauges are worked out, once for all rows with the same: one stop for the keyboard, where
    a title on every gauge is for the pointer alone."""
    if "context" not in (columns or DEFAULT_COLUMNS):
        return SafeString("")
    scales = {row.scale.sums: row.scale for row in rows if row.scale is not None}
    sums = "".join(_draw_sums(scale) for scale in scales.values())
    summary = "<summary>How these thresholds are calculated</summary>"
    return SafeString(f'<details class="gauge-sums">{summary}{sums}</details>' if sums else "")


def _draw_sums(scale: GaugeScale) -> str:
    steps = "".join(f"<dt>{escape(step.formula)}</dt><dd>{escape(step.origin)}</dd>" for step in scale.steps)
    return f"<h3>Window of {say_size(scale.lines.window.tokens)}</h3><dl>{steps}</dl>"


@register.simple_tag
def choice_options(offered: Iterable[str], chosen: str) -> SafeString:
    """The chosen one is there even when it is not offered any more."""
    names = list(offered)
    if chosen and chosen not in names:
        names.insert(0, chosen)
    return SafeString(
        "".join(f"<option{' selected' if name == chosen else ''}>{escape(name)}</option>" for name in names)
    )


def _draw_row(row: SessionRow, now: datetime, zone: tzinfo, shown: frozenset[str]) -> str:
    session = row.session
    name, model = escape(row.name), escape(session.model)
    place = escape(f"{session.project} · {session.branch}" if session.branch else session.project or "no project")
    left = f' data-seconds-left="{row.warm_seconds}"' if row.warm_seconds else ""
    first = (
        f'<td class="two"><span class="dot {row.state}" role="img" aria-label="{row.state}" title="{row.state}"></span>'
        f'<a href="{row.url}" title="{name}">{name}</a><small>{place}</small></td>'
    )
    cells = (
        f'<td class="two of-developer">{escape(session.developer) or "unknown"}'
        f'<small title="{model}">{say_model(model) or "unknown model"}</small></td>',
        f'<td class="of-context">{gauge(row.bar)}</td>' if "context" in shown else "",
        f'<td class="num two">{_split_range(row.forecast_words)}</td>',
        f'<td class="num two">{session.compaction_count}{_below(session.mid_task_count, "mid-task")}</td>',
        f'<td class="num">{draw_hits(session.recent_hits)}{_after(row.hit_rate)}</td>',
        f'<td class="num two">{session.break_count}'
        f"{_small(f'{say_usd(row.lost_usd)} lost') if session.break_count else ''}</td>",
        f'<td class="num two">{_say_spent(row)}</td>',
        f'<td class="num"{left}>{row.warm_words}</td>',
        f'<td class="num dim">{say_ago(session.last_at, now, zone)}</td>',
    )
    chosen = [cell for name, cell in zip(ALL_COLUMNS, cells, strict=True) if name in shown]
    # The order by risk in ascending numbers, by which static/js/live.js puts rows that changed.
    risk = f"{-session.risk_rank} {session.percent_left or 0} {-session.pk}"
    return f'<tr data-session="{session.pk}" data-risk="{risk}">{first}{"".join(chosen)}</tr>'


def _say_spent(row: SessionRow) -> str:
    """Where no call is known, what the client says it paid."""
    paid = row.session.client_cost_usd
    if row.session.call_count == 0 and paid is not None:
        return say_usd(paid) + _small("by client")
    return say_usd(row.spent_usd)


def _split_range(words: str) -> str:
    """~12 calls above, its range below."""
    likely, _, ends = words.partition(" (")
    return likely + _small(ends.rstrip(")")) if ends else likely or "–"  # noqa: RUF001 (the sign for nothing to say)


def _below(count: int, words: str) -> str:
    return _small(f"{count} {words}") if count else ""


def _small(words: str) -> str:
    return f"<small>{words}</small>"


def _after(share: float | None) -> str:
    return "" if share is None else f" {say_percent(share)}"

"""Rows of the table of sessions and the options of its filters, put together here: a page has hundreds of parts, and
the template engine takes longer for them than everything else together. Text of people is escaped.
"""

from collections.abc import Iterable
from datetime import datetime, tzinfo
from html import escape

from django import template
from django.utils import timezone
from django.utils.safestring import SafeString

from dashboard.pages.gauges import SessionRow
from dashboard.pages.sparkline import draw_hits
from dashboard.templatetags.drawings import gauge
from dashboard.templatetags.plimsoll import say_ago
from dashboard.words import say_percent, say_usd

register = template.Library()


@register.simple_tag
def session_rows(rows: Iterable[SessionRow]) -> SafeString:
    now, zone = timezone.now(), timezone.get_current_timezone()
    return SafeString("".join([_draw_row(row, now, zone) for row in rows]))


@register.simple_tag
def choice_options(offered: Iterable[str], chosen: str) -> SafeString:
    """The chosen one is there even when it is not offered any more."""
    names = list(offered)
    if chosen and chosen not in names:
        names.insert(0, chosen)
    return SafeString(
        "".join(f"<option{' selected' if name == chosen else ''}>{escape(name)}</option>" for name in names)
    )


def _draw_row(row: SessionRow, now: datetime, zone: tzinfo) -> str:
    session = row.session
    name, model = escape(row.name), escape(session.model)
    place = escape(f"{session.project} · {session.branch}" if session.branch else session.project or "no project")
    left = f' data-seconds-left="{row.warm_seconds}"' if row.warm_seconds else ""
    cells = (
        f'<td class="two"><span class="dot {row.state}" role="img" aria-label="{row.state}" title="{row.state}"></span>'
        f'<a href="{row.url}" title="{name}">{name}</a><small>{place}</small></td>',
        f'<td class="two">{escape(session.developer) or "not known"}'
        f'<small title="{model}">{model.removeprefix("claude-") or "model not known"}</small></td>',
        f"<td>{gauge(row.bar)}</td>",
        f'<td class="num two">{_split_range(row.forecast_words)}</td>',
        f'<td class="num two">{session.compaction_count}{_below(session.mid_task_count, "mid-task")}</td>',
        f'<td class="num">{draw_hits(session.recent_hits)}{_after(row.last_hit)}</td>',
        f'<td class="num two">{session.break_count}'
        f"{_small(f'{say_usd(row.lost_usd)} lost') if session.break_count else ''}</td>",
        f'<td class="num">{say_usd(row.spent_usd)}</td>',
        f'<td class="num"{left}>{row.warm_words}</td>',
        f'<td class="num dim">{say_ago(session.last_at, now, zone)}</td>',
    )
    return f"<tr>{''.join(cells)}</tr>"


def _split_range(words: str) -> str:
    """~12 turns above, its range below."""
    likely, _, ends = words.partition(" (")
    return likely + _small(ends.rstrip(")")) if ends else likely or "–"  # noqa: RUF001 (the sign for nothing to say)


def _below(count: int, words: str) -> str:
    return _small(f"{count} {words}") if count else ""


def _small(words: str) -> str:
    return f"<small>{words}</small>"


def _after(share: float | None) -> str:
    return "" if share is None else f" {say_percent(share)}"

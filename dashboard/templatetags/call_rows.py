"""Rows of the table of calls, put together here: a page has six hundred cells. Text of people is escaped."""

from html import escape

from django import template
from django.utils.safestring import SafeString

from dashboard.pages.session_calls import CallPage, CallRow
from dashboard.templatetags.plimsoll import moment

register = template.Library()

_COPY = '<tr class="dim">'


@register.simple_tag
def call_rows(page: CallPage, link: str) -> SafeString:
    """`link`: an address that a call's id completes."""
    address = escape(link)
    return SafeString("".join([_draw_row(row, address, has_agents=page.has_agents) for row in page.rows]))


def _draw_row(row: CallRow, address: str, *, has_agents: bool) -> str:
    picked = f"{address}{row.call.pk}"
    thread = f'<td class="nowrap">{escape(row.thread)}</td>' if has_agents else ""
    figures = "".join([f'<td class="num">{figure}</td>' for figure in row.figures])
    return (
        f"{'<tr>' if row.call.is_counted else _COPY}"
        f'<td class="num"><a href="{picked}" hx-get="{picked}" hx-target="#call-details">{row.call.number:,}</a></td>'
        f'<td class="nowrap">{moment(row.at, "unknown")}</td>{thread}{figures}'
        f"<td>{escape('; '.join(row.events))}</td></tr>"
    )

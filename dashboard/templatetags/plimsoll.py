"""Filters and tags of the templates: numbers with units, times, levels, provenance. People's text is escaped."""

import math
import secrets
from datetime import datetime, tzinfo
from typing import Any

from django import template
from django.template.context import Context, RequestContext
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString

from dashboard.access import NOBODY, Actor
from dashboard.models import AgentSession, Team
from dashboard.pages.glossary import explain_term
from dashboard.words import format_retained, name_prices, say_model, say_percent, say_seconds, say_tokens, say_usd

register = template.Library()

LEVEL_WORDS = {"ok": "ok", "warning": "warning", "error": "error", "auto": "auto-compact", "blocking": "blocking"}
PROVENANCE_GRADES = ("measured", "estimated", "inferred")
_STEPS = (
    (60, 1, "s"),
    (3600, 60, "min"),
    (86_400, 3600, "h"),
    (100 * 86_400, 86_400, "day"),
    (365 * 86_400, 30 * 86_400, "month"),
)


register.filter("model_name", say_model)
register.filter("tokens", say_tokens)
register.filter("usd", say_usd)
register.filter("percent", say_percent)
register.filter("retained", format_retained)
register.filter("seconds", say_seconds)


@register.filter
def ago(at: datetime | None, absent: str = "never") -> SafeString | str:
    """The distance to now in words, before or after it; the exact time on hover."""
    return absent if at is None else say_ago(at, timezone.now(), timezone.get_current_timezone())


def say_ago(at: datetime, now: datetime, zone: tzinfo) -> SafeString:
    seconds = (now - at).total_seconds()
    # A key made to last 90 days has a little less left when its page is drawn; it still says 90.
    words = _distance(seconds if seconds > 0 else math.ceil(-seconds))
    if words != "just now":
        words = f"{words} ago" if seconds > 0 else f"in {words}"
    return _time(at, words, zone, f' data-age="{math.floor(seconds)}"')  # static/js/ages.js lets it grow


@register.simple_tag
def just_now() -> SafeString:
    """The moment of drawing, which grows older while the page is open."""
    now = timezone.now()
    return say_ago(now, now, timezone.get_current_timezone())


@register.filter
def moment(at: datetime | None, absent: str = "never") -> SafeString | str:
    """The exact time, to the minute; seconds and zone on hover."""
    if at is None:
        return absent
    zone = timezone.get_current_timezone()
    return _time(at, f"{at.astimezone(zone):%Y-%m-%d %H:%M}", zone)


def _distance(seconds: float) -> str:
    if seconds < 1:
        return "just now"
    for limit, unit_seconds, unit in _STEPS:
        if seconds < limit:
            return _counted(int(seconds // unit_seconds), unit)
    return _counted(int(seconds // (365 * 86_400)), "year")


def _counted(count: int, unit: str) -> str:
    plural = "s" if count != 1 and unit in ("day", "month", "year") else ""
    return f"{count} {unit}{plural}"


def _time(at: datetime, words: str, zone: tzinfo, more: str = "") -> SafeString:
    local = at.astimezone(zone)
    exact = f"{local.isoformat(' ', 'seconds')[:19]} {local.tzname()}"
    # Numbers and our own words: nothing to escape, and a list says it fifty times.
    return SafeString(f'<time datetime="{at.isoformat(timespec="seconds")}" title="{exact}"{more}>{words}</time>')


@register.simple_tag
def level(name: str, words: str = "") -> SafeString:
    """A level as a badge: the colour and always the word."""
    if name not in LEVEL_WORDS:
        raise ValueError(f"Unknown level: {name!r}.")
    return format_html('<span class="badge lv-{}">{}</span>', name, words or LEVEL_WORDS[name])


@register.simple_tag
def prov(word: str, explanation: str, url: str = "") -> SafeString:
    """Where a number comes from: a dotted word with a tooltip for pointer and keyboard; with an address a link."""
    # The same word may stand twice on a page, and fragments join it later: only chance keeps the ids apart.
    tip_id = f"tip-{secrets.token_hex(4)}"
    opening, tag = (format_html('a href="{}"', url), "a") if url else ('button type="button"', "button")
    return format_html(
        '<span class="prov"><{0} aria-describedby="{1}">{2}</{3}>'
        '<span class="tip" role="tooltip" id="{1}">{4}</span></span>',
        SafeString(opening),
        tip_id,
        word,
        tag,
        explanation,
    )


@register.simple_tag
def term(name: str, words: str = "", url: str = "") -> SafeString:
    """A word of the glossary with its explanation: {% term "hit rate" %}, or with other words in the text."""
    return prov(words or name, explain_term(name), url)


@register.simple_tag
def provenance(grade: str) -> SafeString:
    """How a number is known: measured, estimated or inferred."""
    if grade not in PROVENANCE_GRADES:
        raise ValueError(f"Unknown provenance: {grade!r}.")
    return format_html('<span class="provenance">{}</span>', term(grade))


@register.simple_tag(takes_context=True)
def list_price(context: Context) -> SafeString:
    """Label of dollar amounts: list price, or your prices where set in a team that has some."""
    return format_html('<span class="provenance">{}</span>', term(name_prices(has_own=_has_own_prices(context))))


def _has_own_prices(context: Context) -> bool:
    """Of the team whose figures are shown; where a page shows several, of any of them."""
    session, team = context.get("session"), context.get("priced_team") or context.get("team")
    if isinstance(session, AgentSession):
        team = session.team
    if isinstance(team, Team):
        return team.has_own_prices
    actor: Actor = getattr(context.get("request"), "actor", NOBODY)
    return any(standing.team.has_own_prices for standing in actor.standings.values())


@register.simple_tag(takes_context=True)
def tab(context: RequestContext, label: str, url: str, count: int | None = None) -> SafeString:
    """A link in the tabs block, marked when it leads to the page it stands on."""
    page: Any = context.get("page")
    here = page is not None and page.path.partition("?")[0] == url
    counted = "" if count is None else format_html(' <span class="count">{}</span>', count)
    pattern = '<a href="{}" aria-current="page">{}{}</a>' if here else '<a href="{}">{}{}</a>'
    return format_html(pattern, url, label, counted)

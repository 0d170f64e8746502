"""Links that export the list a page shows, with its filters and without its place."""

from django import template
from django.http import HttpRequest
from django.template.context import RequestContext
from django.utils.html import format_html
from django.utils.safestring import SafeString

from dashboard.exports.formats import Format

register = template.Library()

# What says where in a list, or what else on its page, somebody is.
_PLACES = ("before", "after", "rebuilds_before", "micro_before", "failed_before", "runs_before", "call", "break", "x")


@register.simple_tag(takes_context=True)
def export_links(context: RequestContext, what: str, part: str = "") -> SafeString:
    """The first list of a page answers to the key e."""
    request: HttpRequest = context["request"]
    kept = request.GET.copy()
    for name in (*_PLACES, "export", "part"):
        kept.pop(name, None)
    if part:
        kept["part"] = part
    addresses = []
    for wanted in Format:
        kept["export"] = wanted.value
        addresses.append(f"{request.path}?{kept.urlencode()}")
    key = "" if part else format_html(' data-key="e" data-key-words="Export {} as CSV"', what)
    return format_html(
        '<span class="exports">Export <a href="{}"{} aria-label="Export {} as CSV">CSV</a> '
        '<a href="{}" aria-label="Export {} as JSON">JSON</a></span>',
        addresses[0],
        key,
        what,
        addresses[1],
        what,
    )

"""The request as pages and endpoints see it, after the middleware has said who is asking."""

from django.http import HttpRequest
from django_htmx.middleware import HtmxDetails

from dashboard.access import Actor
from dashboard.live.page_state import PageState


class PageRequest(HttpRequest):
    actor: Actor
    htmx: HtmxDetails
    live: PageState | None  # of a page that changes by itself

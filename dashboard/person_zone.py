"""The person's time zone: the browser names it in a cookie, and every time of the page is shown in it."""

from collections.abc import Callable
from functools import lru_cache
from zoneinfo import ZoneInfo, available_timezones

from django.http import HttpRequest, HttpResponseBase
from django.utils import timezone

ZONE_COOKIE = "plimsoll_zone"


class PersonZoneMiddleware:
    """Without the cookie, or with a zone that does not exist, times stay in UTC and say so."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        with timezone.override(find_zone(request.COOKIES.get(ZONE_COOKIE, ""))):
            return self.get_response(request)


def find_zone(name: str) -> ZoneInfo | None:
    """None for a name that is no zone, whatever it is."""
    return ZoneInfo(name) if name in _list_zones() else None


@lru_cache(maxsize=1)
def _list_zones() -> frozenset[str]:
    # The names are checked against the list first: ZoneInfo opens a file by the name it is given.
    return frozenset(available_timezones())

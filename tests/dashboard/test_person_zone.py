"""Times in the zone that the person's browser names."""

import pytest
from django.http import HttpRequest, HttpResponse
from django.test import RequestFactory
from django.utils import timezone

from dashboard.person_zone import ZONE_COOKIE, PersonZoneMiddleware


def name_zone(request: HttpRequest) -> HttpResponse:
    return HttpResponse(timezone.get_current_timezone_name())


@pytest.mark.parametrize(
    ("cookie", "zone"),
    [
        (None, "UTC"),
        ("Asia/Tokyo", "Asia/Tokyo"),
        ("America/Argentina/Ushuaia", "America/Argentina/Ushuaia"),
        ("Mars/Olympus_Mons", "UTC"),
        ("../../etc/passwd", "UTC"),
        ("", "UTC"),
    ],
)
def test_page_is_drawn_in_the_zone_of_the_cookie(cookie: str | None, zone: str) -> None:
    request = RequestFactory().get("/")
    if cookie is not None:
        request.COOKIES[ZONE_COOKIE] = cookie
    answer = PersonZoneMiddleware(name_zone)(request)
    assert isinstance(answer, HttpResponse)
    assert answer.content.decode() == zone
    assert timezone.get_current_timezone_name() == "UTC"

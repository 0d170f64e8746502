"""First steps of the overview: opening one ticks it off in this browser, and the card can be dismissed."""

from django.conf import settings
from django.http import HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_GET, require_POST

from dashboard.page_request import PageRequest
from dashboard.pages.first_steps import BREAK, DISMISSED, SESSION, STEPS_COOKIE, read_steps
from dashboard.views.theme import ONE_YEAR_SECONDS


@require_GET
def open_first_session(request: PageRequest, session_id: int) -> HttpResponse:
    """Whether the person may see it is for the page itself to decide; so with a cache break."""
    return _remember(request, redirect("session", session_id), SESSION)


@require_GET
def open_first_break(request: PageRequest, break_id: int) -> HttpResponse:
    return _remember(request, redirect("cache_break", break_id), BREAK)


@require_POST
def dismiss_first_steps(request: PageRequest) -> HttpResponse:
    return _remember(request, redirect("overview"), DISMISSED)


def _remember(request: PageRequest, response: HttpResponse, name: str) -> HttpResponse:
    done = read_steps(request.COOKIES.get(STEPS_COOKIE, "")) | {name}
    response.set_cookie(
        STEPS_COOKIE,
        ".".join(sorted(done)),
        max_age=ONE_YEAR_SECONDS,
        samesite="Lax",
        secure=settings.TLS,
        httponly=True,
    )
    return response

"""Light, dark, or as the system says; kept in a cookie, so that the first byte of a page already knows it."""

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.http import HttpResponse
from django.views.decorators.http import require_POST

from dashboard.page_context import THEME_COOKIE, THEMES
from dashboard.page_request import PageRequest
from dashboard.views.next_page import redirect_to_next_page

ONE_YEAR_SECONDS = 365 * 24 * 3600


@login_not_required
@require_POST
def theme(request: PageRequest) -> HttpResponse:
    response = redirect_to_next_page(request)
    if (wanted := request.POST.get("theme")) in THEMES:
        # Not HttpOnly: theme.js flips the page at once and writes the same cookie.
        response.set_cookie(THEME_COOKIE, wanted, max_age=ONE_YEAR_SECONDS, samesite="Lax", secure=settings.TLS)
    else:
        response.delete_cookie(THEME_COOKIE)
    return response

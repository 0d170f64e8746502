"""Light, dark, or as the system says; kept in a cookie, so that the first byte of a page already knows it."""

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.http import HttpResponse
from django.shortcuts import redirect
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_POST

from dashboard.page_context import THEME_COOKIE, THEMES
from dashboard.page_request import PageRequest

ONE_YEAR_SECONDS = 365 * 24 * 3600


@login_not_required
@require_POST
def theme(request: PageRequest) -> HttpResponse:
    target = request.POST.get("next", "/")
    safe = url_has_allowed_host_and_scheme(
        target, allowed_hosts={request.get_host()}, require_https=request.is_secure()
    )
    response = redirect(target if safe else "/")
    if (wanted := request.POST.get("theme")) in THEMES:
        # Not HttpOnly: theme.js flips the page at once and writes the same cookie.
        response.set_cookie(THEME_COOKIE, wanted, max_age=ONE_YEAR_SECONDS, samesite="Lax", secure=settings.TLS)
    else:
        response.delete_cookie(THEME_COOKIE)
    return response

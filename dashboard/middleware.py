"""What every request passes inside Django: security headers, who is asking, and that pages need a signed-in person."""

from collections.abc import Callable
from typing import Any, cast
from urllib.parse import urlencode

from django.conf import settings
from django.contrib.auth.middleware import LoginRequiredMiddleware
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.middleware.gzip import GZipMiddleware
from django.shortcuts import resolve_url
from django.utils.cache import patch_vary_headers
from django.utils.deprecation import MiddlewareMixin
from django.utils.functional import SimpleLazyObject
from django_htmx.http import HttpResponseClientRedirect

from dashboard import access
from dashboard.addresses import find_view
from dashboard.models import User
from dashboard.page_request import PageRequest

CONTENT_SECURITY_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "style-src-elem 'self'",
        # Plotly positions its layers by style attributes; its style rules come as a file, static/css/plotly.css.
        "style-src-attr 'unsafe-inline'",
        "img-src 'self' data:",
        "font-src 'self'",
        "connect-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    )
)

# These ways in authenticate by themselves, by key or by session, and answer 401 instead of a redirect.
SELF_AUTHENTICATING = "/api/v1/"
KEYS_ALONE = ("/v1/", "/ingest/")

LEAST_COMPRESSED_BYTES = 1400  # what is smaller travels in one packet anyway


def security_headers() -> dict[str, str]:
    """For every response, those that never reach Django included (dashboard/front_door.py)."""
    headers = {
        "Content-Security-Policy": CONTENT_SECURITY_POLICY,
        "X-Content-Type-Options": "nosniff",
        "X-Frame-Options": "DENY",
        "Referrer-Policy": settings.SECURE_REFERRER_POLICY,
        "Cross-Origin-Opener-Policy": "same-origin",
        "Cross-Origin-Resource-Policy": "same-origin",
        "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
    }
    if settings.TLS:
        headers["Strict-Transport-Security"] = f"max-age={settings.SECURE_HSTS_SECONDS}; includeSubDomains; preload"
    return headers


class SecurityHeadersMiddleware:
    """The outermost one, so that redirects and error pages carry the headers too."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response
        self.headers = security_headers()

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        response = self.get_response(request)
        for name, value in self.headers.items():
            response.headers.setdefault(name, value)
        response.headers.setdefault("Cache-Control", "private, no-cache")
        return response


class PageCompressionMiddleware(GZipMiddleware):
    """Compresses what a person waits for: pages, and the parts of them that scripts fetch.

    A session of 20,000 calls is 37 kB instead of 136, the list of sessions 13 instead of 128; that costs 0.4 to 3 ms of
    CPU per page, and less than 0.1 ms per part (bench/first_paint.py). Django adds random padding against BREACH.
    Streams, downloads, exports and the JSON API leave as they are; what /live/ and the proxy send does not pass here.
    """

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        if isinstance(response, HttpResponse) and is_worth_compressing(request, response):
            return super().process_response(request, response)
        return response


def is_worth_compressing(request: HttpRequest, response: HttpResponse) -> bool:
    kind = response.headers["Content-Type"].split(";")[0]
    is_for_page = kind == "text/html" or (kind == "application/json" and "HX-Request" in request.headers)
    return is_for_page and len(response.content) >= LEAST_COMPRESSED_BYTES


class ProgramMiddleware:
    """Behind it comes what is for people alone: sessions, tokens of forms, their zone. What brings a key, or can be
    opened by nothing else, goes from here to its view."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if not is_for_program(request):
            return self.get_response(request)
        request.resolver_match = view = find_view(request.path_info)
        response: HttpResponseBase = view.func(request, *view.args, **view.kwargs)
        return response


def is_for_program(request: HttpRequest) -> bool:
    return request.path.startswith(KEYS_ALONE) or (
        request.path.startswith(SELF_AUTHENTICATING) and "HTTP_AUTHORIZATION" in request.META
    )


class PartsMiddleware(MiddlewareMixin):
    """One address is a page, and for scripts a part of it: without these names in Vary, a browser that goes back would
    show the part that it kept as the page."""

    def process_response(self, _request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        patch_vary_headers(response, ("HX-Request", "HX-Target"))
        return response


class ActorMiddleware:
    """`request.actor`, read from the database when it is first asked for."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        def who() -> access.Actor:
            return access.person(request.user) if isinstance(request.user, User) else access.NOBODY

        cast("PageRequest", request).actor = cast("access.Actor", SimpleLazyObject(who))
        return self.get_response(request)


class SignInRequiredMiddleware(LoginRequiredMiddleware):
    """Every view needs a signed-in person unless it says otherwise (`login_not_required`)."""

    def process_view(
        self,
        request: HttpRequest,
        view_func: Callable[..., HttpResponseBase],
        view_args: tuple[Any, ...],
        view_kwargs: dict[str, Any],
    ) -> HttpResponseBase | None:
        # Asked first, because Django's own order reads the session from the database even for a probe.
        if not getattr(view_func, "login_required", True) or request.path.startswith(SELF_AUTHENTICATING):
            return None
        return super().process_view(request, view_func, view_args, view_kwargs)

    def handle_no_permission(  # type: ignore[override]  # the stubs know redirects only
        self, request: HttpRequest, view_func: Callable[..., HttpResponseBase]
    ) -> HttpResponseBase:
        details = cast("PageRequest", request).htmx
        if not details:
            return super().handle_no_permission(request, view_func)
        # A fragment asked for after the session ended: the whole page goes to sign in, not the fragment's place.
        query = urlencode({"next": details.current_url_abs_path or "/"})
        return HttpResponseClientRedirect(f"{resolve_url(settings.LOGIN_URL)}?{query}")

"""Error pages. They ask the database nothing: it may be what failed."""

import sys
from http import HTTPStatus

from django.conf import settings
from django.core.exceptions import TooManyFilesSent
from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.template.loader import render_to_string

from dashboard.page_context import chosen_theme
from dashboard.sqlite_damage import DAMAGED, is_damage

_WORDS = {
    HTTPStatus.BAD_REQUEST: "Bad request.",
    HTTPStatus.FORBIDDEN: "You don't have permission.",
    HTTPStatus.NOT_FOUND: "Page not found.",
    HTTPStatus.INTERNAL_SERVER_ERROR: "Something went wrong.",
    HTTPStatus.SERVICE_UNAVAILABLE: "The database is unreachable. Try again in a moment.",
}
TOO_MANY_FILES = (
    f"More than {settings.DATA_UPLOAD_MAX_NUMBER_FILES:,} files in one request. None of them was imported. "
    "Send at most 500 at a time, or import the whole folder with `plimsoll import`."
)


def bad_request(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    reason = TOO_MANY_FILES if isinstance(exception, TooManyFilesSent) else ""
    return _answer(request, HTTPStatus.BAD_REQUEST, reason=reason)


def forbidden(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    return _answer(request, HTTPStatus.FORBIDDEN, reason=str(exception or ""))


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    words = "Your session expired. Reload the page and try again."
    return _answer(request, HTTPStatus.FORBIDDEN, reason=words)


def not_found(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    return _answer(request, HTTPStatus.NOT_FOUND)


def server_error(request: HttpRequest) -> HttpResponse:
    """An unreachable, locked, full, read-only or damaged database can be tried again: 503, not 500."""
    error = sys.exc_info()[1]
    if isinstance(error, (OperationalError, InterfaceError)) or is_damage(error):
        reason = DAMAGED if is_damage(error) else ""
        response = _answer(request, HTTPStatus.SERVICE_UNAVAILABLE, reason=reason)
        response["Retry-After"] = str(settings.RETRY_AFTER_SECONDS)
        return response
    return _answer(request, HTTPStatus.INTERNAL_SERVER_ERROR)


def _answer(request: HttpRequest, status: HTTPStatus, *, reason: str = "") -> HttpResponse:
    words = reason or _WORDS[status]
    if request.path.startswith(("/api/", "/v1/")):
        return JsonResponse({"detail": words}, status=status)
    context = {"reason": reason, "page": {"theme": chosen_theme(request)}}
    return HttpResponse(render_to_string(f"errors/{status.value}.html", context), status=status)

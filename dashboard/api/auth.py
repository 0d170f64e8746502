"""Who calls the API: a program with a key, or the person signed in to the pages (then with a CSRF token)."""

from django.conf import settings
from django.http import HttpRequest
from django.utils import timezone
from ninja.security import APIKeyCookie, HttpBearer

from dashboard import access
from dashboard.access import Actor
from dashboard.accounts.programs import find_program
from dashboard.models import User


def count_body(request: HttpRequest) -> int:
    """As it came over the wire; a chunked body says no length beforehand."""
    told = request.META.get("CONTENT_LENGTH") or ""
    return int(told) if told.isascii() and told.isdigit() else len(request.body)


class KeyAuth(HttpBearer):
    """`Authorization: Bearer plk_…`."""

    def __call__(self, request: HttpRequest) -> Actor | None:
        scheme, _, token = request.META.get("HTTP_AUTHORIZATION", "").partition(" ")
        return self.authenticate(request, token) if scheme.lower() == self.openapi_scheme else None

    def authenticate(self, request: HttpRequest, token: str) -> Actor:
        return find_program(token, size_bytes=count_body(request), now=timezone.now())


class SessionAuth(APIKeyCookie):
    """The browser's session. A request that brings a key stands or falls by the key alone."""

    param_name = settings.SESSION_COOKIE_NAME

    def __call__(self, request: HttpRequest) -> Actor | None:
        if "Authorization" in request.headers or not isinstance(request.user, User):
            return None
        self._get_key(request)  # refuses a request without a CSRF token
        return self.authenticate(request, None)

    def authenticate(self, request: HttpRequest, key: str | None) -> Actor | None:
        return access.person(request.user) if isinstance(request.user, User) else None

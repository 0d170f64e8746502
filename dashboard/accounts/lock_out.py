"""Under which name wrong passwords are counted; axes does the counting."""

from collections.abc import Mapping

from django.http import HttpRequest

from dashboard.models.user import normalize_name

_AXES_LENGTH = 255  # of the column that it is written to


def count_attempts_by(request: HttpRequest, credentials: Mapping[str, str] | None) -> str:
    """Return the form that all spellings of an account's name share: no fresh spelling starts a fresh count."""
    name = (credentials or request.POST).get("username") or ""
    return normalize_name(name)[:_AXES_LENGTH]

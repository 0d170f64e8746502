"""The request as endpoints see it: `auth` is the actor that dashboard/api/auth.py found."""

from django.http import HttpRequest

from dashboard.access import Actor
from dashboard.models import User


class BadQuestion(Exception):
    """What is asked cannot be answered; the message is for the caller."""


class ApiRequest(HttpRequest):
    auth: Actor


def acting_user(request: ApiRequest) -> User:
    """Whom the audit log names: the person, or the owner of the key."""
    if request.auth.user is None:
        raise TypeError("an authenticated actor has a user")
    return request.auth.user

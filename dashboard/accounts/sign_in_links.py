"""One-time sign-in links."""

from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import QuerySet

from dashboard.accounts import tokens
from dashboard.models import SignInLink, User

# Of our own address. Django would load every page of the product to say it, which commands need not wait for.
PATH = "sign-in/link/"


def create_link(user: User, *, now: datetime, valid_for: timedelta) -> str:
    token = tokens.make_token(tokens.SIGN_IN_LINK)
    SignInLink.objects.create(user=user, digest=tokens.digest(token), created_at=now, expires_at=now + valid_for)
    return f"{settings.PUBLIC_URL}/{PATH}{token}/"


def find_user(token: str, *, now: datetime) -> User | None:
    """Return who would be signed in by the link, without using it."""
    link = _usable(token, now).select_related("user").first()
    return link.user if link else None


def redeem(token: str, *, now: datetime) -> User | None:
    """Of two browsers with the same link, the conditional update signs in one."""
    user = find_user(token, now=now)
    return user if user and _usable(token, now).update(used_at=now) else None


def expire_links(user: User, *, now: datetime) -> None:
    """End the links that were printed for a person and not used yet."""
    SignInLink.objects.filter(user=user, used_at=None, expires_at__gt=now).update(expires_at=now)


def _usable(token: str, now: datetime) -> QuerySet[SignInLink]:
    return SignInLink.objects.filter(
        digest=tokens.digest(token), used_at=None, expires_at__gt=now, user__is_active=True
    )

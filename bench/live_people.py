"""Signed-in people for bench/live.py: makes so many members of the local team and prints a session cookie for each.

A process of its own, started in the environment of the installation it writes to: python -m bench.live_people COUNT.
"""

import sys
from importlib import import_module

import django

django.setup()

from django.conf import settings  # noqa: E402
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY  # noqa: E402
from django.db import transaction  # noqa: E402

from dashboard.models import Membership, Role, Team, User  # noqa: E402


def sign_in_person(team: Team, number: int) -> str:
    """Every second one may read what sessions say, so that pages of both kinds are drawn."""
    user = User.objects.create_user(f"person-{number}")
    Membership.objects.create(team=team, user=user, role=Role.MEMBER, content_grant=bool(number % 2))
    store = import_module(settings.SESSION_ENGINE).SessionStore()
    store[SESSION_KEY] = str(user.pk)
    store[BACKEND_SESSION_KEY] = settings.AUTHENTICATION_BACKENDS[-1]
    store[HASH_SESSION_KEY] = user.get_session_auth_hash()
    store.create()
    return f"{settings.SESSION_COOKIE_NAME}={store.session_key}"


def main() -> None:
    team = Team.objects.get(is_local=True)
    with transaction.atomic():
        for number in range(int(sys.argv[1])):
            print(sign_in_person(team, number))


if __name__ == "__main__":
    main()

"""What the commands of `plimsoll` share: help without Django's own options, passwords typed or piped in."""

import getpass
import sys

from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError

from dashboard.models import User


class PlainCommand(BaseCommand):
    requires_system_checks = []  # `plimsoll check` runs them; a person at the terminal waits for no checks
    suppressed_base_arguments = {
        "--version",
        "--verbosity",
        "--settings",
        "--pythonpath",
        "--traceback",
        "--no-color",
        "--force-color",
        "--skip-checks",
    }

    def say(self, text: str) -> None:
        """At once, even into a pipe: whoever reads it waits for the address."""
        self.stdout.write(text)
        self.stdout.flush()


def find_user(name: str) -> User:
    user = User.objects.find_by_name(name)
    if user is None:
        raise CommandError(f"Account {name} not found.")
    return user


def read_new_password(user: User) -> str:
    """Typed twice on a terminal; one line from a pipe otherwise."""
    if sys.stdin.isatty():
        password = getpass.getpass(f"New password for {user.username}: ")
        if getpass.getpass("Repeat password: ") != password:
            raise CommandError("The passwords do not match. Nothing was changed.")
    else:
        password = sys.stdin.readline().rstrip("\r\n")
    try:
        validate_password(password, user)
    except ValidationError as error:
        raise CommandError(f"{' '.join(error.messages)} Nothing was changed.") from None
    return password

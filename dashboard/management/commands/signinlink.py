"""`plimsoll signinlink [NAME]`."""

from datetime import timedelta

from django.conf import settings
from django.core.management.base import CommandError, CommandParser
from django.utils import timezone

from dashboard.accounts.local import ensure_local_owner
from dashboard.accounts.sign_in_links import create_link
from dashboard.management.plain_command import PlainCommand, find_user


class Command(PlainCommand):
    help = "Prints a one-time sign-in link that needs no password."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", nargs="?", help="user name (default on your own machine: its owner)")
        parser.add_argument(
            "--hours",
            type=int,
            default=1,
            choices=range(1, 73),
            metavar="1-72",
            help="hours the link is valid (default: 1)",
        )

    def handle(self, *args: object, name: str | None, hours: int, **options: object) -> None:
        if name is None and not settings.LOCAL_MODE:
            raise CommandError("Specify an account: plimsoll signinlink NAME")
        user = find_user(name) if name else ensure_local_owner()
        if not user.is_active:
            raise CommandError(f"The account {user.username} is closed.")
        self.say(create_link(user, now=timezone.now(), valid_for=timedelta(hours=hours)))

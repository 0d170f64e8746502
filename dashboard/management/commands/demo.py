"""`plimsoll demo`."""

from django.conf import settings
from django.core.management.base import CommandError, CommandParser
from django.utils import timezone

from dashboard.accounts.local import ensure_local_owner
from dashboard.demo.fleet import FLEET
from dashboard.demo.making import make_at_once
from dashboard.demo.removal import remove_demo
from dashboard.management.database import migrate_database
from dashboard.management.plain_command import PlainCommand, find_user
from dashboard.models import User


class Command(PlainCommand):
    help = (
        "Loads sample sessions of two demo teams, separate from your data, and replaces an older demo. "
        "--remove deletes them with their teams and accounts; nothing else is changed."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--for", dest="name", help="account that sees the demo (on a server)")
        parser.add_argument("--remove", action="store_true", help="remove the demo")

    def handle(self, *args: object, name: str | None, remove: bool, **options: object) -> None:
        migrate_database()
        removed = remove_demo(now=timezone.now())
        if remove:
            self.say(f"Demo removed: {removed} sessions.")
            return
        make_at_once(_find_owner(name), now=timezone.now())
        self.say(f"Demo loaded: {len(FLEET)} sessions. Remove with: plimsoll demo --remove")


def _find_owner(name: str | None) -> User:
    if name:
        return find_user(name)
    if not settings.LOCAL_MODE:
        raise CommandError("Specify an account: plimsoll demo --for NAME")
    return ensure_local_owner()

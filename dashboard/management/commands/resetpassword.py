"""`plimsoll resetpassword NAME`: there is no mail, so the machine itself is the proof."""

from django.core.management.base import CommandParser

from dashboard.accounts.passwords import set_password
from dashboard.management.plain_command import PlainCommand, find_user, read_new_password


class Command(PlainCommand):
    help = (
        "Sets a new password: asks twice on a terminal, otherwise reads one line from stdin. "
        "Ends open sessions and sign-in links."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", help="user name")

    def handle(self, *args: object, name: str, **options: object) -> None:
        user = find_user(name)
        set_password(user, read_new_password(user), by=None)
        self.say(f"New password set for {user.username}.")

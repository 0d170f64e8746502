"""`plimsoll resetpassword NAME`: there is no mail, so the machine itself is the proof."""

from django.core.management.base import CommandParser

from dashboard.accounts.passwords import set_password
from dashboard.management.plain_command import PlainCommand, find_user, read_new_password


class Command(PlainCommand):
    help = (
        "Sets a new password: asks twice on a terminal, reads one line from a pipe otherwise. "
        "Ends open sessions and sign-in links."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", help="the account's name")

    def handle(self, *args: object, name: str, **options: object) -> None:
        user = find_user(name)
        set_password(user, read_new_password(user), by=None)
        self.say(f"{user.username} has a new password.")

"""`plimsoll createowner NAME`."""

from django.core.exceptions import ValidationError
from django.core.management.base import CommandError, CommandParser
from django.db import transaction

from dashboard.accounts.teams import create_team
from dashboard.management.database import migrate_database
from dashboard.management.plain_command import PlainCommand, read_new_password
from dashboard.models import User


class Command(PlainCommand):
    help = "Creates an account with a password and a team that it owns. Sets up a new database."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", help="user name")
        parser.add_argument("--team", default="Main", help="team name (default: Main)")

    def handle(self, *args: object, name: str, team: str, **options: object) -> None:
        # On a server this is the first command of all: `plimsoll up` refuses to start without an owner.
        migrate_database()
        user = User(username=User.normalize_username(name))
        if User.objects.find_by_name(name) is not None:
            raise CommandError(f"Account {name} already exists.")
        try:
            user.full_clean(exclude=["password", "name_key"])
        except ValidationError as error:
            raise CommandError(" ".join(error.messages)) from None
        user.set_password(read_new_password(user))
        with transaction.atomic():
            user.save()
            made = create_team(team, owner=user)
        self.say(f"Account {user.username} created, owner of team {made.name}.")

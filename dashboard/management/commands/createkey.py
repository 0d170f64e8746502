"""`plimsoll createkey`: an API key for a program, printed once."""

from datetime import timedelta

from django.core.management.base import CommandError, CommandParser
from django.utils import timezone

from dashboard.accounts.keys import create_key
from dashboard.accounts.refusals import Refused
from dashboard.management.plain_command import PlainCommand, find_user
from dashboard.models import Membership, Role, Scope, Team, User

NAME_LENGTH = 80  # of ApiKey.name; SQLite itself would take any


class Command(PlainCommand):
    help = "Creates an API key and prints it once. Team and owner are optional if there is only one."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--team", help="team slug, as in its URL")
        parser.add_argument("--owner", help="account that owns the key (a member of the team)")
        parser.add_argument("--name", required=True, help="what the key is for")
        parser.add_argument("--scope", action="append", required=True, choices=Scope.values, help="repeatable")
        parser.add_argument(
            "--expires-days", type=int, metavar="DAYS", help="days until the key expires (default: never)"
        )

    def handle(self, *args: object, name: str, scope: list[str], expires_days: int | None, **options: object) -> None:
        if expires_days is not None and not 1 <= expires_days <= 3650:
            raise CommandError("--expires-days: expected 1 to 3650.")
        if not 1 <= len(name.strip()) <= NAME_LENGTH:
            raise CommandError(f"--name: expected 1 to {NAME_LENGTH} characters.")
        team = _find_team(options["team"])
        owner = _find_owner(team, options["owner"])
        expires_at = timezone.now() + timedelta(days=expires_days) if expires_days else None
        scopes = [Scope(value) for value in scope]
        try:
            _, text = create_key(team, owner, name=name.strip(), scopes=scopes, expires_at=expires_at, by=None)
        except Refused as error:
            raise CommandError(str(error)) from None
        self.stderr.write(f"API key of {owner.username} in {team.name}. It is shown only once:", self.style.NOTICE)
        self.say(text)


def _find_team(slug: object) -> Team:
    if slug:
        if team := Team.objects.filter(slug=slug).first():
            return team
        raise CommandError(f"Team {slug} not found.")
    teams = list(Team.objects.filter(is_demo=False).order_by("slug"))
    if len(teams) == 1:
        return teams[0]
    names = ", ".join(team.slug for team in teams) or "no team yet"
    raise CommandError(f"Specify a team with --team SLUG ({names}).")


def _find_owner(team: Team, name: object) -> User:
    if name:
        user = find_user(str(name))
        if not Membership.objects.filter(team=team, user=user).exists():
            raise CommandError(f"{user.username} is not a member of {team.name}.")
        return user
    owners = list(Membership.objects.filter(team=team, role=Role.OWNER).select_related("user"))
    if len(owners) == 1:
        return owners[0].user
    raise CommandError("The team has more than one owner. Specify one with --owner NAME.")

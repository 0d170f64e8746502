"""`plimsoll up`."""

from django.core.management.base import CommandError, CommandParser

from dashboard.data_folder import DataFolderInUse
from dashboard.management.plain_command import PlainCommand
from dashboard.sqlite_damage import DatabaseDamaged
from dashboard.supervisor import run_everything
from dashboard.web_server import CannotListen


class Command(PlainCommand):
    help = (
        "Starts Plimsoll: prepares the database and the static files, runs every process and restarts one that dies. "
        "Address and data folder come from PLIMSOLL_HOST, PLIMSOLL_PORT, PLIMSOLL_PUBLIC_URL and PLIMSOLL_DATA."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--demo", action="store_true", help="reload demo data in this data folder")

    def handle(self, *args: object, demo: bool, **options: object) -> None:
        try:
            run_everything(self.say, with_demo=demo)
        except (CannotListen, DataFolderInUse, DatabaseDamaged) as error:
            raise CommandError(str(error)) from error

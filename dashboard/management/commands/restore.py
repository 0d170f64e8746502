"""`plimsoll restore FILE`."""

from pathlib import Path

from django.core.management.base import CommandError, CommandParser

from dashboard.backup import BackupFailed, restore_backup
from dashboard.data_folder import DataFolderInUse
from dashboard.management.plain_command import PlainCommand


class Command(PlainCommand):
    help = "Puts a file made by `plimsoll backup` in the place of the database, which is kept beside it."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path)

    def handle(self, *args: object, file: Path, **options: object) -> None:
        try:
            kept = restore_backup(file)
        except (BackupFailed, DataFolderInUse) as error:
            raise CommandError(str(error)) from error
        self.say(f"Restored from {file}. `plimsoll up` brings it to this version.")
        if kept:
            self.say(f"The database before: {kept}")

"""`plimsoll restore FILE`."""

from pathlib import Path

from django.core.management.base import CommandError, CommandParser

from dashboard.backup import BackupFailed, restore_backup
from dashboard.data_folder import DataFolderInUse
from dashboard.management.plain_command import PlainCommand


class Command(PlainCommand):
    help = "Replaces the database with a file made by `plimsoll backup`. The current database is kept next to it."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path)

    def handle(self, *args: object, file: Path, **options: object) -> None:
        try:
            kept = restore_backup(file)
        except (BackupFailed, DataFolderInUse) as error:
            raise CommandError(str(error)) from error
        self.say(f"Restored from {file}. `plimsoll up` migrates it to this version.")
        if kept:
            self.say(f"Previous database: {kept}")

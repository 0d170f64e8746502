"""`plimsoll backup FILE`."""

from pathlib import Path

from django.core.management.base import CommandError, CommandParser

from dashboard.backup import BackupFailed, write_backup
from dashboard.management.plain_command import PlainCommand


class Command(PlainCommand):
    help = (
        "Backs up the whole database to a file, also while Plimsoll runs. The file contains all data: keep it private."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path)
        parser.add_argument("--force", action="store_true", help="overwrite an existing file")

    def handle(self, *args: object, file: Path, force: bool, **options: object) -> None:
        try:
            size = write_backup(file, replace=force)
        except BackupFailed as error:
            raise CommandError(str(error)) from error
        self.say(f"{file}: {size / 1_000_000:.1f} MB, checked.")

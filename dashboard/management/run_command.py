"""Runs one management command for `plimsoll`: what a person can mend becomes a sentence, the rest a traceback."""

import os

import django
from django.core.management import get_commands, load_command_class
from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError, OperationalError, ProgrammingError

from dashboard.management.database import release_database
from dashboard.sqlite_damage import explain_damage, is_damage


class CommandFailed(Exception):
    def __init__(self, sentence: str, exit_code: int = 1) -> None:
        super().__init__(sentence)
        self.exit_code = exit_code


def load_command(name: str) -> BaseCommand:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dashboard.settings")
    django.setup()
    found = get_commands()[name]
    return found if isinstance(found, BaseCommand) else load_command_class(found, name)


def run_command(command: BaseCommand, name: str, arguments: list[str]) -> None:
    parser = command.create_parser("plimsoll", name)
    parser.called_from_command_line = True  # a wrong option prints the usage
    options = vars(parser.parse_args(arguments))
    positional = options.pop("args", ())
    try:
        command.execute(*positional, **options)
    except CommandError as error:
        raise CommandFailed(str(error), error.returncode) from error
    except (OperationalError, ProgrammingError) as error:
        raise CommandFailed(
            f"The database is unreachable or not set up ({str(error).strip()}). Run `plimsoll migrate` to set it up."
        ) from error
    except DatabaseError as error:
        if is_damage(error):
            raise CommandFailed(explain_damage(str(error))) from error
        raise
    finally:
        release_database()

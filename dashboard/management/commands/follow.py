"""`plimsoll follow`: reads transcripts as they grow, alone or as a child of `plimsoll up`."""

import argparse
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError, CommandParser

from dashboard.children import stop_with_parent
from dashboard.ingest.follower import run_follower
from dashboard.management.plain_command import PlainCommand


class Command(PlainCommand):
    help = (
        "Imports the transcripts of this machine as they grow, until stopped. "
        "PLIMSOLL_FOLLOW lists the folders, separated as in PATH."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--alive-fd", type=int, help=argparse.SUPPRESS)

    def handle(self, *args: object, **options: Any) -> None:
        if not settings.FOLLOW_ROOTS:
            raise CommandError("Nothing to follow. Set PLIMSOLL_FOLLOW to folders with transcripts.")
        if options["alive_fd"] is not None:
            stop_with_parent(options["alive_fd"])
        run_follower()

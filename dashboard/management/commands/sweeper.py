"""`plimsoll sweeper`: finds jobs that were lost on the way, alone or as a child of `plimsoll up`."""

import argparse
from typing import Any

from django.core.management.base import CommandParser

from dashboard.children import stop_with_parent
from dashboard.jobs.sweeper import run_sweeper
from dashboard.management.plain_command import PlainCommand


class Command(PlainCommand):
    help = "Returns jobs of lost workers to the queue and posts recurring work. Can run on every host."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--alive-fd", type=int, help=argparse.SUPPRESS)

    def handle(self, *args: object, **options: Any) -> None:
        if options["alive_fd"] is not None:
            stop_with_parent(options["alive_fd"])
        run_sweeper()

"""`plimsoll worker`: performs jobs, alone or as a child of `plimsoll up`."""

import argparse
from typing import Any

from django.core.management.base import CommandParser

from dashboard.children import stop_with_parent
from dashboard.jobs.worker import run_worker
from dashboard.management.plain_command import PlainCommand


class Command(PlainCommand):
    help = "Runs jobs until stopped. Any number of workers can run, on any number of hosts."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--alive-fd", type=int, help=argparse.SUPPRESS)

    def handle(self, *args: object, **options: Any) -> None:
        if options["alive_fd"] is not None:
            stop_with_parent(options["alive_fd"])
        run_worker()

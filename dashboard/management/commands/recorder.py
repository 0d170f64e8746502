"""`plimsoll recorder`: writes down the calls that pass through the proxy, alone or as a child of `plimsoll up`."""

import argparse
import os
from typing import Any

from django.core.management.base import CommandError, CommandParser

from dashboard.children import stop_with_parent
from dashboard.management.plain_command import PlainCommand
from dashboard.proxy.inbox import InUse
from dashboard.proxy.recorder import run_recorder

GIVES_WAY = 10  # to the calls that pass: what is written down of them can wait, within the bounds of the feed


class Command(PlainCommand):
    help = (
        "Records calls proxied by this machine's web processes, until stopped. "
        "One per data folder; without it, calls are still forwarded."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--alive-fd", type=int, help=argparse.SUPPRESS)

    def handle(self, *args: object, **options: Any) -> None:
        if options["alive_fd"] is not None:
            stop_with_parent(options["alive_fd"])
        os.nice(GIVES_WAY)
        try:
            run_recorder()
        except InUse as error:
            raise CommandError(str(error)) from error

"""`plimsoll web`: one web server process, alone or as a child of `plimsoll up`."""

import argparse
import contextlib
import socket
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError, CommandParser

from dashboard.children import stop_with_parent
from dashboard.data_folder import DataFolderInUse, hold_data_folder
from dashboard.management.database import release_database
from dashboard.management.plain_command import PlainCommand
from dashboard.sqlite_damage import DatabaseDamaged, require_sound_database
from dashboard.static_build import build_static_files
from dashboard.web_server import CannotListen, bind_address, refuse_open_door, serve, start_listening


class Command(PlainCommand):
    help = (
        "Runs only a web server process, for machines where systemd or a container platform replaces "
        "`plimsoll up`. Run `plimsoll migrate` first."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--socket-fd", type=int, help=argparse.SUPPRESS)
        parser.add_argument("--alive-fd", type=int, help=argparse.SUPPRESS)

    def handle(self, *args: object, **options: Any) -> None:
        if options["alive_fd"] is not None:
            stop_with_parent(options["alive_fd"])
        if options["socket_fd"] is not None:
            serve(socket.socket(fileno=options["socket_fd"]))
            return
        try:
            self.serve_alone()
        except (CannotListen, DataFolderInUse, DatabaseDamaged) as error:
            raise CommandError(str(error)) from error

    def serve_alone(self) -> None:
        address = settings.HOST, settings.PORT
        with hold_data_folder(settings.DATA, shared=True), contextlib.closing(bind_address(*address)) as listening:
            require_sound_database()
            if refusal := refuse_open_door():
                raise CannotListen(refusal)
            build_static_files()
            release_database()
            start_listening(listening)
            self.say(f"Plimsoll {settings.VERSION} (web alone)  {settings.PUBLIC_URL}/  stop: Ctrl-C")
            serve(listening)

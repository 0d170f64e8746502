"""`plimsoll import PATH…`: transcripts in, a progress bar meanwhile, a summary at the end."""
# ruff: noqa: N999 (Django calls a command as its module is called)

import contextlib
import json
import signal
import sys
from collections.abc import Iterator
from types import FrameType
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.core.management.base import CommandError, CommandParser
from django.db import connection
from django.utils.module_loading import import_string

from dashboard.accounts.local import ensure_local_owner
from dashboard.ingest.file_tail import Place
from dashboard.ingest.import_paths import find_paths
from dashboard.ingest.import_tally import Tally
from dashboard.ingest.imported_files import find_unread
from dashboard.ingest.looks import NextLook
from dashboard.loading import loading
from dashboard.management.database import migrate_database
from dashboard.management.plain_command import PlainCommand, find_user
from dashboard.models import Membership, Team, User

if TYPE_CHECKING:
    from dashboard.management.import_run import ImportRun

# By its path: what decodes and writes takes longer to load than finding out that nothing is new.
RUN = "dashboard.management.import_run.ImportRun"
INTERRUPTED = 130  # as a shell tells it


class Command(PlainCommand):
    help = (
        "Imports transcripts of coding agents: files, folders (recursively, without following links), "
        "a .claude home, or - for standard input. Importing again is safe; duplicates are ignored."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("paths", nargs="+", metavar="PATH")
        parser.add_argument("--team", metavar="SLUG", help="team slug (not needed on your own machine)")
        parser.add_argument("--owner", metavar="NAME", help="owner of the sessions (a member of the team)")
        parser.add_argument("--reread", action="store_true", help="re-read files that have not changed")
        parser.add_argument("--quiet", action="store_true", help="print nothing unless something fails")
        parser.add_argument("--json", action="store_true", help="print the summary as JSON")

    def handle(self, *args: object, paths: list[str], **options: Any) -> None:
        team, owner = _find_team(options["team"], options["owner"])
        finds, tally = find_paths(paths), Tally()
        tally.failures += finds.refusals
        files = [*finds.transcripts, *finds.metas]
        looks = [NextLook(file, Place()) for file in files] if options["reread"] else find_unread(team, files)
        read_count = sum(not look.file.is_meta for look in looks)
        tally.unchanged_count = sum(not file.is_meta for file in files) - read_count
        if looks or finds.streams:
            out = None if options["quiet"] else sys.stderr
            with _interrupts_noted() as interrupts:
                with loading():
                    make_run: type[ImportRun] = import_string(RUN)
                run = make_run(team, owner, tally, interrupts, out=out, is_rereading=options["reread"])
                run.read_all(looks, finds.streams)
        tally.close()
        self._tell(tally, **options)
        if tally.is_interrupted:
            sys.exit(INTERRUPTED)
        if tally.failures:
            raise CommandError("\n".join(tally.failures))

    def _tell(self, tally: Tally, **options: Any) -> None:
        if options["json"]:
            self.say(json.dumps(tally.to_fields()))
        elif not options["quiet"]:
            self.say("\n".join(tally.describe()))


def _find_team(slug: str | None, name: str | None) -> tuple[Team, User | None]:
    if settings.LOCAL_MODE and slug is None:
        if not connection.introspection.table_names():  # the first command on this machine
            migrate_database()
        local_owner = ensure_local_owner()
        owner = find_user(name) if name else local_owner
        return Team.objects.get(is_local=True), owner
    if slug is None:
        raise CommandError("Specify a team with --team SLUG")
    team = Team.objects.filter(slug=slug).first()
    if team is None:
        raise CommandError(f"Team {slug} not found.")
    return team, _find_member(team, name) if name else None


def _find_member(team: Team, name: str) -> User:
    user = find_user(name)
    if not Membership.objects.filter(team=team, user=user).exists():
        raise CommandError(f"{user.username} is not a member of {team.name}.")
    return user


@contextlib.contextmanager
def _interrupts_noted() -> Iterator[list[int]]:
    """The first Ctrl-C ends the import between two writings; the second ends it at once."""
    seen: list[int] = []

    def note(number: int, _: FrameType | None) -> None:
        seen.append(number)
        signal.signal(signal.SIGINT, signal.default_int_handler)

    before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield seen
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)

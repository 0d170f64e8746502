"""`plimsoll import PATH…`: transcripts in, a progress bar meanwhile, a summary at the end."""
# ruff: noqa: N999 (Django calls a command as its module is called)

import contextlib
import json
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any, BinaryIO

from django.conf import settings
from django.core.management.base import CommandError, CommandParser
from django.db import connection

from dashboard.accounts.local import ensure_local_owner
from dashboard.ingest.decoders import Decoders, DecodersLost, count_processes, spare_collector
from dashboard.ingest.import_paths import STANDARD_INPUT, Finds, find_paths
from dashboard.ingest.import_progress import Progress
from dashboard.ingest.import_tally import Tally
from dashboard.ingest.importing import CannotStore, Importer, group_looks, plan_looks
from dashboard.ingest.intake import Origin, make_rules
from dashboard.ingest.stream_pieces import cut_stream, read_chunks
from dashboard.management.database import migrate_database, release_database
from dashboard.management.plain_command import PlainCommand, find_user
from dashboard.models import Membership, Team, User
from dashboard.policies.in_force import find_policy

INTERRUPTED = 130  # as a shell tells it


class Command(PlainCommand):
    help = (
        "Reads transcripts of coding agents: files, folders (with everything below, links left aside), "
        "a .claude home, or - for standard input. What is known already changes nothing."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("paths", nargs="+", metavar="PATH")
        parser.add_argument("--team", metavar="SLUG", help="the team's short name (on your own machine: not needed)")
        parser.add_argument("--owner", metavar="NAME", help="whose sessions these are (a member of the team)")
        parser.add_argument("--reread", action="store_true", help="also read files that have not changed since")
        parser.add_argument("--quiet", action="store_true", help="say nothing unless something fails")
        parser.add_argument("--json", action="store_true", help="print the summary as JSON")

    def handle(self, *args: object, paths: list[str], **options: Any) -> None:
        origin = _find_origin(options["team"], options["owner"])
        finds, tally = find_paths(paths), Tally()
        tally.failures += finds.refusals
        with _interrupts_noted() as interrupts:
            try:
                self._import(origin, finds, tally, interrupts, **options)
            except (CannotStore, OSError) as error:
                tally.failures.append(str(error))
            except DecodersLost:
                tally.failures.append("A decoding process was ended from outside. The same command reads the rest.")
        tally.close()
        self._tell(tally, **options)
        if tally.is_interrupted:
            sys.exit(INTERRUPTED)
        if tally.failures:
            raise CommandError("\n".join(tally.failures))

    def _import(
        self, origin: Origin, finds: Finds, tally: Tally, interrupts: list[int], *, reread: bool, **options: Any
    ) -> None:
        looks = plan_looks(origin, [*finds.transcripts, *finds.metas], tally, reread=reread)
        work_bytes = sum(look.file.size_bytes - look.known.offset for look in looks)
        transcripts = [look for look in looks if not look.file.is_meta]
        progress = Progress(
            None if options["quiet"] else sys.stderr, len(transcripts), 0 if finds.streams else work_bytes
        )
        policy = find_policy(origin.team)
        processes = count_processes(sys.maxsize if finds.streams else work_bytes)
        if processes:
            spare_collector()
            release_database()  # a fork must not inherit connections, nor PostgreSQL's pool its threads
        with Decoders(make_rules(origin.team, policy), processes=processes) as decoders:
            importer = Importer(origin, policy, decoders, tally, progress, should_stop=lambda: bool(interrupts))
            try:
                importer.import_files(group_looks(looks))
                for name in finds.streams:
                    with _opened_stream(name) as stream:
                        importer.import_pieces(cut_stream(read_chunks(stream), name))
            finally:
                progress.close()

    def _tell(self, tally: Tally, **options: Any) -> None:
        if options["json"]:
            self.say(json.dumps(tally.to_fields()))
        elif not options["quiet"]:
            self.say("\n".join(tally.describe()))


def _find_origin(slug: str | None, name: str | None) -> Origin:
    if settings.LOCAL_MODE and slug is None:
        if not connection.introspection.table_names():  # the first command on this machine
            migrate_database()
        local_owner = ensure_local_owner()
        owner = find_user(name) if name else local_owner
        return Origin(Team.objects.get(is_local=True), owner, "import")
    if slug is None:
        raise CommandError("Say for which team: --team SLUG")
    team = Team.objects.filter(slug=slug).first()
    if team is None:
        raise CommandError(f"There is no team {slug}.")
    return Origin(team, _find_member(team, name) if name else None, "import")


def _find_member(team: Team, name: str) -> User:
    user = find_user(name)
    if not Membership.objects.filter(team=team, user=user).exists():
        raise CommandError(f"{user.username} is not a member of {team.name}.")
    return user


@contextlib.contextmanager
def _opened_stream(name: str) -> Iterator[BinaryIO]:
    if name == STANDARD_INPUT:
        yield sys.stdin.buffer
        return
    with Path(name).open("rb") as stream:
        yield stream


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

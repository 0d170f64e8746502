"""The reading half of `plimsoll import`: decodes, writes and shows how far it is. Loaded when something is new."""

import contextlib
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, TextIO

from dashboard.ingest.decoders import Decoders, DecodersLost, count_processes, prepare_process
from dashboard.ingest.import_paths import STANDARD_INPUT
from dashboard.ingest.import_progress import Progress
from dashboard.ingest.import_tally import Tally
from dashboard.ingest.importing import CannotStore, Importer, group_looks
from dashboard.ingest.intake import Origin, make_drawing_rules, make_rules
from dashboard.ingest.looks import NextLook
from dashboard.ingest.stream_pieces import cut_stream, read_chunks
from dashboard.management.database import prepare_bulk_writing, release_database
from dashboard.models import Team, User
from dashboard.policies.in_force import find_policy


@dataclass
class ImportRun:
    """`interrupts` grows while it runs; `out` None: no word on how far it is."""

    team: Team
    owner: User | None
    tally: Tally
    interrupts: Sequence[int]
    out: TextIO | None = field(kw_only=True)
    is_rereading: bool = field(default=False, kw_only=True)

    def read_all(self, looks: Sequence[NextLook], streams: Sequence[str]) -> None:
        """What fails is told by the tally."""
        try:
            self._import(looks, streams)
        except (CannotStore, OSError) as error:
            self.tally.failures.append(str(error))
        except DecodersLost:
            self.tally.failures.append("A decoding process was killed. Run the same command again to import the rest.")

    def _import(self, looks: Sequence[NextLook], streams: Sequence[str]) -> None:
        origin, policy = Origin(self.team, self.owner, "import"), find_policy(self.team)
        work_bytes = sum(look.file.size_bytes - look.known.offset for look in looks)
        file_count = sum(not look.file.is_meta for look in looks)
        progress = Progress(self.out, file_count, 0 if streams else work_bytes)
        processes = count_processes(sys.maxsize if streams else work_bytes)
        # Read again, most sessions are known: drawing them ahead would be in vain.
        rules = (make_rules if self.is_rereading else make_drawing_rules)(self.team, policy)
        if processes:
            prepare_process()
            release_database()  # a fork must not inherit connections, nor PostgreSQL's pool its threads
        with Decoders(rules, processes=processes) as decoders:
            if processes:
                prepare_bulk_writing()
            importer = Importer(
                origin, policy, decoders, self.tally, progress, should_stop=lambda: bool(self.interrupts)
            )
            try:
                importer.import_files(group_looks(looks))
                for name in streams:
                    with _opened_stream(name) as stream:
                        importer.import_pieces(cut_stream(read_chunks(stream), name))
            finally:
                progress.close()


@contextlib.contextmanager
def _opened_stream(name: str) -> Iterator[BinaryIO]:
    if name == STANDARD_INPUT:
        yield sys.stdin.buffer
        return
    with Path(name).open("rb") as stream:
        yield stream

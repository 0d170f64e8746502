"""Transcripts that are handed over whole, by a browser or a program: cut into pieces, taken in one after the other."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from compaction.errors import AgentMetaUnreadable
from compaction.transcripts.subagents import read_agent_meta
from dashboard.ingest.bodies import refuse_many_lines
from dashboard.ingest.deleted_sessions import DELETED
from dashboard.ingest.file_tail import PIECE_LINES, take_lines
from dashboard.ingest.intake import OTHER_ACCOUNT, Origin, Taken, take_in, take_in_agent_meta
from dashboard.ingest.observed import MOST_PROBLEMS, LineProblem, Piece
from dashboard.ingest.record import Recorded
from dashboard.ingest.transcripts import name_session

PIECE_BYTES = 4 * 1024 * 1024


class NothingReadable(Exception):
    """Not one line could be read: it is not a transcript. The message is for people."""


@dataclass
class UploadResult:
    """What became of one file; sessions by their id, in the order they were met."""

    name: str
    line_count: int = 0
    new_line_count: int = 0
    sessions: dict[str, Recorded] = field(default_factory=dict)
    new_call_count: int = 0
    new_break_count: int = 0
    problem_count: int = 0
    problems: list[LineProblem] = field(default_factory=list)
    drops: Counter[str] = field(default_factory=Counter)
    redaction_count: int = 0

    @property
    def refused(self) -> dict[str, int]:
        """Return how many readable lines were not ingested, by reason."""
        return {reason: self.drops[reason] for reason in (OTHER_ACCOUNT, DELETED) if self.drops[reason]}

    def add(self, taken: Taken) -> None:
        self.line_count += taken.line_count
        self.new_line_count += taken.new_line_count
        self.problem_count += taken.problem_count
        self.problems += taken.problems[: MOST_PROBLEMS - len(self.problems)]
        self.drops.update(taken.drops or {})
        self.redaction_count += sum((taken.redactions or {}).values())
        for recorded in taken.sessions:
            self.sessions[recorded.external_id] = recorded
            self.new_call_count += len(recorded.new_calls)
            self.new_break_count += len(recorded.new_breaks)


@dataclass(frozen=True)
class Upload:
    """A file or a part of one; `session_id` and `agent_id` go before what the name says."""

    name: str
    data: bytes
    session_id: str | None = None
    agent_id: str | None = None
    first_line_number: int = 1


def take_in_upload(origin: Origin, upload: Upload) -> UploadResult:
    """Raises NothingReadable and BodyRefused, or OperationalError and TooBusy when the rest can be sent again later."""
    refuse_many_lines(upload.data)
    result = UploadResult(upload.name)
    session_id, agent_id = name_session(upload.name)
    session_id, agent_id = upload.session_id or session_id, upload.agent_id or agent_id
    if upload.name.endswith(".meta.json"):
        result.add(_take_in_meta(origin, upload, session_id, agent_id))
        return result
    number = upload.first_line_number
    for data in cut_at_lines(upload.data):
        result.add(take_in(origin, Piece(data, upload.name, session_id, agent_id, number)))
        number += data.count(b"\n")
    if not result.line_count:
        raise NothingReadable("The file is empty.")
    if result.refused:
        return result
    if not result.sessions or result.problem_count == result.line_count:
        raise NothingReadable("The file is not a Claude Code transcript: no line could be parsed.")
    return result


def cut_at_lines(data: bytes) -> Iterator[bytes]:
    """Pieces that end where a line ends; one longer line is one longer piece, short lines make shorter ones."""
    start = 0
    while start < len(data):
        end = data.find(b"\n", min(start + PIECE_BYTES, len(data)))
        end = len(data) if end < 0 else end + 1
        piece, _ = take_lines(data[start:end], PIECE_LINES)
        yield piece
        start += len(piece)


def _take_in_meta(origin: Origin, upload: Upload, session_id: str | None, agent_id: str | None) -> Taken:
    if session_id is None or agent_id is None:
        raise NothingReadable("A sub-agent's meta file needs its folder path. Upload the folder instead of the file.")
    try:
        return take_in_agent_meta(origin, session_id, agent_id, read_agent_meta(upload.data))
    except AgentMetaUnreadable as error:
        raise NothingReadable("The meta file is not valid JSON.") from error

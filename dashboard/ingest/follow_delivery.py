"""Where the follower hands over what it read: the intake, under the session that a file's name and place tell."""

from typing import Protocol

from compaction.transcripts.subagents import AgentMeta
from dashboard.ingest.intake import Origin, count_drops, take_in, take_in_agent_meta
from dashboard.ingest.observed import Piece
from dashboard.ingest.transcripts import name_session


class Delivery(Protocol):
    """Both raise OperationalError or TooBusy when the same must be handed over once more."""

    def take_lines(self, name: str, data: bytes, *, first_line_number: int) -> int:
        """Whole lines of the file that people know by this name; how many of them could not be read."""
        ...

    def take_agent_meta(self, name: str, meta: AgentMeta) -> None: ...


class IntakeDelivery:
    def __init__(self, origin: Origin) -> None:
        self._origin = origin

    def take_lines(self, name: str, data: bytes, *, first_line_number: int) -> int:
        session_id, agent_id = name_session(name)
        piece = Piece(data, name, session_id=session_id, agent_id=agent_id, first_line_number=first_line_number)
        return take_in(self._origin, piece).problem_count

    def take_agent_meta(self, name: str, meta: AgentMeta) -> None:
        session_id, agent_id = name_session(name)
        if session_id is None or agent_id is None:
            count_drops(self._origin, {"sub-agent description without a session": 1}, detail=name)
            return
        take_in_agent_meta(self._origin, session_id, agent_id, meta)

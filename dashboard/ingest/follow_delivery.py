"""Hands what the follower read to the intake, under the session that a file's name and place tell."""

from compaction.transcripts.agents import AgentMeta
from dashboard.ingest.drops import count_drop
from dashboard.ingest.intake import Origin, Piece, take_in, take_in_agent_meta
from dashboard.ingest.transcripts import name_session
from dashboard.models import Team, User


class IntakeDelivery:
    def __init__(self, team: Team, owner: User | None) -> None:
        self._origin = Origin(team=team, owner=owner, source="follow")

    def take_lines(self, name: str, data: bytes, *, first_line_number: int) -> int:
        session_id, agent_id = name_session(name)
        piece = Piece(data, name, session_id=session_id, agent_id=agent_id, first_line_number=first_line_number)
        return len(take_in(self._origin, piece).problems)

    def take_agent_meta(self, name: str, meta: AgentMeta) -> None:
        session_id, agent_id = name_session(name)
        if session_id is None or agent_id is None:
            reason = "sub-agent description without a session"
            count_drop(self._origin.team, source=self._origin.source, reason=reason, detail=name)
            return
        take_in_agent_meta(self._origin, session_id, agent_id, meta)

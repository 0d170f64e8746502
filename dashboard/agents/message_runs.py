"""Messages compacted with a model: kept as a session of the caller's, then a run like any other, to be asked for."""

from collections.abc import Sequence
from datetime import UTC, datetime
from uuid import UUID, uuid4

from compaction.cache.request import read_request, write_json
from compaction.transcripts.messages import ApiMessage
from dashboard.access import Actor
from dashboard.agents.message_compaction import Wish
from dashboard.ingest.intake import Origin, take_in
from dashboard.ingest.observed import Piece
from dashboard.models import AgentSession, CompactionRun, Team
from dashboard.policies.in_force import find_policy
from dashboard.proxy.conversations import chain_marks, mark_message
from dashboard.runs.choices import RunChoices, RunRefused
from dashboard.runs.start import start_run

SOURCE = "api"


def start_message_run(
    actor: Actor, team: Team, wish: Wish, choices: RunChoices, *, session_id: str, now: datetime
) -> CompactionRun:
    """The run, waiting for a worker; `session_id` is the caller's name for the conversation, a new one when empty.

    Raises RunRefused with what is in the way.
    """
    if not find_policy(team).stores_content:
        raise RunRefused(
            "no_content",
            "A run with a model keeps the messages until they are deleted, and this team stores no content. "
            "Ask without a model, or have an admin let the team store content.",
        )
    name = session_id or f"compact-{uuid4()}"
    data = write_lines(name, wish.question.messages, model=wish.question.model, now=now)
    if not data:
        raise RunRefused("nothing_to_compact", "There are no messages.")
    taken = take_in(Origin(team, actor.user, SOURCE), Piece(data, "messages", session_id=name))
    session = AgentSession.objects.select_related("team").get(pk=taken.sessions[0].session_pk)
    return start_run(actor, session, choices, source=SOURCE, now=now)


def write_lines(session_id: str, messages: Sequence[ApiMessage], *, model: str, now: datetime) -> bytes:
    """The lines a transcript would have. One is named after all that was said up to it, so the same message sent
    again is the same line."""
    marks = map(mark_message, read_request({"messages": list(messages)}).messages)
    names = [str(UUID(bytes=link)) for link in chain_marks(session_id, list(marks))]
    at = now.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    lines = [
        {
            "type": "assistant" if message.get("role") == "assistant" else "user",
            "uuid": names[place],
            "parentUuid": names[place - 1] if place else None,
            "sessionId": session_id,
            "timestamp": at,
            "message": dict(message) | ({"model": model} if message.get("role") == "assistant" else {}),
        }
        for place, message in enumerate(messages)
    ]
    return b"".join(write_json(line).encode("utf-8", "replace") + b"\n" for line in lines)

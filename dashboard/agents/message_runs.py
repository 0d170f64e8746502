"""Messages compacted by a run: looked at, kept as a session of the caller's, then a run like any other, to be asked
for. What is in the way is found before anything is kept."""

from collections.abc import Sequence
from datetime import UTC, datetime
from uuid import UUID, uuid4

from django.core.exceptions import PermissionDenied

from compaction.compactors.outcome import Trigger
from compaction.context.tokens import estimate_tokens
from compaction.prompt.request import read_request, write_json
from compaction.transcripts.api_messages import ApiMessage
from compaction.transcripts.chain import slice_context
from dashboard import access
from dashboard.access import Act, Actor
from dashboard.agents.message_compaction import CompactKind, Conversation, Wish
from dashboard.ingest.deleted_sessions import find_deleted
from dashboard.ingest.intake import Origin, take_in
from dashboard.ingest.observed import Piece
from dashboard.ingest.picture.columns import fit_id
from dashboard.models import AgentSession, CompactionRun, DeletionReason, Team
from dashboard.policies.in_force import find_policy
from dashboard.policies.unusable_patterns import keeps_content
from dashboard.proxy.conversations import chain_marks, mark_message
from dashboard.runs.basis import ESTIMATE, MEASURED, Basis
from dashboard.runs.choices import RunChoices, RunRefused
from dashboard.runs.preview import Preview, describe_basis, preview_basis
from dashboard.runs.start import refuse_second, start_previewed_run

SOURCE = "api"
# Twice the largest window, some 6 MB: to quote from more keeps a web thread longer than the rest of the request does.
AT_ONCE_TOKENS = 2_000_000
NO_CONTENT = (
    "A run stores the messages until they are deleted, and this team stores no content. "
    "Compact without a model, or ask an admin to store content."
)
DELETED = "A session with this name was deleted and is not imported again. Choose another name."


def is_left_to_run(actor: Actor, team: Team, talk: Conversation) -> bool:
    """Whether a summary without a model is left to a worker: a long one, where a run may keep the messages and the
    caller may read what comes of it. Elsewhere it is written at once, however long that takes."""
    if estimate_tokens(talk.entries) <= AT_ONCE_TOKENS or not keeps_content(find_policy(team)):
        return False
    return actor.may(Act.SEE, team) and access.reads_content_of(actor, team, actor.user.pk if actor.user else None)


def start_message_run(
    actor: Actor, team: Team, talk: Conversation, choices: RunChoices, *, session_id: str, now: datetime
) -> CompactionRun:
    """The run, waiting for a worker; `session_id` is the caller's name for the conversation, a new one when empty.

    Raises RunRefused with what is in the way, PermissionDenied where the name is a colleague's session; then nothing
    of the messages is kept. Only where others use up the day's cap in between do they stay behind, as a session.
    """
    if not keeps_content(find_policy(team)):
        raise RunRefused("no_content", NO_CONTENT)
    name = session_id or f"compact-{uuid4()}"
    session = find_told_session(actor, team, name)
    preview = preview_messages(talk, session, choices, now=now)
    preview.raise_refusal()
    data = write_lines(name, talk.question.messages, model=talk.question.model, now=now)
    taken = take_in(Origin(team, actor.user, SOURCE), Piece(data, "messages", session_id=name))
    if taken.refused_sessions:  # created by a colleague since it was looked up
        raise PermissionDenied("A session with this name belongs to another account. Choose another name.")
    if not taken.sessions:
        raise RunRefused("session_deleted", DELETED)
    stored = AgentSession.objects.select_related("team").get(pk=taken.sessions[0].session_pk)
    return start_previewed_run(actor, stored, preview, now=now)


def find_told_session(actor: Actor, team: Team, name: str) -> AgentSession:
    """The caller's session of this name, or a new one that is not stored yet."""
    session = AgentSession.objects.select_related("team").filter(team=team, external_id=fit_id(name)).first()
    if session is not None:
        access.require_telling(actor, session)
        refuse_second(session)
        return session
    stone = find_deleted(team, [fit_id(name)]).get(fit_id(name))
    if stone is not None and stone.reason == DeletionReason.PERSON:
        raise RunRefused("session_deleted", DELETED)
    return AgentSession(team=team, owner=actor.user, external_id=fit_id(name))


def choose_trigger(wish: Wish) -> Trigger:
    """What the summary tells the agent about going on depends on it."""
    if wish.is_autonomous:
        return Trigger.AUTONOMOUS
    return Trigger.AUTO if wish.kind is CompactKind.AUTO else Trigger.MANUAL


def preview_messages(talk: Conversation, session: AgentSession, choices: RunChoices, *, now: datetime) -> Preview:
    """A summary that costs nothing is not tried out first: that would be the whole work."""
    if not talk.entries:
        raise RunRefused("nothing_to_compact", "There are no messages.")
    basis = make_basis(talk, session)
    return preview_basis(basis, choices, now=now) if choices.summarizer.is_paid else describe_basis(basis, choices)


def make_basis(talk: Conversation, session: AgentSession) -> Basis:
    """As it will be read from the store, with the sizes and lines that go by what the agent told."""
    return Basis(
        session=session,
        agent_id="",
        entries=talk.entries,
        context=slice_context(talk.entries),
        model=talk.question.model,
        prefix_tokens=talk.prefix_tokens,
        before_tokens=talk.before_tokens,
        before_origin=ESTIMATE if talk.question.usage is None else MEASURED,
        lines=talk.lines,
        line_tokens=talk.lines.auto.tokens if talk.lines else None,
    )


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

"""Whether the words of a session can be shown to somebody: they may be kept from them, or not be stored at all."""

from enum import StrEnum

from dashboard import access
from dashboard.access import Actor
from dashboard.models import AgentSession


class ContentState(StrEnum):
    """Numbers and structure are shown in every state."""

    SHOWN = "shown"
    NOT_GRANTED = "not granted"
    NOT_STORED = "not stored"
    REMOVED = "removed"  # by the team's retention


def find_content_state(actor: Actor, session: AgentSession) -> ContentState:
    """What is not granted is said first, as a grant is the way to what may be stored."""
    if not access.reads_content(actor, session):
        return ContentState.NOT_GRANTED
    if session.has_content:
        return ContentState.SHOWN
    return ContentState.NOT_STORED if session.content_removed_at is None else ContentState.REMOVED

"""Whether the words of a session can be shown to somebody: they may be kept from them, or not be stored at all."""

from enum import StrEnum

from dashboard import access
from dashboard.access import Actor
from dashboard.models import AgentSession

# Ways in that tell of calls, not of what was said. What came by several is here as soon as one of them brings it.
WITHOUT_TEXT = frozenset({"proxy", "otlp", "hooks", "statusline"})


class ContentState(StrEnum):
    """Numbers and structure are shown in every state."""

    SHOWN = "shown"
    NOT_GRANTED = "not granted"
    NOT_STORED = "not stored"
    NO_TEXT = "no text"  # it came by ways that bring none
    REMOVED = "removed"  # by the team's retention


def find_content_state(actor: Actor, session: AgentSession) -> ContentState:
    """What is not granted is said first, as a grant is the way to what may be stored."""
    if not access.reads_content(actor, session):
        return ContentState.NOT_GRANTED
    return find_stored_state(session)


def find_stored_state(session: AgentSession) -> ContentState:
    """Whoever asks."""
    if session.has_content:
        return ContentState.SHOWN
    if session.content_removed_at is not None:
        return ContentState.REMOVED
    return ContentState.NO_TEXT if came_without_text(session) else ContentState.NOT_STORED


def came_without_text(session: AgentSession) -> bool:
    return bool(session.sources) and WITHOUT_TEXT.issuperset(session.sources)

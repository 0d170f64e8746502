"""Whether a session is at work: live, idle, quiet or ended, by the time something last arrived from it."""

from datetime import datetime, timedelta
from enum import StrEnum

from django.db.models import F, Q

from dashboard.models import AgentSession
from dashboard.pages.listed_session import ListedSession

LIVE_FOR = timedelta(minutes=5)
IDLE_FOR = timedelta(hours=1)


class LiveState(StrEnum):
    LIVE = "live"
    IDLE = "idle"
    QUIET = "quiet"
    ENDED = "ended"


def find_live_state(session: AgentSession | ListedSession, *, now: datetime) -> LiveState:
    """Ended when the client said so and nothing came after it: a resumed session is at work again."""
    if session.ended_at is not None and session.ended_at >= session.last_at:
        return LiveState.ENDED
    silence = now - session.last_at
    if silence <= LIVE_FOR:
        return LiveState.LIVE
    return LiveState.IDLE if silence <= IDLE_FOR else LiveState.QUIET


def match_live(now: datetime) -> Q:
    """Sessions that find_live_state calls live."""
    return Q(last_at__gte=now - LIVE_FOR) & (Q(ended_at=None) | Q(ended_at__lt=F("last_at")))

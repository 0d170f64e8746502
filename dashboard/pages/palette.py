"""What the command palette finds: sessions by the words typed so far, or those active last."""

from dataclasses import dataclass
from datetime import datetime

from django.urls import reverse

from dashboard import access
from dashboard.access import Actor
from dashboard.pages.gauges import find_sessions, name_session
from dashboard.pages.live_state import find_live_state
from dashboard.pages.session_filters import SessionFilters, is_searchable

MOST_SESSIONS = 8


@dataclass(frozen=True)
class PaletteSession:
    """One line of the palette."""

    url: str
    name: str
    note: str


def find_palette_sessions(actor: Actor, text: str, *, now: datetime) -> tuple[PaletteSession, ...]:
    """The search of the list of sessions, cut short; words too short for it find nothing."""
    filters = SessionFilters.read({"text": text})
    if filters.text and not is_searchable(filters.text):
        return ()
    teams = access.teams(actor)
    by_id = {team.pk: team for team in teams}
    page = find_sessions(actor, filters, teams, now=now, size=MOST_SESSIONS)
    return tuple(
        PaletteSession(
            url=reverse("session", args=[session.pk]),
            name=name_session(actor, session, by_id[session.team_id]),
            note=", ".join(
                part for part in (session.project, session.developer, find_live_state(session, now=now)) if part
            ),
        )
        for session in page.sessions
    )

"""The session page: finds the session, and hands it to the tab that is asked for.

A tab is a function `show(request, session)`; it answers with session_frame.render_tab.
"""

from collections.abc import Callable

from django.http import Http404, HttpResponseBase
from django.views.decorators.http import require_safe

from dashboard import access
from dashboard.live.page_state import note_page_state
from dashboard.models import AgentSession
from dashboard.page_request import PageRequest
from dashboard.pages.session_tabs import FIRST_TAB
from dashboard.views import (
    session_breaks,
    session_compactions,
    session_context,
    session_notes,
    session_settings,
    session_timeline,
    session_transcript,
)

TABS: dict[str, Callable[[PageRequest, AgentSession], HttpResponseBase]] = {
    FIRST_TAB: session_timeline.show,
    "compactions": session_compactions.show,
    "breaks": session_breaks.show,
    "context": session_context.show,
    "transcript": session_transcript.show,
    "notes": session_notes.show,
    "settings": session_settings.show,
}


@require_safe
def session(request: PageRequest, session_id: int) -> HttpResponseBase:
    return _show(request, session_id, FIRST_TAB)


@require_safe
def session_tab(request: PageRequest, session_id: int, tab: str) -> HttpResponseBase:
    return _show(request, session_id, tab)


def _show(request: PageRequest, session_id: int, tab: str) -> HttpResponseBase:
    if tab not in TABS:
        raise Http404("Tab not found.")
    # Part of a page goes into one that remembers this already.
    request.live = None if request.htmx else note_page_state(access.teams(request.actor))
    return TABS[tab](request, access.find_session(request.actor, session_id))

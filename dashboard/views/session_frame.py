"""What all tabs of a session share: the header, the tabs, and the choice between page and fragment."""

from django.http import HttpResponse
from django.shortcuts import render
from django.utils import timezone

from dashboard import access
from dashboard.automation.crossings import find_waiting, suggest
from dashboard.models import AgentSession
from dashboard.page_context import remember_team
from dashboard.page_request import PageRequest
from dashboard.pages.session_page import SessionHeader, read_header
from dashboard.pages.session_runs import look_at_runs
from dashboard.pages.session_tabs import count_shown, list_tabs


def render_tab(
    request: PageRequest,
    session: AgentSession,
    tab: str,
    context: dict[str, object],
    *,
    header: SessionHeader | None = None,
) -> HttpResponse:
    """The whole page, or for htmx the tab's content alone, from session/<tab>.html. A tab that has read the header
    already hands it over."""
    remember_team(request, session.team)
    shared: dict[str, object] = {
        "session": session,
        "reads_content": access.reads_content(request.actor, session),
        "frame": "session/_fragment.html" if request.htmx else "base.html",
        "tab": tab,
        "shown_count": count_shown(session, tab),
        "live": request.live,
        "is_live": True,
    }
    if not request.htmx:
        header = header or read_header(request.actor, session, now=timezone.now())
        crossing = find_waiting(session)
        own_runs = look_at_runs(request.actor, session)
        shared |= {
            "header": header,
            "suggestion": suggest(request.actor, crossing) if crossing else None,
            "own_runs": own_runs,
            "tabs": list_tabs(session, tab, own_runs),
        }
    return render(request, f"session/{tab}.html", shared | context)

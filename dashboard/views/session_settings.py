"""The settings tab of a session: every figure behind its lines, and who decided it."""

from django.http import HttpResponse
from django.utils import timezone

from dashboard import access
from dashboard.models import AgentSession
from dashboard.page_request import PageRequest
from dashboard.pages.session_page import find_shown_thread, read_header, read_lines, read_threads
from dashboard.pages.session_settings import read_settings
from dashboard.views.session_frame import render_tab


def show(request: PageRequest, session: AgentSession) -> HttpResponse:
    header = None if request.htmx else read_header(request.actor, session, now=timezone.now())
    in_force = header.standing if header else read_lines(session, find_shown_thread(read_threads(session)))
    context: dict[str, object] = {
        "in_force": read_settings(request.actor, session, in_force),
        "people": list(access.owners_to_assign(request.actor, session)),
    }
    return render_tab(request, session, "settings", context, header=header)

"""The settings tab of a session: every figure behind its lines, and who decided it."""

from django.http import HttpResponse
from django.utils import timezone

from dashboard.models import AgentSession
from dashboard.page_request import PageRequest
from dashboard.session_page import read_header
from dashboard.session_settings import read_settings
from dashboard.views.session_frame import render_tab


def show(request: PageRequest, session: AgentSession) -> HttpResponse:
    header = read_header(request.actor, session, now=timezone.now())
    context: dict[str, object] = {"in_force": read_settings(request.actor, header)}
    return render_tab(request, session, "settings", context, header=header)

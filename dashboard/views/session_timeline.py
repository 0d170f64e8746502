"""The timeline tab of a session."""

from django.http import HttpResponse

from dashboard.models import AgentSession
from dashboard.page_request import PageRequest
from dashboard.views.session_frame import render_tab


def show(request: PageRequest, session: AgentSession) -> HttpResponse:
    return render_tab(request, session, "timeline", {})

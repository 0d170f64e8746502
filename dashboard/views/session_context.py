"""The context tab of a session: what fills the window now, and what could be cleared."""

from django.http import HttpResponse
from django.utils import timezone

from dashboard.chart_data import ContextPart
from dashboard.charts.context import draw_composition
from dashboard.models import AgentSession
from dashboard.page_request import PageRequest
from dashboard.pages.context_page import read_context
from dashboard.views.session_frame import render_tab


def show(request: PageRequest, session: AgentSession) -> HttpResponse:
    found = read_context(request.actor, session, now=timezone.now())
    chart = None
    if found.inside is not None and found.inside.parts:
        parts = [ContextPart(part.category, part.tokens, part.name or None) for part in found.inside.parts]
        chart = draw_composition("composition", parts)
    return render_tab(request, session, "context", {"found": found, "chart": chart})

"""The context tab of a session: what fills the window now, and what could be cleared."""

from django.http import HttpResponseBase
from django.utils import timezone

from dashboard.chart_data import ContextPart
from dashboard.charts.context import draw_composition
from dashboard.exports.findings import export_context
from dashboard.models import AgentSession
from dashboard.page_request import PageRequest
from dashboard.pages.context_page import read_context
from dashboard.views.exports import read_format, read_part, send_export
from dashboard.views.session_frame import render_tab


def show(request: PageRequest, session: AgentSession) -> HttpResponseBase:
    found = read_context(request.actor, session, now=timezone.now())
    if wanted := read_format(request):
        return send_export(request, export_context(found.inside, read_part(request)), wanted)
    chart = None
    if found.inside is not None and found.inside.parts:
        parts = [ContextPart(part.category, part.tokens, part.name or None) for part in found.inside.parts]
        chart = draw_composition("composition", parts)
    return render_tab(request, session, "context", {"found": found, "chart": chart})

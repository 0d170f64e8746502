"""The context tab of a session: what fills the window now, and what could be cleared."""

from django.http import HttpResponseBase
from django.utils import timezone

from dashboard.chart_data import ContextPart
from dashboard.charts.treemap import chart_composition
from dashboard.exports.findings import export_context
from dashboard.models import AgentSession
from dashboard.page_request import PageRequest
from dashboard.pages.context_page import read_context
from dashboard.pages.session_page import read_header
from dashboard.views.exports import read_format, read_part, send_export
from dashboard.views.session_frame import render_tab


def show(request: PageRequest, session: AgentSession) -> HttpResponseBase:
    found = read_context(request.actor, session, now=timezone.now())
    if wanted := read_format(request):
        return send_export(request, export_context(found.inside, read_part(request)), wanted)
    chart = None
    if found.inside is not None and found.inside.pieces:
        parts = [
            ContextPart(piece.category, piece.tokens, piece.name or None, piece.path or None)
            for piece in found.inside.pieces
        ]
        chart = chart_composition("composition", parts)
    header = read_header(request.actor, session, now=timezone.now())
    context: dict[str, object] = {"found": found, "chart": chart, "bar": header.standing.bar}
    return render_tab(request, session, "context", context, header=header)

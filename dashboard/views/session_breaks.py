"""The cache breaks tab of a session: breaks by cause and one by one, expected rebuilds apart."""

from django.http import HttpResponseBase

from dashboard import access
from dashboard.exports.losses import export_losses
from dashboard.models import AgentSession, LossKind
from dashboard.page_request import PageRequest
from dashboard.pages.keyset import read_place
from dashboard.pages.ledger import LossFilter, list_session_losses, total_causes
from dashboard.views.exports import read_format, send_export
from dashboard.views.session_frame import render_tab


def show(request: PageRequest, session: AgentSession) -> HttpResponseBase:
    if wanted := read_format(request):
        return send_export(request, export_losses(request.actor, LossFilter(session_id=session.pk)), wanted)
    reads_content = access.reads_content(request.actor, session)
    places = {name: read_place(request.GET.get(name, "")) for name in ("before", "rebuilds_before")}
    context = {
        "causes": total_causes(session),
        "breaks": list_session_losses(session, LossKind.BREAK, reads_content=reads_content, before=places["before"]),
        "rebuilds": list_session_losses(
            session, LossKind.EXPECTED, reads_content=reads_content, before=places["rebuilds_before"]
        ),
        "is_first_page": not any(places.values()),
    }
    return render_tab(request, session, "breaks", context)

"""The cache breaks tab of a session: breaks by cause and one by one, expected rebuilds apart."""

from django.http import HttpResponseBase

from dashboard import access
from dashboard.exports.losses import export_losses
from dashboard.models import AgentSession, LossKind
from dashboard.page_request import PageRequest
from dashboard.pages.keyset import Place, read_place
from dashboard.pages.ledger import (
    MINOR_WORDS,
    LossFilter,
    LossPage,
    list_session_losses,
    sum_session_minor,
    total_causes,
)
from dashboard.views.exports import read_format, send_export
from dashboard.views.session_frame import render_tab


def show(request: PageRequest, session: AgentSession) -> HttpResponseBase:
    if wanted := read_format(request):
        return send_export(request, export_losses(request.actor, LossFilter(session_id=session.pk)), wanted)
    reads_content = access.reads_content(request.actor, session)
    places = {name: read_place(request.GET.get(name, "")) for name in ("before", "rebuilds_before")}
    with_minor = request.GET.get("minor") == "show"

    def list_kind(kind: LossKind, before: Place | None) -> LossPage:
        return list_session_losses(session, kind, reads_content=reads_content, with_minor=with_minor, before=before)

    context = {
        "causes": total_causes(session),
        "breaks": list_kind(LossKind.BREAK, places["before"]),
        "rebuilds": list_kind(LossKind.EXPECTED, places["rebuilds_before"]),
        "with_minor": with_minor,
        "minor_breaks": None if with_minor else sum_session_minor(session, LossKind.BREAK),
        "minor_rebuilds": None if with_minor else sum_session_minor(session, LossKind.EXPECTED),
        "minor_words": MINOR_WORDS,
        "is_first_page": not any(places.values()),
    }
    return render_tab(request, session, "breaks", context)

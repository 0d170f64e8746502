"""The compactions tab of a session: full ones with what they freed and lost, micro-compactions apart."""

from django.http import HttpResponse

from dashboard import access
from dashboard.compaction_rows import list_session_compactions
from dashboard.keyset import read_place
from dashboard.models import AgentSession, CompactionKind
from dashboard.page_request import PageRequest
from dashboard.views.session_frame import render_tab


def show(request: PageRequest, session: AgentSession) -> HttpResponse:
    reads_content = access.reads_content(request.actor, session)
    places = {name: read_place(request.GET.get(name, "")) for name in ("before", "micro_before")}
    context = {
        "full": list_session_compactions(
            session, CompactionKind.FULL, reads_content=reads_content, before=places["before"]
        ),
        "micro": list_session_compactions(
            session, CompactionKind.MICRO, reads_content=reads_content, before=places["micro_before"]
        ),
        "is_first_page": not any(places.values()),
    }
    return render_tab(request, session, "compactions", context)

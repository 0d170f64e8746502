"""The compactions tab of a session: Plimsoll's own runs, the client's full compactions, micro and failed ones apart."""

from django.http import HttpResponseBase

from dashboard import access
from dashboard.exports.sessions import export_compactions, export_runs
from dashboard.models import AgentSession, CompactionKind
from dashboard.page_request import PageRequest
from dashboard.pages.compaction_rows import list_session_compactions, list_session_micro
from dashboard.pages.keyset import read_place
from dashboard.pages.run_rows import list_session_runs
from dashboard.views.exports import read_format, read_part, send_export
from dashboard.views.new_run import read_number
from dashboard.views.session_frame import render_tab

RUNS = "runs"  # the part of the page that is exported apart


def show(request: PageRequest, session: AgentSession) -> HttpResponseBase:
    if wanted := read_format(request):
        export = export_runs if read_part(request) == RUNS else export_compactions
        return send_export(request, export(request.actor, session), wanted)
    reads_content = access.reads_content(request.actor, session)
    places = {name: read_place(request.GET.get(name, "")) for name in ("before", "micro_before", "failed_before")}
    context = {
        "full": list_session_compactions(
            session, CompactionKind.FULL, reads_content=reads_content, before=places["before"]
        ),
        "micro": list_session_micro(session, reads_content=reads_content, before=places["micro_before"]),
        "runs": list_session_runs(request.actor, session, before=read_number(request.GET.get("runs_before", ""))),
        "failed": list_session_compactions(
            session, CompactionKind.FAILED, reads_content=reads_content, before=places["failed_before"]
        ),
        "is_first_page": not any(places.values()),
    }
    return render_tab(request, session, "compactions", context)

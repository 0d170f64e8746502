"""The transcript tab of a session: what was said, page by page, for those who may read it."""

from django.http import HttpResponse

from dashboard.models import AgentSession
from dashboard.page_request import PageRequest
from dashboard.pages.transcript_page import TAB, SearchAsked, TranscriptAsked, read_transcript_tab
from dashboard.pages.transcript_rows import compile_search, group_tool_calls
from dashboard.views.new_run import read_number
from dashboard.views.session_frame import render_tab

LONGEST_SEARCH = 200


def show(request: PageRequest, session: AgentSession) -> HttpResponse:
    read = request.GET.get
    asked = TranscriptAsked(
        agent=read("agent", ""),
        entry=read("entry", ""),
        call=read("call", ""),
        after=read("after", ""),
        before=read("before", ""),
        is_last="last" in request.GET,
    )
    words = read("text", "")[:LONGEST_SEARCH]
    search = SearchAsked(words, read_number(read("found", "")) or 1)
    tab = read_transcript_tab(request.actor, session, asked, search)
    rows = group_tool_calls(tab.page.entries, compile_search(words)) if tab.page else ()
    return render_tab(request, session, TAB, {"transcript": tab, "rows": rows, "words": words})

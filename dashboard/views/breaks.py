"""The page of one cache break or expected rebuild."""

from django.http import HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_safe

from compaction.cache.conditions import BASE_CHECKING, BASE_TUNING
from dashboard import access
from dashboard.page_context import remember_team
from dashboard.page_request import PageRequest
from dashboard.pages.break_page import read_break
from dashboard.pages.ledger import MINOR_WORDS
from dashboard.views.connect import describe_proxy


@require_safe
def cache_break(request: PageRequest, break_id: int) -> HttpResponse:
    visible = access.breaks(request.actor).select_related("session", "session__team")
    found = read_break(request.actor, get_object_or_404(visible, pk=break_id))
    remember_team(request, found.session.team)
    context = {
        "found": found,
        "row": found.row,
        "priced_team": found.session.team,
        "base": BASE_TUNING + BASE_CHECKING,
        "minor_words": MINOR_WORDS,
        "proxy": describe_proxy(request, found.session.team) if found.needs_requests else None,
    }
    return render(request, "breaks/page.html", context)

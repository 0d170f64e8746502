"""Who did what to people, rights and keys; for owners."""

from django.http import HttpResponseBase
from django.shortcuts import render
from django.views.decorators.http import require_safe

from dashboard import access
from dashboard.access import Act
from dashboard.exports.housekeeping import export_audit_log
from dashboard.page_request import PageRequest
from dashboard.views.exports import read_format, send_export
from dashboard.views.team_page import read_before, team_rights

PAGE_SIZE = 50


@require_safe
def audit_log(request: PageRequest, slug: str) -> HttpResponseBase:
    """Pages by id, not by offset: new events do not shift what is on the next page."""
    team = access.require_team(request.actor, slug, Act.GOVERN)
    events = access.audit_events(request.actor, slug)
    if wanted := read_format(request):
        return send_export(request, export_audit_log(events), wanted)
    before = read_before(request)
    if before is not None:
        events = events.filter(id__lt=before)
    rows = list(events[: PAGE_SIZE + 1])
    context = {
        "team": team,
        "events": rows[:PAGE_SIZE],
        "older_than": rows[PAGE_SIZE - 1].pk if len(rows) > PAGE_SIZE else None,
        "is_first_page": before is None,
        **team_rights(request, team),
    }
    return render(request, "audit_log/page.html", context)

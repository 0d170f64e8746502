"""The page of one compaction."""

from django.http import HttpResponseBase
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_safe

from dashboard import access
from dashboard.exports.findings import export_lost
from dashboard.page_context import remember_team
from dashboard.page_request import PageRequest
from dashboard.pages.compaction_messages import FATE_MEANINGS
from dashboard.pages.compaction_page import read_compaction
from dashboard.views.exports import read_format, send_export

_LONGEST_NUMBER = 9


@require_safe
def compaction(request: PageRequest, compaction_id: int) -> HttpResponseBase:
    visible = access.compactions(request.actor).select_related("session", "session__team")
    found = read_compaction(
        request.actor,
        get_object_or_404(visible, pk=compaction_id),
        first_message=_read_number(request.GET.get("from", "")),
        is_lost_only=bool(request.GET.get("lost")),
    )
    remember_team(request, found.session.team)
    if wanted := read_format(request):
        return send_export(request, export_lost(found.audit), wanted)
    context = {"found": found, "row": found.row, "meanings": FATE_MEANINGS.items()}
    return render(request, "compactions/page.html", context)


def _read_number(text: str) -> int:
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= _LONGEST_NUMBER else 1

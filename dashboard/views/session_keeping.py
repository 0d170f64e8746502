"""Taking a session away and deleting it, from its page."""

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from dashboard import access
from dashboard.access import Act
from dashboard.models import AgentSession
from dashboard.page_request import PageRequest
from dashboard.pages.session_download import download_numbers, download_transcript
from dashboard.retention.deletion import delete_session as delete
from dashboard.views.team_page import signed_in


@require_safe
def download_session(request: PageRequest, session_id: int, form: str) -> HttpResponseBase:
    """`form`: transcript, for whoever reads its content; numbers, for whoever sees it."""
    session = _find_session(request, session_id)
    if form == "numbers":
        return download_numbers(session)
    if form != "transcript":
        raise Http404("Download not found.")
    access.require_content(request.actor, session)
    if not session.has_content:
        raise Http404("No content of this session is stored.")
    return download_transcript(session)


@require_POST
def delete_session(request: PageRequest, session_id: int) -> HttpResponse:
    session = _find_session(request, session_id)
    access.require_team(request.actor, session.team.slug, Act.MANAGE)
    delete(session, by=signed_in(request), now=timezone.now())
    messages.success(request, f"Session {session.external_id} deleted. You can allow it again under Storage.")
    return redirect("sessions")


def _find_session(request: PageRequest, session_id: int) -> AgentSession:
    return get_object_or_404(access.sessions(request.actor).select_related("team"), pk=session_id)

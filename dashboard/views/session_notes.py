"""The notes tab of a session: read, edited, and taken now."""

from http import HTTPStatus

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_POST

from dashboard import access
from dashboard.automation.note_versions import ask_for_notes
from dashboard.automation.note_versions import edit_notes as edit
from dashboard.live.page_state import note_page_state
from dashboard.models import AgentSession
from dashboard.page_request import PageRequest
from dashboard.pages.notes_page import read_notes_page
from dashboard.pages.session_tabs import tab_url
from dashboard.runs.choices import RunRefused
from dashboard.views.new_run import read_number
from dashboard.views.session_frame import render_tab

TAB = "notes"


def show(request: PageRequest, session: AgentSession, refused: dict[str, object] | None = None) -> HttpResponse:
    found = read_notes_page(request.actor, session, number=read_number(request.GET.get("version", "")))
    return render_tab(request, session, TAB, {"found": found, **(refused or {})})


@require_POST
def edit_notes(request: PageRequest, session_id: int) -> HttpResponse:
    """A new version, if none was written since the form was drawn; else the words stay in the form."""
    session = access.find_session(request.actor, session_id)
    text = request.POST.get("text", "")
    base_number = read_number(request.POST.get("base_number", ""))
    try:
        made = edit(request.actor, session, text, base_number=base_number, now=timezone.now())
    except RunRefused as refusal:
        request.live = note_page_state(access.teams(request.actor))
        answer = show(request, session, {"refused_sentence": refusal.sentence, "refused_text": text})
        answer.status_code = HTTPStatus.CONFLICT
        return answer
    messages.success(request, f"Notes saved as version {made.number}.")
    return redirect(tab_url(session, TAB))


@require_POST
def take_notes(request: PageRequest, session_id: int) -> HttpResponse:
    session = access.find_session(request.actor, session_id)
    try:
        ask_for_notes(request.actor, session, now=timezone.now())
    except RunRefused as refusal:
        messages.error(request, refusal.sentence)
    else:
        messages.success(request, "Taking notes. They appear here in a few seconds.")
    return redirect(reverse("session_tab", args=[session_id, TAB]))

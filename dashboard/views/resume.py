"""Taking up a finished run: its transcript as a download, written beside the original, and taken back."""

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from dashboard import access
from dashboard.models import CompactionRun
from dashboard.page_request import PageRequest
from dashboard.runs.choices import RunRefused
from dashboard.runs.resume import download_resumed, write_beside
from dashboard.runs.resumed_files import undo_resumed_file
from dashboard.runs.watched_places import FileState
from dashboard.views.team_page import signed_in

_LONGEST_NUMBER = 9


@require_safe
def resume_download(request: PageRequest, run_id: int) -> HttpResponse:
    """The same file under the same id however often it is asked for."""
    run = _find_run(request, run_id)
    access.require_content(request.actor, run.session)
    number = _read_number(request.GET.get("revision", ""))
    try:
        made = download_resumed(
            run,
            number,
            by=signed_in(request),
            now=timezone.now(),
            with_secrets=access.owns_session(request.actor, run.session),
        )
    except RunRefused as refusal:
        messages.error(request, refusal.sentence)
        return redirect(_address(run_id))
    headers = {"Content-Disposition": f'attachment; filename="{made.file_name}"', "Cache-Control": "no-store"}
    return HttpResponse(made.data, content_type="application/x-ndjson", headers=headers)


@require_POST
def resume_write(request: PageRequest, run_id: int) -> HttpResponse:
    run = _find_run(request, run_id)
    access.require_run(request.actor, run.session)
    number = _read_number(request.POST.get("revision", ""))
    try:
        row = write_beside(run, number, by=signed_in(request), now=timezone.now())
    except RunRefused as refusal:
        messages.error(request, refusal.sentence)
    else:
        messages.success(request, f"The transcript is written as session {row.external_id}. The original is untouched.")
    return redirect(_address(run_id))


@require_POST
def resume_undo(request: PageRequest, resumed_id: int) -> HttpResponse:
    visible = access.resumed_files(request.actor).select_related("team", "origin", "origin__team")
    row = get_object_or_404(visible, pk=resumed_id)
    access.require_resumed(request.actor, row)
    try:
        state = undo_resumed_file(row, by=signed_in(request), now=timezone.now())
    except RunRefused as refusal:
        messages.error(request, refusal.sentence)
    else:
        words = "was gone already" if state is FileState.MISSING else "is removed"
        messages.success(request, f"The transcript {row.external_id} {words}.")
    return redirect(_address(row.run_id) if row.run_id else "overview")


def _address(run_id: int) -> str:
    return f"{reverse('run', args=[run_id])}#resume"


def _find_run(request: PageRequest, run_id: int) -> CompactionRun:
    return get_object_or_404(access.runs(request.actor).select_related("session", "session__team", "team"), pk=run_id)


def _read_number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= _LONGEST_NUMBER else None

"""The page of one run: its progress, its result, a new revision of its summary, and two runs side by side."""

from http import HTTPStatus

from django.contrib import messages
from django.http import Http404, HttpResponse, HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe
from django_htmx.http import HttpResponseClientRefresh

from dashboard import access
from dashboard.access import Act
from dashboard.exports.findings import export_lost
from dashboard.models import CompactionRun, RunState
from dashboard.page_context import remember_team
from dashboard.page_request import PageRequest
from dashboard.pages.compaction_messages import FATE_MEANINGS, Fate
from dashboard.pages.resume_page import read_resume_ways
from dashboard.pages.run_comparison import compare_runs as compare
from dashboard.pages.run_page import RunPage, read_run
from dashboard.pages.run_progress import tell_progress
from dashboard.pages.run_rows import read_runs
from dashboard.runs.breakers import reset_breaker as reset
from dashboard.runs.choices import RunRefused
from dashboard.runs.endings import close_stranded, list_stranded
from dashboard.runs.revisions import revise_summary
from dashboard.runs.start import cancel_run as cancel
from dashboard.views.exports import read_format, send_export
from dashboard.views.new_run import read_number
from dashboard.views.team_page import signed_in

_MEANINGS = [(fate, FATE_MEANINGS[fate]) for fate in (Fate.KEPT, Fate.SUMMARISED, Fate.DROPPED)]


@require_safe
def run(request: PageRequest, run_id: int) -> HttpResponseBase:
    _close_if_stranded(request, run_id)
    found = _find_run(request, run_id)
    if wanted := read_format(request):
        return send_export(request, export_lost(_read(request, found).audit), wanted)
    return _show(request, found)


@require_safe
def run_progress(request: PageRequest, run_id: int) -> HttpResponse:
    """The stages alone, asked for every second; once the run has ended, the whole page is loaded instead."""
    _close_if_stranded(request, run_id)
    found = get_object_or_404(access.runs(request.actor).select_related("job").defer("outcome", "details"), pk=run_id)
    if not RunState(found.state).is_open:
        return HttpResponseClientRefresh() if request.htmx else redirect("run", run_id)
    progress = tell_progress(found, now=timezone.now())
    voice = progress.current if progress.current != request.GET.get("stage") else ""
    return render(request, "runs/_progress.html", {"run": found, "progress": progress, "voice": voice})


@require_POST
def cancel_run(request: PageRequest, run_id: int) -> HttpResponse:
    found = _find_run(request, run_id)
    access.require_run(request.actor, found.session)
    if cancel(request.actor, found, now=timezone.now()):
        messages.success(request, f"Run {run_id} is asked to stop.")
    else:
        messages.error(request, f"Run {run_id} had ended already.")
    return redirect("run", run_id)


@require_POST
def revise_run(request: PageRequest, run_id: int) -> HttpResponse:
    """A new revision, if nobody saved one since the form was drawn; else the words stay in the form."""
    found = _find_run(request, run_id)
    access.require_run(request.actor, found.session)
    if not access.reads_content(request.actor, found.session):
        access.require_team(request.actor, found.team.slug, Act.READ_TEAM_CONTENT)
    text = request.POST.get("text", "")
    try:
        made = revise_summary(
            found,
            text,
            by=signed_in(request),
            now=timezone.now(),
            base_number=read_number(request.POST.get("base_number", "")),
        )
    except RunRefused as refusal:
        return _show(request, found, refused={"refusal": refusal.sentence, "refused_text": text})
    messages.success(request, f"Revision {made.number} is saved. Its size and what it retains were computed again.")
    return redirect(f"{reverse('run', args=[run_id])}?revision={made.number}#summary")


@require_safe
def compare_runs(request: PageRequest, run_id: int, other_id: int) -> HttpResponse:
    first, second = (_find_run(request, each) for each in (run_id, other_id))
    if first.pk == second.pk or first.session_id != second.session_id:
        raise Http404("These runs cannot be compared.")
    if {first.state, second.state} != {RunState.DONE}:
        raise Http404("Only finished runs can be compared.")
    remember_team(request, first.team)
    pages = [read_run(request.actor, each, now=timezone.now()) for each in (first, second)]
    context = {"compared": compare(*pages), "first": pages[0], "second": pages[1], "pages": pages}
    return render(request, "runs/compare.html", context)


@require_POST
def reset_breaker(request: PageRequest, session_id: int) -> HttpResponse:
    session = get_object_or_404(access.sessions(request.actor).select_related("team"), pk=session_id)
    if reset(request.actor, session, request.POST.get("agent_id", "").replace("\x00", "")):
        messages.success(request, "Automatic compactions of this conversation may run again.")
    else:
        messages.info(request, "Automatic compactions of this conversation were not paused.")
    return redirect("session", session_id)


def _close_if_stranded(request: PageRequest, run_id: int) -> None:
    """A run whose job is dead must not be shown as going on."""
    stranded = list_stranded().filter(pk__in=access.runs(request.actor).filter(pk=run_id).values("pk"))
    close_stranded(stranded, now=timezone.now())


def _find_run(request: PageRequest, run_id: int) -> CompactionRun:
    visible = access.runs(request.actor).select_related("session", "session__team", "team", "job")
    return get_object_or_404(read_runs(visible).defer(None), pk=run_id)


def _read(request: PageRequest, found: CompactionRun) -> RunPage:
    return read_run(
        request.actor,
        found,
        now=timezone.now(),
        revision_number=read_number(request.GET.get("revision", "")),
        first_message=read_number(request.GET.get("from", "")) or 1,
        is_lost_only=bool(request.GET.get("lost")),
    )


def _show(request: PageRequest, found: CompactionRun, refused: dict[str, str] | None = None) -> HttpResponse:
    remember_team(request, found.team)
    page = _read(request, found)
    context: dict[str, object] = {
        "found": page,
        "row": page.row,
        "run": found,
        "progress": page.progress,
        "reads_content": access.reads_content(request.actor, found.session),
        "meanings": _MEANINGS,
        "resume": read_resume_ways(request.actor, found, page.shown_number or None),
        "kept_query": f"revision={page.shown_number}&" if page.shown_number != page.last_number else "",
        **(refused or {}),
    }
    status = HTTPStatus.CONFLICT if refused else HTTPStatus.OK
    return render(request, "runs/page.html", context, status=status)

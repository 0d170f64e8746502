"""The page before a compaction: choices, the messages to pick from, the preview beside them, and the start."""

from http import HTTPStatus

from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_POST

from dashboard import access
from dashboard.access import Act
from dashboard.models import AgentSession, CompactionRun, RunState
from dashboard.page_context import remember_team
from dashboard.page_request import PageRequest
from dashboard.pages.kind_cards import build_kind_cards
from dashboard.pages.run_draft import Asked, RunDraft, make_draft
from dashboard.runs.choices import RunRefused
from dashboard.runs.start import start_run

_LONGEST_NUMBER = 18
MAIN = "main"  # how the form names the main conversation where an empty word would mean that none is listed


@require_http_methods(["GET", "HEAD", "POST"])
def new_run(request: PageRequest, session_id: int) -> HttpResponse:
    """A draft is only previewed until `act` says start."""
    session = _find_session(request, session_id)
    remember_team(request, session.team)
    given = request.POST.dict() if request.method == "POST" else None
    draft = make_draft(
        request.actor,
        session,
        given,
        now=timezone.now(),
        asked=Asked(
            again=_find_again(request, session),
            first_message=read_number(request.POST.get("from", "")),
            kind=request.GET.get("kind", ""),
        ),
    )
    status = HTTPStatus.OK
    if given is not None and draft.choices is None:
        status = HTTPStatus.UNPROCESSABLE_ENTITY
    elif request.POST.get("act") == "start" and draft.choices is not None:
        try:
            run = start_run(
                request.actor, session, draft.choices, source="page", now=timezone.now(), again_of=draft.again
            )
            return redirect("run", run.pk)
        except RunRefused as refusal:
            draft, status = draft.refuse(refusal), HTTPStatus.CONFLICT
    return _render(request, draft, status)


@require_POST
def predict_run_losses(request: PageRequest, session_id: int) -> HttpResponse:
    """The figures of every card with what each kind would lose. The page asks for them once it is there, and again
    when choices change."""
    session = _find_session(request, session_id)
    now = timezone.now()
    draft = make_draft(request.actor, session, request.POST.dict(), now=now)
    cards = build_kind_cards(request.actor, draft, now=now, predicts_losses=True)
    return render(request, "runs/_card_figures.html", {"cards": cards})


def _find_session(request: PageRequest, session_id: int) -> AgentSession:
    session = get_object_or_404(access.sessions(request.actor).select_related("team"), pk=session_id)
    access.require_run(request.actor, session)
    return session


def _render(request: PageRequest, draft: RunDraft, status: HTTPStatus) -> HttpResponse:
    # Before somebody presses Start, what is missing is a hint and no error.
    has_acted = request.POST.get("act") == "start"
    context: dict[str, object] = {"draft": draft, "session": draft.session, "has_acted": has_acted}
    if request.htmx:
        if request.POST.get("act") == "messages":
            return render(request, "runs/_pivots.html", context)
        # The list of messages comes along only when another conversation is to be listed.
        listed = request.POST.get("listed", "")
        context["is_fragment"] = True
        context["brings_pivots"] = draft.pivots is not None and (draft.pivots.agent_id or MAIN) != listed
        return render(request, "runs/_preview.html", context)
    # Whole pages are posted without scripts alone: then nothing asks for the losses afterwards.
    context["cards"] = build_kind_cards(
        request.actor, draft, now=timezone.now(), predicts_losses=request.method == "POST"
    )
    context["may_manage"] = request.actor.may(Act.MANAGE, draft.session.team)
    context["open_run"] = _find_open(request, draft)
    return render(request, "runs/new.html", context, status=status)


def _find_again(request: PageRequest, session: AgentSession) -> CompactionRun | None:
    number = read_number((request.POST or request.GET).get("again", ""))
    return None if number is None else access.runs(request.actor).filter(session=session, pk=number).first()


def _find_open(request: PageRequest, draft: RunDraft) -> CompactionRun | None:
    states = [state for state in RunState if state.is_open]
    agent_id = draft.choices.agent_id if draft.choices else ""
    found = access.runs(request.actor).filter(session=draft.session, agent_id=agent_id, state__in=states)
    return found.defer("outcome", "details").first()


def read_number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= _LONGEST_NUMBER else None

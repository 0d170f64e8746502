"""What all tabs of a session share: the header, the tabs, and the choice between page and fragment."""

from dataclasses import dataclass

from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse

from dashboard import access
from dashboard.models import AgentSession
from dashboard.page_context import remember_team
from dashboard.page_request import PageRequest

FIRST_TAB = "timeline"


@dataclass(frozen=True)
class Tab:
    name: str
    label: str
    url: str
    count: int | None
    is_current: bool


def render_tab(
    request: PageRequest, session: AgentSession, tab: str, context: dict[str, object], *, template: str = ""
) -> HttpResponse:
    """The whole page, or for htmx the tab's content alone. The template is session/<tab>.html unless named."""
    remember_team(request, session.team)
    shared = {
        "session": session,
        "tabs": list_tabs(session, tab),
        "reads_content": access.reads_content(request.actor, session),
        "frame": "session/_fragment.html" if request.htmx else "base.html",
    }
    return render(request, template or f"session/{tab}.html", shared | context)


def list_tabs(session: AgentSession, current: str) -> list[Tab]:
    named: list[tuple[str, str, int | None]] = [
        (FIRST_TAB, "Timeline", None),
        ("settings", "Settings in force", None),
    ]
    return [Tab(name, label, tab_url(session, name), count, name == current) for name, label, count in named]


def tab_url(session: AgentSession, tab: str) -> str:
    if tab == FIRST_TAB:
        return reverse("session", args=[session.pk])
    return reverse("session_tab", args=[session.pk, tab])

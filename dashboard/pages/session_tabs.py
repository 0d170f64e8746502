"""The tabs of a session: their addresses, and how much each of them has to show."""

from dataclasses import dataclass
from urllib.parse import urlencode

from django.urls import reverse

from dashboard.models import AgentSession
from dashboard.pages.session_runs import SessionRuns

FIRST_TAB = "timeline"
TAB_NAMES = (FIRST_TAB, "compactions", "breaks", "context", "transcript", "notes", "settings")


@dataclass(frozen=True)
class Tab:
    name: str
    label: str
    url: str
    count: int | None
    is_current: bool


def list_tabs(session: AgentSession, current: str, own: SessionRuns) -> list[Tab]:
    """Counts are of what a tab lists: for compactions the client's full, micro and failed ones, and Plimsoll's runs."""
    compactions = session.compaction_count + session.micro_count + own.failed_count + own.run_count
    named: list[tuple[str, str, int | None]] = [
        (FIRST_TAB, "Timeline", None),
        ("compactions", "Compactions", compactions),
        ("breaks", "Cache breaks", session.break_count),
        ("context", "Context", None),
        ("transcript", "Transcript", None),
        ("notes", "Notes", None),
        ("settings", "Effective settings", None),
    ]
    return [Tab(name, label, tab_url(session, name), count, name == current) for name, label, count in named]


def tab_url(session: AgentSession, tab: str) -> str:
    if tab == FIRST_TAB:
        return reverse("session", args=[session.pk])
    return reverse("session_tab", args=[session.pk, tab])


def numbered_call_url(session_id: int, agent_id: str, number: int) -> str:
    """The timeline with a call picked by its number in its thread, for those who do not know its id."""
    named = {"agent": agent_id} if agent_id else {}
    return f"{reverse('session', args=[session_id])}?{urlencode({**named, 'number': number})}"


def count_shown(session: AgentSession, tab: str) -> int:
    """What a tab is made of: an open page that was drawn with fewer offers the rest."""
    counts = {
        FIRST_TAB: session.call_count,
        "compactions": session.compaction_count + session.micro_count,
        "breaks": session.break_count + session.rebuild_count,
        "context": session.call_count,
        # Not its lines: most of those that come alone are the client's own book-keeping, which no tab shows.
        "transcript": session.call_count + session.turn_count + session.compaction_count,
    }
    return counts.get(tab, 0)

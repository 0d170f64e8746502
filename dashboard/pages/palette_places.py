"""Where the command palette leads besides sessions: every page that a person may open, the views they saved, and what
can be done from anywhere. What else can be done on a page, the page itself tells (static/js/palette.js)."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from django.conf import settings
from django.urls import reverse

from dashboard import access
from dashboard.access import Act, Actor
from dashboard.demo.notice import may_make_demo
from dashboard.models import ListName, SavedView

PAGES, VIEWS, ACTIONS = "Pages", "Saved views", "Actions"
_LISTS = {
    ListName.SESSIONS: ("sessions", "sessions"),
    ListName.BREAKS: ("ledger", "cache breaks"),
    ListName.COMPACTIONS: ("compactions", "compactions"),
}


@dataclass(frozen=True)
class PalettePlace:
    """One line of the palette. `words`: others that it is found by. `is_posted`: an action, not an address."""

    group: str
    name: str
    url: str
    note: str = ""
    words: str = ""
    is_posted: bool = False


class _Page(NamedTuple):
    view: str
    name: str
    words: str = ""
    act: Act | None = None  # that somebody must be able to do: in any team, or in the one whose page it is


_EVERYWHERE = (
    _Page("overview", "Overview", "home start tiles"),
    _Page("sessions", "Sessions", "list search"),
    _Page("ledger", "Cache breaks", "ledger losses causes"),
    _Page("compactions", "Compactions", "history retained lost auto manual micro runs"),
    _Page("compare", "Compare", "sessions periods"),
    _Page("connect", "Data sources", "connect snippets send otlp opentelemetry hooks status line proxy push", Act.SEE),
    _Page("upload", "Upload transcripts", "import files send", Act.INGEST),
    _Page("account", "Your account", "profile user name"),
    _Page("password", "Change password", "set sign in"),
    _Page("api_docs", "API documentation", "reference endpoints openapi json rest"),
    _Page("prompt_lint", "Prompt check", "lint prefix order"),
    _Page("glossary", "Glossary", "terms help words meaning"),
    _Page("jobs", "Jobs", "background work queue", Act.MANAGE),
    _Page("health", "Health", "status queue disk drops versions", Act.MANAGE),
    _Page("styleguide", "Style guide", "look parts colours", Act.GOVERN),
)
_OF_A_TEAM = (
    _Page("team", "Members", "team people roles", Act.SEE),
    _Page("thresholds", "Thresholds", "team lines warning auto-compact blocking policy", Act.SEE),
    _Page("automation", "Automatic mode", "team automation auto compact notes", Act.TUNE),
    _Page("keys", "API keys", "team tokens programs", Act.KEEP_KEYS),
    _Page("developers", "Developers", "team assign owner collector accounts", Act.MANAGE),
    _Page("invitations", "Invitations", "team invite people link", Act.MANAGE),
    _Page("prices", "Prices", "team own agreed price rates dollars tokens list", Act.SEE),
    _Page("redaction", "Redaction", "team secrets rules marks patterns false positive redacted keys tokens", Act.SEE),
    _Page("storage", "Storage", "team content retention days deleted", Act.MANAGE),
    _Page("summarizer", "Summariser", "team summarizer model anthropic spend cap prices", Act.MANAGE),
    _Page("proxy_settings", "Proxy settings", "team upstream capture", Act.MANAGE),
    _Page("webhooks", "Webhooks", "team alarms alerts notify", Act.MANAGE),
    _Page("team_settings", "Team settings", "name rename", Act.MANAGE),
    _Page("audit_log", "Audit log", "team history who did", Act.GOVERN),
)


def list_palette_places(actor: Actor) -> list[PalettePlace]:
    """One query, for the views."""
    return [*_list_actions(actor), *_list_views(actor), *_list_pages(actor), *_list_team_pages(actor)]


def _list_pages(actor: Actor) -> Iterator[PalettePlace]:
    for page in _EVERYWHERE:
        if page.act is None or actor.may_anywhere(page.act):
            yield PalettePlace(PAGES, page.name, reverse(page.view), words=page.words)
    if access.may_create_team(actor, local_mode=settings.LOCAL_MODE):
        yield PalettePlace(PAGES, "Create team", reverse("new_team"), words="new")


def _list_team_pages(actor: Actor) -> Iterator[PalettePlace]:
    for team in access.teams(actor):
        for page in _OF_A_TEAM:
            if page.act is not None and actor.may(page.act, team):
                yield PalettePlace(PAGES, page.name, reverse(page.view, args=[team.slug]), team.name, page.words)


def _list_views(actor: Actor) -> Iterator[PalettePlace]:
    for view in access.saved_views(actor).order_by("name", "pk"):
        page, told = _LISTS[ListName(view.list_name)]
        url = f"{reverse(page)}?{view.query}" if view.query else reverse(page)
        yield PalettePlace(VIEWS, view.name, url, note=_tell_view(view, told), words="saved view")


def _tell_view(view: SavedView, told: str) -> str:
    return f"{told}, {view.team.name}" if view.team else told


def _list_actions(actor: Actor) -> Iterator[PalettePlace]:
    if may_make_demo(actor):
        yield PalettePlace(ACTIONS, "Load demo data", reverse("make_demo"), words="make sample", is_posted=True)
    if any(team.is_demo for team in access.teams(actor, Act.MANAGE)):
        yield PalettePlace(ACTIONS, "Remove demo data", reverse("remove_demo"), words="delete sample", is_posted=True)

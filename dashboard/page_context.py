"""What every page shows around its content: navigation, team, theme, version."""

from dataclasses import dataclass

from django.conf import settings
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone
from django.utils.functional import SimpleLazyObject

from dashboard import access
from dashboard.access import Act, Actor
from dashboard.demo.notice import DemoNotice, describe_demo
from dashboard.health import standstill_notice
from dashboard.models import Team, User

THEME_COOKIE = "plimsoll_theme"
THEMES = ("light", "dark")
_TEAM_IN_SESSION = "team"


@dataclass(frozen=True)
class NavigationItem:
    label: str
    url: str
    shortcut: str
    is_current: bool


@dataclass(frozen=True)
class PageContext:
    version: str
    theme: str
    path: str
    user: User | None
    team: Team | None
    teams: list[Team]
    navigation: list[NavigationItem]
    settings_navigation: list[NavigationItem]  # the menu Settings
    standstill: str  # what is wrong with background work, empty while it goes on
    may_see_health: bool
    may_see_styleguide: bool
    may_create_team: bool
    demo: DemoNotice | None  # of the team that is looked at


def page_context(request: HttpRequest) -> dict[str, object]:
    """A template context processor. Put together when a template asks: fragments do not."""
    return {"page": SimpleLazyObject(lambda: _describe_page(request))}


def _describe_page(request: HttpRequest) -> PageContext:
    """An anonymous request asks the database nothing."""
    actor: Actor = getattr(request, "actor", access.NOBODY)
    team = current_team(request, actor)
    return PageContext(
        version=settings.VERSION,
        theme=chosen_theme(request),
        path=request.get_full_path(),
        user=actor.user,
        team=team,
        teams=access.teams(actor),
        navigation=_list_pages(request.path) if actor.user else [],
        settings_navigation=_list_settings(request.path, actor, team) if actor.user else [],
        standstill=standstill_notice(timezone.now()) if actor.user else "",
        may_see_health=actor.may_anywhere(Act.MANAGE),
        may_see_styleguide=actor.may_anywhere(Act.GOVERN),
        demo=describe_demo(actor, team),
        may_create_team=access.may_create_team(actor, local_mode=settings.LOCAL_MODE),
    )


def chosen_theme(request: HttpRequest) -> str:
    """Empty: as the system says."""
    theme = request.COOKIES.get(THEME_COOKIE, "")
    return theme if theme in THEMES else ""


def current_team(request: HttpRequest, actor: Actor) -> Team | None:
    """The team looked at last, else the first; what was remembered counts only while the person belongs to it."""
    if not actor.user:
        return None
    remembered = actor.standings.get(request.session.get(_TEAM_IN_SESSION, ""))
    return remembered.team if remembered else next(iter(access.teams(actor)), None)


def find_real_team(request: HttpRequest, actor: Actor) -> Team | None:
    """Where something of the person's own goes: the team looked at last or, where that is the demo's, the first that
    is not. The demo's only for who belongs to no other."""
    current = current_team(request, actor)
    if current is None or not current.is_demo:
        return current
    return next((team for team in access.teams(actor) if not team.is_demo), current)


def remember_team(request: HttpRequest, team: Team) -> None:
    if request.session.get(_TEAM_IN_SESSION) != team.slug:
        request.session[_TEAM_IN_SESSION] = team.slug


def _list_pages(path: str) -> list[NavigationItem]:
    entries = (
        ("Overview", reverse("overview"), "g o"),
        ("Sessions", reverse("sessions"), "g s"),
        ("Cache breaks", reverse("ledger"), "g b"),
        ("Compactions", reverse("compactions"), "g m"),
        ("Compare", reverse("compare"), "g c"),
    )
    return [_build_item(path, *entry) for entry in entries]


def _list_settings(path: str, actor: Actor, team: Team | None) -> list[NavigationItem]:
    """What is set up or looked after: the team, its data sources, background work, and the words of the pages."""
    entries = [("Team", reverse("team", args=[team.slug]), "g t")] if team else []
    entries.append(("Data sources", reverse("connect"), "g d"))
    if actor.may_anywhere(Act.MANAGE):
        entries += [("Jobs", reverse("jobs"), "g j"), ("Health", reverse("health"), "g h")]
    entries.append(("Glossary", reverse("glossary"), "g g"))
    return [_build_item(path, *entry) for entry in entries]


def _build_item(path: str, label: str, url: str, shortcut: str) -> NavigationItem:
    return NavigationItem(label, url, shortcut, is_current=path == url if url == "/" else path.startswith(url))

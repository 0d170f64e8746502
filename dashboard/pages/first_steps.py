"""First steps on a developer's own machine: what to open first, and the status line to install."""

from dataclasses import dataclass

from django.conf import settings
from django.urls import reverse

from dashboard.access import Actor
from dashboard.models import LossKind, Team
from dashboard.own_commands import spell_command
from dashboard.pages.break_titles import title_break
from dashboard.pages.fleet import Fleet
from dashboard.pages.ledger import LossFilter, find_losses
from dashboard.pages.ways_in import list_seen_sources
from dashboard.words import say_usd

SESSION, BREAK, DISMISSED = "session", "break", "dismissed"
STEPS_COOKIE = "plimsoll_first_steps"
_KNOWN = frozenset({SESSION, BREAK, DISMISSED})


@dataclass(frozen=True)
class FirstStep:
    """`url` is empty where there is nothing to open yet; `command` is what to run instead of a link."""

    title: str
    detail: str
    is_done: bool
    url: str = ""
    command: str = ""


def read_steps(cookie: str) -> frozenset[str]:
    """Return what this browser has done already."""
    return _KNOWN.intersection(cookie.split("."))


def list_first_steps(actor: Actor, team: Team, fleet: Fleet, done: frozenset[str]) -> list[FirstStep]:
    """Return the three steps; nothing on a server, in the demo, once dismissed or when all are done."""
    if not settings.LOCAL_MODE or team.is_demo or DISMISSED in done:
        return []
    steps = [
        _open_fullest(fleet, is_done=SESSION in done),
        _open_costliest(actor, team, is_done=BREAK in done),
        _install_status_line(actor, team),
    ]
    return [] if all(step.is_done for step in steps) else steps


def _open_fullest(fleet: Fleet, *, is_done: bool) -> FirstStep:
    row = fleet.sessions[0]
    left = row.reading.percent_left
    room = "" if left is None else f", {left}% left to auto-compact"
    url = reverse("open_first_session", args=[row.session.pk])
    return FirstStep("Open your fullest recent session", f"{row.name}{room}", is_done, url)


def _open_costliest(actor: Actor, team: Team, *, is_done: bool) -> FirstStep:
    title = "See your costliest cache break"
    wanted = LossFilter(team=team.slug, kind=LossKind.BREAK, is_counted=True)
    loss = find_losses(actor, wanted).filter(lost_usd__gt=0).order_by("-lost_usd", "-id").first()
    if loss is None:
        return FirstStep(title, "No cache break with a price yet.", is_done)
    detail = f"{say_usd(loss.lost_usd)}: {title_break(loss.cause, loss.detail, loss.gap_seconds)}"
    return FirstStep(title, detail, is_done, reverse("open_first_break", args=[loss.pk]))


def _install_status_line(actor: Actor, team: Team) -> FirstStep:
    return FirstStep(
        "Install the status line",
        "Shows the gauge in Claude Code. The command also adds the hooks.",
        is_done="statusline" in list_seen_sources(actor, team),
        command=spell_command("connect", "claude-code", "--write", is_local=True, with_address=True),
    )

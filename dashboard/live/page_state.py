"""What a page must remember of the moment it was drawn, so that it can ask for what came after it."""

import time
from collections.abc import Collection
from dataclasses import dataclass

from dashboard.kept_query import KeptQuery
from dashboard.live.board import read_counts
from dashboard.live.wanted import spell_since
from dashboard.models import AgentSession, CacheBreak, Team

_NEWEST = KeptQuery(lambda: AgentSession.objects.order_by("-pk").values_list("pk")[:1])
_NEWEST_BREAK = KeptQuery(lambda: CacheBreak.objects.order_by("-pk").values_list("pk")[:1])


@dataclass(frozen=True)
class PageState:
    since: str  # as dashboard.live.wanted reads it
    newest_pk: int
    drawn_at_seconds: int


def note_page_state(teams: Collection[Team]) -> PageState:
    """Before anything of the page is read: what changes meanwhile is told once more rather than not at all."""
    return _note_state(_NEWEST, teams)


def note_ledger_state(team: Team) -> PageState:
    """The same for a page that lists breaks."""
    return _note_state(_NEWEST_BREAK, [team])


def _note_state(newest: KeptQuery, teams: Collection[Team]) -> PageState:
    newest_pk = next((pk for (pk,) in newest.read()), 0)
    return PageState(spell_since(read_counts(teams)), newest_pk, int(time.time()))

"""Finding sessions by words: project, developer, branch and id for everybody, titles for who reads their content."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from django.db import connection
from django.db.models import Q

from dashboard.access import Act, Actor
from dashboard.pages.search_index import INDEX, is_indexed
from dashboard.pages.session_filters import LEAST_LETTERS, MOST_WORDS, is_searchable


@dataclass(frozen=True, slots=True)
class TextSearch:
    """Every word must stand in the session, anywhere and in any case. `readable`: whose titles may be searched, empty
    for everybody's, or None for nobody's."""

    words: tuple[str, ...]
    readable: Q | None

    @property
    def matching(self) -> Q:
        if self.readable is None:
            return _all_of(self.words, ("search_text",))
        with_title = _all_of(self.words, ("search_text", "title"))
        return _all_of(self.words, ("search_text",)) | (self.readable & with_title) if self.readable else with_title

    def find_candidates(self, limit: int) -> list[int] | None:
        """Ids among which all that match are, or None when there are more than the limit or no index knows."""
        if not is_indexed():
            return None
        long = [word for word in self.words if len(word) >= LEAST_LETTERS]
        quoted = " ".join('"' + word.replace('"', '""') + '"' for word in long)
        expression = quoted if self.readable is not None else f"search_text : ({quoted})"
        with connection.cursor() as cursor:
            cursor.execute(f"SELECT rowid FROM {INDEX} WHERE {INDEX} MATCH %s LIMIT %s", [expression, limit + 1])  # noqa: S608
            ids = [pk for (pk,) in cursor.fetchall()]
        return ids if len(ids) <= limit else None


def search_for(actor: Actor, text: str) -> TextSearch | None:
    """None where no word is long enough for an index: a search for two letters would read every session."""
    return TextSearch(tuple(text.split()[:MOST_WORDS]), _find_readable(actor)) if is_searchable(text) else None


def _find_readable(actor: Actor) -> Q | None:
    """As access.reads_content decides for one session. Empty where all of them may be read: a database that must not
    ask for each session whose it is answers in half the time."""
    granted = [s.team.pk for s in actor.standings.values() if s.may(Act.READ_TEAM_CONTENT)]
    if granted and len(granted) == len(actor.standings):
        return Q()
    own = [s.team.pk for s in actor.standings.values() if s.may(Act.READ_OWN_CONTENT)]
    readable = Q()
    if granted:
        readable |= Q(team_id__in=granted)
    if own and actor.user is not None:
        readable |= Q(team_id__in=own, owner_id=actor.user.pk)
    return readable or None


def _all_of(words: Sequence[str], columns: Sequence[str]) -> Q:
    wanted = Q()
    for word in sorted(words, key=len, reverse=True):  # long ones stand in few sessions, and most are done with then
        wanted &= Q.create([part for column in columns for part in _contains(column, word)], connector=Q.OR)
    return wanted


def _contains(column: str, word: str) -> list[tuple[str, str]]:
    if word.isascii():
        return [(f"{column}__icontains", word)]
    # SQLite's LIKE knows upper and lower case of ASCII alone; its REGEXP is Python's.
    if connection.vendor == "sqlite":
        return [(f"{column}__iregex", re.escape(word))]
    # As does PostgreSQL in a database made with the locale C.
    return [(f"{column}__icontains", word.upper()), (f"{column}__icontains", word.lower())]

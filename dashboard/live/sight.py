"""Sessions as open pages show them, drawn once for everybody who sees the same of them."""

from collections.abc import Collection
from dataclasses import dataclass
from functools import partial
from zoneinfo import ZoneInfo

from asgiref.sync import sync_to_async
from django.http import Http404

from dashboard import access
from dashboard.live.board import Board
from dashboard.live.drawing import Belonging, draw_session, draw_session_rows, read_belonging
from dashboard.live.parts import Parts
from dashboard.live.viewers import Viewer

MOST_REMEMBERED = 20_000


class OwnerChanged(Exception):
    """While a session was drawn, it turned out to be somebody else's than was remembered."""


@dataclass
class Sight:
    """Whose a session is decides what of it somebody sees; a team never changes, an owner is found once, maybe late."""

    board: Board
    parts: Parts

    def __post_init__(self) -> None:
        self._belongings: dict[int, Belonging] = {}

    async def find_rows(
        self, viewer: Viewer, session_pks: Collection[int], zone: ZoneInfo | None, *, columns: tuple[str, ...]
    ) -> str:
        """Rows of the table, of those sessions that the viewer sees."""
        what = ("row", *columns)
        keys = {pk: self._key(what, viewer, pk, zone) for pk in session_pks}
        found = {pk: self.parts.get(key) for pk, key in keys.items() if key is not None}
        missing = [pk for pk in session_pks if found.get(pk) is None]
        if missing:
            drawn = await sync_to_async(draw_session_rows, thread_sensitive=True)(viewer.actor, missing, zone, columns)
            for row in drawn:
                self._remember(row.session_pk, row.belonging)
                found[row.session_pk] = row.html
                self.parts.keep(self._key(what, viewer, row.session_pk, zone), row.html)
        return "".join(html for pk in session_pks if (html := found.get(pk)))

    async def find_session(self, viewer: Viewer, session_pk: int, tab: str, zone: ZoneInfo | None) -> str:
        """The header with its tabs. Raises Http404 where there is no such session for the viewer."""
        if session_pk not in self._belongings:
            belonging = await sync_to_async(read_belonging, thread_sensitive=True)(session_pk)
            if belonging is not None:
                self._remember(session_pk, belonging)
        while True:
            key = self._key(("header", tab), viewer, session_pk, zone)
            if key is None:
                raise Http404("Session not found.")
            draw = partial(self._draw_session, viewer, session_pk, tab, zone, expected=self._belongings[session_pk])
            try:
                return await self.parts.find(key, draw)
            except OwnerChanged:
                continue  # everybody who waited for that drawing is somebody else to the session now

    async def _draw_session(
        self, viewer: Viewer, session_pk: int, tab: str, zone: ZoneInfo | None, *, expected: Belonging
    ) -> str:
        """Kept and shared only under the right that it was drawn with."""
        draw = sync_to_async(draw_session, thread_sensitive=True)
        drawn = await draw(viewer.actor, session_pk, tab, zone)
        if drawn.belonging != expected:
            self._remember(session_pk, drawn.belonging)
            raise OwnerChanged
        return drawn.html

    def _key(
        self, what: tuple[str, ...], viewer: Viewer, session_pk: int, zone: ZoneInfo | None
    ) -> tuple[object, ...] | None:
        """None for a session that is not known here, or not the viewer's to see."""
        belonging = self._belongings.get(session_pk)
        team = next((team for team in viewer.teams if belonging and team.pk == belonging.team_pk), None)
        if belonging is None or team is None:
            return None
        reads_content = access.reads_content_of(viewer.actor, team, belonging.owner_pk)
        return what, session_pk, self.board.find_number(session_pk, [team]), reads_content, zone

    def _remember(self, session_pk: int, belonging: Belonging) -> None:
        if len(self._belongings) >= MOST_REMEMBERED:
            self._belongings.clear()
        self._belongings[session_pk] = belonging

    def forget(self) -> None:
        self._belongings.clear()
        self.parts.forget()

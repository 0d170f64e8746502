"""Who looks at a page that is open: found by the cookie, remembered for seconds, so that rights end within seconds."""

import asyncio
import time
from collections import OrderedDict
from dataclasses import dataclass
from importlib import import_module

from asgiref.sync import sync_to_async
from django.conf import settings
from django.contrib.auth import get_user
from django.db import close_old_connections, connection
from django.http import HttpRequest

from dashboard import access
from dashboard.access import Actor
from dashboard.models import Team, User

TRUSTED_SECONDS = 3.0
MOST_REMEMBERED = 2000


@dataclass(frozen=True)
class Viewer:
    user: User
    actor: Actor

    @property
    def teams(self) -> list[Team]:
        return access.teams(self.actor)


class Viewers:
    def __init__(self, *, trusted_seconds: float = TRUSTED_SECONDS) -> None:
        self.trusted_seconds = trusted_seconds
        self._found: OrderedDict[str, tuple[float, Viewer | None]] = OrderedDict()
        self._reading: dict[str, asyncio.Task[Viewer | None]] = {}

    async def find(self, session_key: str) -> Viewer | None:
        """None for who is not signed in any more. Raises DatabaseError."""
        if not session_key:
            return None
        now = time.monotonic()
        found_at, viewer = self._found.get(session_key, (0.0, None))
        if found_at and now - found_at < self.trusted_seconds:
            return viewer
        reading = self._reading.get(session_key)
        if reading is None:
            reading = self._reading[session_key] = asyncio.ensure_future(self._read(session_key))
        # Whoever asks meanwhile waits for the same answer, and one who leaves does not take it away from the others.
        return await asyncio.shield(reading)

    async def _read(self, session_key: str) -> Viewer | None:
        try:
            began_at = time.monotonic()
            viewer = await sync_to_async(read_viewer, thread_sensitive=True)(session_key)
            self._found[session_key] = began_at, viewer
            self._found.move_to_end(session_key)
            if len(self._found) > MOST_REMEMBERED:
                self._found.popitem(last=False)
        finally:
            del self._reading[session_key]
        return viewer

    def forget(self) -> None:
        self._found.clear()


def read_viewer(session_key: str) -> Viewer | None:
    """As the middleware does for a page."""
    request = HttpRequest()
    request.session = import_module(settings.SESSION_ENGINE).SessionStore(session_key)
    try:
        user = get_user(request)
        return Viewer(user, access.person(user)) if isinstance(user, User) and user.is_active else None
    finally:
        if not connection.in_atomic_block:
            close_old_connections()  # no request ends here that would do it

"""Who calls: a key with the proxy scope, or a program on the developer's own machine. Asked off the event loop."""

import asyncio
import hashlib
import time
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from django.conf import settings
from django.db import DatabaseError, InterfaceError, connection
from django.utils import timezone

from dashboard import access
from dashboard.access import Act
from dashboard.accounts.keys import KeyRefused, find_key
from dashboard.accounts.local import ensure_local_owner
from dashboard.models import Membership, Role
from dashboard.policies.in_force import find_policy
from dashboard.policies.proxy_additions import NO_ADDITIONS, ProxyAdditions
from dashboard.proxy.refusals import KEYS_UNREADABLE, NO_RIGHT, UNKNOWN_KEY, Refusal

# A revoked key must stop within a second (S7): counted from before it was looked up.
KEPT_SECONDS = 0.8
# While the database cannot be read, a key that was good goes on: nobody can revoke one then either.
KEPT_WITHOUT_DATABASE_SECONDS = 300.0
PATIENCE_SECONDS = 2.0  # with a database that does not answer; a call with an unknown key is put off then
MOST_KEPT = 4096
LOCAL = b"local"


@dataclass(frozen=True, slots=True)
class Caller:
    """Whose call it is; `key_pk` is None for this machine's own programs."""

    team_pk: int
    owner_pk: int | None
    key_pk: int | None
    additions: ProxyAdditions = NO_ADDITIONS
    calls_per_minute: int | None = None  # the key's own limit; None: the installation's, 0: any number

    @property
    def purse(self) -> tuple[int, int | None]:
        """What the quota is counted by."""
        return self.team_pk, self.key_pk


Answer = Caller | Refusal


class Callers:
    """Remembers each answer for less than a second; many calls with one key ask the database once."""

    def __init__(self, *, kept_seconds: float = KEPT_SECONDS) -> None:
        self._kept_seconds = kept_seconds
        self._known: OrderedDict[bytes, tuple[float, Answer]] = OrderedDict()
        self._asked: dict[bytes, asyncio.Task[Answer]] = {}
        # One thread: it keeps its database connection, and more could not look up faster than calls come.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="proxy-callers")

    async def find_by_key(self, text: str) -> Answer:
        return await self._find(hashlib.sha256(text.encode("utf-8", "replace")).digest(), lambda: look_up_key(text))

    async def find_local(self) -> Answer:
        return await self._find(LOCAL, look_up_local)

    async def _find(self, name: bytes, look_up: Callable[[], Answer]) -> Answer:
        kept = self._known.get(name)
        if kept is not None and time.monotonic() - kept[0] < self._kept_seconds:
            return kept[1]
        task = self._asked.get(name)
        if task is None:
            task = self._asked[name] = asyncio.create_task(self._ask(name, look_up))
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                return await asyncio.shield(task)
        except TimeoutError:
            return self._recall(name)

    async def _ask(self, name: bytes, look_up: Callable[[], Answer]) -> Answer:
        began = time.monotonic()
        try:
            answer = await asyncio.get_running_loop().run_in_executor(self._thread, _without_old_connection, look_up)
        except (DatabaseError, InterfaceError):
            return self._recall(name)
        finally:
            del self._asked[name]
        self._known[name] = (began, answer)
        self._known.move_to_end(name)
        if len(self._known) > MOST_KEPT:
            self._known.popitem(last=False)
        return answer

    def _recall(self, name: bytes) -> Answer:
        kept = self._known.get(name)
        if kept is None:
            return KEYS_UNREADABLE
        # This machine's own programs have no key that could have been revoked meanwhile.
        is_usable = name == LOCAL or time.monotonic() - kept[0] < KEPT_WITHOUT_DATABASE_SECONDS
        return kept[1] if is_usable else KEYS_UNREADABLE

    def close(self) -> None:
        self._thread.submit(connection.close)
        self._thread.shutdown(wait=False)


def _without_old_connection(look_up: Callable[[], Answer]) -> Answer:
    """A connection that broke while nobody called is replaced by a new one, once."""
    try:
        return look_up()
    except (DatabaseError, InterfaceError):
        connection.close()
        return look_up()


def look_up_key(text: str) -> Answer:
    try:
        key = find_key(text, now=timezone.now())
    except KeyRefused:
        return UNKNOWN_KEY
    if not access.program(key).may(Act.PROXY, key.team):
        return NO_RIGHT
    return Caller(
        key.team_id,
        key.owner_id,
        key.pk,
        additions=find_policy(key.team).proxy_additions,
        calls_per_minute=key.requests_per_minute,
    )


def look_up_local() -> Answer:
    if not settings.LOCAL_MODE:
        return UNKNOWN_KEY
    # Read first: making sure takes the write lock, which somebody may hold for long.
    owners = Membership.objects.filter(team__is_local=True, role=Role.OWNER, user__is_active=True)
    owners = owners.select_related("team").order_by("id")
    if not owners.exists():
        ensure_local_owner()
    first = owners[0]
    return Caller(first.team_id, first.user_id, None, find_policy(first.team).proxy_additions)

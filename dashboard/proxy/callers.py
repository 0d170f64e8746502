"""Who calls: a key with the proxy scope, or a program on the developer's own machine. Asked off the event loop."""

import hashlib
from dataclasses import dataclass

from django.conf import settings
from django.utils import timezone

from dashboard import access
from dashboard.access import Act
from dashboard.accounts.keys import KeyRefused, find_key
from dashboard.accounts.local import ensure_local_owner
from dashboard.accounts.recent_answers import KEPT_SECONDS, RecentAnswers
from dashboard.models import Membership, Role
from dashboard.policies.in_force import find_policy
from dashboard.policies.proxy_additions import NO_ADDITIONS, ProxyAdditions
from dashboard.proxy.refusals import KEYS_UNREADABLE, NO_RIGHT, UNKNOWN_KEY, Refusal
from dashboard.proxy.threads import AccountName

# While the database cannot be read, a key that was good goes on: nobody can revoke one then either.
KEPT_WITHOUT_DATABASE_SECONDS = 300.0
LOCAL = b"local"


@dataclass(frozen=True, slots=True)
class Caller:
    """Whose call it is; `key_pk` is None for this machine's own programs."""

    team_pk: int
    owner_pk: int | None  # None: a collector key
    key_pk: int | None
    additions: ProxyAdditions = NO_ADDITIONS
    calls_per_minute: int | None = None  # the key's own limit; None: the installation's, 0: any number

    @property
    def account(self) -> AccountName:
        return self.team_pk, self.owner_pk

    @property
    def purse(self) -> tuple[int, int | None]:
        """What the quota is counted by."""
        return self.team_pk, self.key_pk


Answer = Caller | Refusal


class Callers(RecentAnswers[Answer]):
    """Calls wait for the database no longer than a moment, and go on without it where they can."""

    def __init__(self, *, kept_seconds: float = KEPT_SECONDS) -> None:
        super().__init__(unreadable=KEYS_UNREADABLE, kept_seconds=kept_seconds, thread_name="proxy-callers")

    async def find_by_key(self, text: str) -> Answer:
        return await self.find(hashlib.sha256(text.encode("utf-8", "replace")).digest(), lambda: look_up_key(text))

    async def find_local(self) -> Answer:
        return await self.find(LOCAL, look_up_local)

    def may_recall(self, name: bytes, age_seconds: float) -> bool:
        # This machine's own programs have no key that could have been revoked meanwhile.
        return name == LOCAL or age_seconds < KEPT_WITHOUT_DATABASE_SECONDS


def look_up_key(text: str) -> Answer:
    try:
        key = find_key(text, now=timezone.now())
    except KeyRefused:
        return UNKNOWN_KEY
    if not access.program(key).may(Act.PROXY, key.team):
        return NO_RIGHT
    return Caller(
        key.team_id,
        None if key.is_collector else key.owner_id,
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

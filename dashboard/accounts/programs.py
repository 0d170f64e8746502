"""Programs that call with a key."""

from datetime import datetime

from dashboard import access
from dashboard.access import Actor
from dashboard.accounts import keys
from dashboard.accounts.key_quotas import QUOTAS
from dashboard.accounts.keys import KeyRefused


def find_program(key_text: str, *, size_bytes: int, now: datetime) -> Actor:
    """Return the actor of a key. Raises KeyRefused for one that is unknown, revoked or expired, or whose owner left the
    team, and QuotaExceeded for one that sends too much; `size_bytes` is what it sends now."""
    key = keys.find_key(key_text.strip(), now=now)
    actor = access.program(key)
    if not actor.standings:
        raise KeyRefused("The owner of this API key left the team, or their account is closed.")
    keys.note_use(key, now=now)
    QUOTAS.take(key, size_bytes, now=now)
    return actor

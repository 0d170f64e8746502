"""Programs that call with a key."""

from datetime import datetime

from dashboard import access
from dashboard.access import Actor
from dashboard.accounts import keys
from dashboard.accounts.key_quotas import QUOTAS


def find_program(key_text: str, *, size_bytes: int, now: datetime) -> Actor | None:
    """None for a key that is unknown, revoked or expired, or whose owner left the team. Raises QuotaExceeded for one
    that sends too much; `size_bytes` is what it sends now."""
    key = keys.find_key(key_text.strip(), now=now)
    if key is None:
        return None
    actor = access.program(key)
    if not actor.standings:
        return None
    keys.note_use(key, now=now)
    QUOTAS.take(key, size_bytes, now=now)
    return actor

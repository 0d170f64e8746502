"""API keys: made, found by what a program sends, revoked."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Q

from dashboard.accounts import audit, tokens
from dashboard.accounts.refusals import Refused
from dashboard.kept_query import KeptQuery, Open, column_names, make_object
from dashboard.models import ApiKey, AuditAction, Scope, Team, User

NO_KEY = "No API key provided. Send it in the header Authorization: Bearer plk_…"
CHALLENGE = 'Bearer realm="Plimsoll"'  # the header WWW-Authenticate, which HTTP requires with every 401
SHARED_SCOPES = "Collector keys are shared, so they can only have the scopes ingest and proxy."
PREFIX_LENGTH = len(tokens.KEY) + 10
# `last_used_at` is for people, who read minutes; a write for every request would be the busiest row of the database.
LAST_USED_EVERY = timedelta(minutes=1)
_KEY, _TEAM, _OWNER = column_names(ApiKey), column_names(Team, "team__"), column_names(User, "owner__")
# Every request of a program asks it.
_FOUND = KeptQuery(lambda: ApiKey.objects.filter(prefix=Open("prefix")).values_list(*_KEY, *_TEAM, *_OWNER)[:1])


class KeyRefused(Exception):
    """The key opens nothing; the message is for the program that sent it."""


@transaction.atomic
def create_key(  # noqa: PLR0913 (every column that is decided when a key is made)
    team: Team,
    owner: User,
    *,
    name: str,
    scopes: Sequence[Scope],
    expires_at: datetime | None,
    by: User | None,
    is_collector: bool = False,
) -> tuple[ApiKey, str]:
    """The key's row, and the key itself: the only time it can be shown. Raises Refused."""
    if team.is_demo:
        raise Refused(
            "Keys are disabled in the demo team, because removing the demo would delete everything sent with them."
        )
    if not scopes:
        raise Refused("Select at least one scope.")
    if Scope.CONTENT in scopes and Scope.READ not in scopes:
        raise Refused("The content scope also requires the read scope.")
    if is_collector and not set(scopes) <= {Scope.INGEST, Scope.PROXY}:
        raise Refused(SHARED_SCOPES)
    text = tokens.make_token(tokens.KEY)
    key = ApiKey.objects.create(
        team=team,
        owner=owner,
        name=name,
        prefix=text[:PREFIX_LENGTH],
        digest=tokens.digest(text),
        scopes=[scope.value for scope in Scope if scope in scopes],
        expires_at=expires_at,
        is_collector=is_collector,
    )
    audit.note(team, AuditAction.KEY_CREATED, by=by, subject=key, owner=owner.username, scopes=list(key.scopes))
    if is_collector:
        audit.note(team, AuditAction.KEY_MARKED, by=by, subject=key)
    return key, text


@transaction.atomic
def mark_collector(key: ApiKey, *, is_collector: bool, by: User) -> None:
    """Decide whether the key sends for many people or for its owner. Sessions it created before stay as they are."""
    if is_collector and not key.may_collect:
        raise Refused(SHARED_SCOPES)
    if ApiKey.objects.filter(pk=key.pk, is_collector=not is_collector).update(is_collector=is_collector):
        action = AuditAction.KEY_MARKED if is_collector else AuditAction.KEY_UNMARKED
        audit.note(key.team, action, by=by, subject=key)


@transaction.atomic
def revoke_key(key: ApiKey, *, by: User, now: datetime) -> None:
    if ApiKey.objects.filter(pk=key.pk, revoked_at=None).update(revoked_at=now):
        audit.note(key.team, AuditAction.KEY_REVOKED, by=by, subject=key)


@transaction.atomic
def limit_key(key: ApiKey, *, requests_per_minute: int | None, mib_per_minute: int | None, by: User) -> None:
    """None: the installation's limit; 0: any number."""
    limits = {"requests_per_minute": requests_per_minute, "mib_per_minute": mib_per_minute}
    before = {name: getattr(key, name) for name in limits}
    if limits != before:
        ApiKey.objects.filter(pk=key.pk).update(**limits)
        told = {name: "default" if value is None else value or "unlimited" for name, value in limits.items()}
        audit.note(key.team, AuditAction.KEY_LIMITED, by=by, subject=key, **told)


def find_key(text: str, *, now: datetime) -> ApiKey:
    """Return the key of this text, or raise KeyRefused.

    It is read from the database each time, so that a revoked key stops at once. That a key has expired or was revoked
    is said only to a caller that sent all of it.
    """
    key = _read_key(text[:PREFIX_LENGTH]) if tokens.is_well_formed(text, tokens.KEY) else None
    if key is None or not tokens.matches(text, key.digest):
        raise KeyRefused("Unknown API key. Check that it was copied completely.")
    if key.revoked_at is not None:
        raise KeyRefused("This API key was revoked. Create a new one on the team's API keys page.")
    if key.expires_at is not None and key.expires_at <= now:
        raise KeyRefused(
            f"This API key expired on {key.expires_at:%Y-%m-%d}. Create a new one on the team's API keys page."
        )
    return key


def _read_key(prefix: str) -> ApiKey | None:
    """With its team and its owner."""
    for row in _FOUND.read(prefix=prefix):
        key = make_object(ApiKey, row[: len(_KEY)])
        key.team = make_object(Team, row[len(_KEY) : len(_KEY) + len(_TEAM)])
        key.owner = make_object(User, row[len(_KEY) + len(_TEAM) :])
        return key
    return None


def note_use(key: ApiKey, *, now: datetime) -> None:
    if key.last_used_at is None or now - key.last_used_at >= LAST_USED_EVERY:
        stale = Q(last_used_at=None) | Q(last_used_at__lte=now - LAST_USED_EVERY)
        ApiKey.objects.filter(stale, pk=key.pk).update(last_used_at=now)

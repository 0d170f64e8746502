"""Conversations of clients that do not name them, as the database knows them: for those that a recorder has forgotten,
or never saw."""

from collections.abc import Sequence

from dashboard.models import AgentSession, ApiCall, DeletedSession, ShapeUse
from dashboard.proxy.conversation_owners import StoredSession


def look_up(team_pk: int, names: Sequence[str], call_id: str) -> dict[str, StoredSession]:
    """Deleted ones too: what goes on with them stays deleted under their name."""
    named = {"team_id": team_pk, "external_id__in": names}
    keys = dict(AgentSession.objects.filter(**named).values_list("pk", "external_id"))
    stored = dict.fromkeys(
        DeletedSession.objects.filter(**named).values_list("external_id", flat=True), StoredSession(frozenset(), False)
    )
    if not keys:
        return stored
    shapes: dict[int, set[str]] = {pk: set() for pk in keys}
    for pk, digest in ShapeUse.objects.filter(session__in=keys).values_list("session_id", "shape__digest"):
        shapes[pk].add(digest)
    holding = set(ApiCall.objects.filter(session__in=keys, call_id=call_id).values_list("session_id", flat=True))
    return stored | {name: StoredSession(frozenset(shapes[pk]), pk in holding) for pk, name in keys.items()}

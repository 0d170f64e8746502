"""Deleted sessions stay away: what their files and programs still send is counted and let go.

What the team's retention or an undo deleted comes back when its own account goes on with it; what a person deleted,
when an admin allows it again.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from django.db import connection

from dashboard.ingest.drawn import DrawnSession
from dashboard.ingest.observed import ObservedSession, Prepared
from dashboard.ingest.picture.columns import fit_id
from dashboard.ingest.record import TooBusy
from dashboard.models import AgentSession, DeletedSession, DeletionReason, Sender, Team

DELETED = "session was deleted"
_AT_ONCE = 500
_FIND = "SELECT external_id FROM {table} WHERE team_id = %s AND external_id IN ({places})"


def leave_deleted(team: Team, prepared: Prepared, sender: Sender) -> Prepared:
    """Without the sessions that were deleted, their lines counted as dropped."""
    stones = find_deleted(team, [fit_id(observed.external_id) for observed in prepared.sessions])
    if not stones:
        return prepared
    kept, drops = [], Counter(prepared.drops)
    for observed in prepared.sessions:
        stone = stones.get(fit_id(observed.external_id))
        if stone is None or _goes_on(stone, observed, sender):
            kept.append(observed)
        else:
            drops[DELETED] += observed.item_count
    return replace(prepared, sessions=tuple(kept), drops=dict(drops))


def leave_deleted_drawn(team: Team, drawn: Sequence[DrawnSession], sender: Sender) -> tuple[list[DrawnSession], int]:
    """The others, and how many lines were let go."""
    stones = find_deleted(team, [session.external_id for session in drawn])
    if not stones:
        return list(drawn), 0
    kept, line_count = [], 0
    for session in drawn:
        stone = stones.get(session.external_id)
        if stone is None or _goes_on(stone, session.observe_again(), sender):
            kept.append(session)
        else:
            line_count += session.line_count
    return kept, line_count


def find_deleted(team: Team, names: Sequence[str]) -> Mapping[str, DeletedSession]:
    """By external id. Asked for everything that arrives, so without the ORM until something is found."""
    found: list[str] = []
    with connection.cursor() as cursor:
        for start in range(0, len(names), _AT_ONCE):
            batch = names[start : start + _AT_ONCE]
            places = ", ".join(["%s"] * len(batch))
            cursor.execute(_FIND.format(table=DeletedSession._meta.db_table, places=places), [team.pk, *batch])
            found += [name for (name,) in cursor.fetchall()]
    if not found:
        return {}
    return {stone.external_id: stone for stone in DeletedSession.objects.filter(team=team, external_id__in=found)}


def _goes_on(stone: DeletedSession, observed: ObservedSession, sender: Sender) -> bool:
    """Whether it was deleted for its age or by an undo and its account sends newer lines; then the stone is taken away.

    Raises TooBusy while its rows are still being removed: what joined them would go with them."""
    if not stone.may_be_revived_by(sender):
        return False
    if stone.reason == DeletionReason.PERSON or (_find_newest(observed) or stone.deleted_at) <= stone.deleted_at:
        return False
    left = AgentSession.objects.filter(team=stone.team_id, external_id=stone.external_id, last_at__lt=stone.deleted_at)
    if left.exists():
        raise TooBusy(stone.external_id)
    stone.delete()
    return True


def _find_newest(observed: ObservedSession) -> datetime | None:
    times: Iterable[datetime] = (line.fact.at for line in observed.lines if line.fact.at)
    return max(times, default=None)

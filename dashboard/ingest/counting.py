"""Which copy of a call counts: a resumed or forked session repeats calls of its origin, and money is counted once.

The fullest copy counts (a fork may hold half an answer), then that of the session that began first, then that of one
that was not forked: a fork that repeats its origin from the first line on began when that did. Copies compete inside
one account only: a copy that counts is never displaced by what another account sends.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from django.db import connection
from django.db.models import F, QuerySet

from dashboard.ingest.picture.columns import Row
from dashboard.ingest.picture.drawing import SessionPicture
from dashboard.ingest.picture.totals import add_totals
from dashboard.ingest.rows import sync_rows
from dashboard.models import AgentSession, ApiCall, CacheBreak, ObservedCompaction, SessionHour, Thread

_NO_TIME = datetime.max.replace(tzinfo=UTC)
_BATCH = 500  # ids in one query
_Weight = tuple[int, datetime, bool, str]  # the smallest counts


@dataclass(frozen=True)
class Claim:
    """A session's word in the question whose copy of a call counts."""

    team_pk: int
    session_pk: int | None  # None: it is about to be written
    owner_pk: int | None
    external_id: str
    started_at: datetime | None
    forked_from: str
    outputs: Mapping[str, int]  # call id -> output tokens, of calls that do not count here yet


@dataclass(frozen=True)
class Counted:
    """Calls of a session that count elsewhere, and copies elsewhere that no longer do."""

    uncounted: frozenset[str]
    beaten: dict[int, set[str]]  # session -> call ids


def decide_counting(claim: Claim) -> Counted:
    """Only a copy that counts now can be a rival: what lost once stays beaten by whoever counts. Inside a transaction,
    which holds the sessions that are beaten from then on."""
    held: set[int] = set()
    while not (counted := weigh_copies(claim)).beaten.keys() <= held:
        held |= _hold_sessions(counted.beaten.keys())
    for session_pk, call_ids in counted.beaten.items():
        _mark(session_pk, call_ids, is_counted=False)
    return counted


def weigh_copies(claim: Claim) -> Counted:
    """As things stand; only who holds the sessions can act on it."""
    uncounted, beaten = set(), dict[int, set[str]]()
    for call_id, rival, rival_session, rival_owner in _list_rivals(claim):
        mine = _weigh(claim.outputs[call_id], claim.started_at, claim.forked_from, claim.external_id)
        if mine < rival and rival_owner == claim.owner_pk:
            beaten.setdefault(rival_session, set()).add(call_id)
        else:
            uncounted.add(call_id)
    return Counted(frozenset(uncounted), beaten)


def _hold_sessions(pks: Iterable[int]) -> set[int]:
    """Who writes one of them now is waited for: then its rows may say something else, so they are read once more. Else
    totals would be added up from rows that are being replaced, and written over the right ones."""
    wanted = set(pks)
    list(AgentSession.objects.select_for_update().filter(pk__in=wanted).order_by("pk").values_list("pk"))
    return wanted


def find_counted(team_pk: int, call_ids: Iterable[str]) -> set[str]:
    """Those of the calls of which a copy counts. Without the ORM, which takes longer to ask than the database."""
    found: set[str] = set()
    with connection.cursor() as cursor:
        for batch in _cut(call_ids):
            places = ", ".join(["%s"] * len(batch))
            cursor.execute(_COUNTED.format(table=ApiCall._meta.db_table, places=places), [team_pk, *batch])
            found.update(row[0] for row in cursor.fetchall())
    return found


_COUNTED = "SELECT call_id FROM {table} WHERE team_id = %s AND is_counted AND call_id IN ({places})"


def hand_over(team_pk: int, call_ids: Collection[str]) -> set[int]:
    """These calls are gone: of those that counted there, the best copy that is left counts from now on. Returns whose
    totals changed. Inside a transaction, which holds these sessions from then on."""
    held: set[int] = set()
    while not (changed := _find_heirs(team_pk, call_ids)).keys() <= held:
        held |= _hold_sessions(changed.keys())
    for session_pk, names in changed.items():
        _mark(session_pk, names, is_counted=True)
    return set(changed)


def _find_heirs(team_pk: int, call_ids: Collection[str]) -> dict[int, set[str]]:
    heirs: dict[str, tuple[_Weight, int]] = {}
    for batch in _cut(set(call_ids) - find_counted(team_pk, call_ids)):
        copies = ApiCall.objects.filter(team_id=team_pk, is_counted=False, call_id__in=batch)
        for call_id, session_pk, *copy in copies.values_list(*_COPY):
            heir = (_weigh(*copy), session_pk)
            heirs[call_id] = min(heirs.get(call_id, heir), heir)
    changed: dict[int, set[str]] = {}
    for call_id, (_, session_pk) in heirs.items():
        changed.setdefault(session_pk, set()).add(call_id)
    return changed


def total_again(session_pk: int) -> None:
    """Totals of a session from its rows, after calls of it began or ceased to count. It is held since then."""
    session = AgentSession.objects.get(pk=session_pk)
    calls = _read_rows(ApiCall.objects.filter(session=session), "call_id", _CALL_COLUMNS)
    picture = SessionPicture(
        session={},
        threads={name: {} for name in Thread.objects.filter(session=session).values_list("agent_id", flat=True)},
        calls=calls,
        losses=_read_rows(CacheBreak.objects.filter(session=session), "call_id", _LOSS_COLUMNS),
        compactions=_read_rows(
            ObservedCompaction.objects.filter(session=session), "entry_uuid", ("kind", "is_mid_task")
        ),
    )
    totals, threads, hours = add_totals(picture, {name for name, row in calls.items() if not row["is_counted"]})
    AgentSession.objects.filter(pk=session_pk).update(**totals, version=F("version") + 1)
    for agent_id, row in threads.items():
        Thread.objects.filter(session=session, agent_id=agent_id).update(**row)
    owner: Row = {"session": session.pk, "team": session.team_id}
    sync_rows(SessionHour.objects.filter(session=session), "hour_at", hours, fixed=owner, is_new=False)


_COPY = (
    "call_id",
    "session_id",
    "output_tokens",
    "session__started_at",
    "session__forked_from",
    "session__external_id",
)
_LOSS_COLUMNS = ("agent_id", "kind", "lost_usd", "avoidable_usd")
_CALL_COLUMNS = (
    "agent_id", "at", "is_counted", "input_tokens", "read_tokens", "write_5m_tokens", "write_1h_tokens",
    "output_tokens", "cost_usd",
)  # fmt: skip


def _list_rivals(claim: Claim) -> Iterator[tuple[str, _Weight, int, int | None]]:
    """Yield call, weight, session and owner of each copy that counts elsewhere."""
    for batch in _cut(claim.outputs):
        counted = ApiCall.objects.filter(team_id=claim.team_pk, is_counted=True, call_id__in=batch)
        others = counted.exclude(session_id=claim.session_pk) if claim.session_pk else counted
        for call_id, session_pk, *copy, owner_pk in others.values_list(*_COPY, "session__owner_id"):
            yield call_id, _weigh(*copy), session_pk, owner_pk


def _cut(names: Iterable[str]) -> Iterator[list[str]]:
    listed = list(names)
    return (listed[start : start + _BATCH] for start in range(0, len(listed), _BATCH))


def _weigh(output_tokens: int, started_at: datetime | None, forked_from: str, external_id: str) -> _Weight:
    return -output_tokens, started_at or _NO_TIME, forked_from != "", external_id


def _mark(session_pk: int, call_ids: Iterable[str], *, is_counted: bool) -> None:
    for batch in _cut(call_ids):
        ApiCall.objects.filter(session_id=session_pk, call_id__in=batch).update(is_counted=is_counted)
        CacheBreak.objects.filter(session_id=session_pk, call_id__in=batch).update(is_counted=is_counted)


def _read_rows(rows: QuerySet[Any], key: str, columns: tuple[str, ...]) -> dict[str, Row]:
    return {row[0]: dict(zip(columns, row[1:], strict=True)) for row in rows.values_list(key, *columns)}

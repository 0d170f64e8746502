"""Cache breaks and expected rebuilds as rows of lists: filtered, paged by place, with their cause in words."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal

from django.db.models import Count, Q, QuerySet, Sum

from compaction.cache.break_places import BreakPlace, describe_place, name_place
from compaction.cache.causes import CAUSES, Avoidability, Cause, CauseInfo, Grade
from compaction.context.cache_ttl import CacheTtl
from dashboard import access
from dashboard.access import Actor
from dashboard.models import AgentSession, CacheBreak, LossKind
from dashboard.pages.break_titles import title_break
from dashboard.pages.keyset import Place, take_page
from dashboard.pages.thread_names import name_by_id, name_threads
from dashboard.words import say_usd

PAGE_SIZE = 50

# Below either, a loss is minor: counted in every sum and export, but lists fold it behind one line.
MINOR_TOKENS, MINOR_USD = 2_000, Decimal("0.05")
MINOR_WORDS = f"under {MINOR_TOKENS:,} tokens re-written, or under ${MINOR_USD}"
_MINOR = Q(recreated_tokens__lt=MINOR_TOKENS) | Q(lost_usd__lt=MINOR_USD)

# What a grade is called on a badge, and what it means.
GRADES: Mapping[Grade, tuple[str, str]] = {
    Grade.API: ("API report", "The API response names this reason."),
    Grade.CLIENT: ("client report", "The client logged this reason."),
    Grade.REQUEST: ("request diff", "Both requests were recorded and compared."),
    Grade.INFERRED: ("inferred", "Derived from timing, models and token counts; the requests were not recorded."),
    Grade.UNKNOWN: ("unknown", "Nothing in the recorded data explains it."),
}
_UNKNOWN_NOTE = CAUSES[Cause.UNEXPLAINED]
_HOUR_SECONDS = CacheTtl.ONE_HOUR.seconds
_UNKNOWN_NET = "A 1-hour cache lifetime would have avoided this; its extra cost is unknown."


@dataclass(frozen=True)
class LossFilter:
    """What a list is cut to; empty values cut nothing."""

    team: str = ""
    kind: str = ""
    cause: str = ""
    since: datetime | None = None
    until: datetime | None = None  # itself left out
    project: str = ""
    developer: str = ""
    model: str = ""
    grade: str = ""
    is_avoidable: bool | None = None
    is_counted: bool | None = None
    is_minor: bool | None = None
    session_id: int | None = None


@dataclass(frozen=True)
class LossRow:
    """One call that lost its cache."""

    id: int
    session_id: int
    external_id: str
    session_name: str
    project: str
    developer: str
    agent_id: str
    thread: str
    kind: str
    at: datetime
    call_number: int  # in its thread
    model: str
    cause: str
    title: str
    detail: str
    grade: str
    grade_words: str
    grade_meaning: str
    is_avoidable: bool
    outlook: str
    gap_seconds: float | None
    ttl: str
    expected_tokens: int
    read_tokens: int
    lost_tokens: int
    recreated_tokens: int
    lost_usd: Decimal | None
    avoidable_usd: Decimal | None
    is_counted: bool
    is_minor: bool
    place: str  # a code of BreakPlace; empty where it was judged by a version that did not look
    where: str
    short_where: str

    @property
    def is_break(self) -> bool:
        return self.kind == LossKind.BREAK

    @property
    def avoidable_sentence(self) -> str:
        """Say how the net came about; empty where it is the gross, or nothing was avoidable."""
        if self.avoidable_usd is None and self.is_avoidable:
            return "" if self.lost_usd is None else _UNKNOWN_NET
        if self.avoidable_usd is None:
            is_late = (
                self.is_break and self.outlook == Avoidability.AVOIDABLE and (self.gap_seconds or 0) > _HOUR_SECONDS
            )
            return "This pause was longer than 1 hour, the longest cache lifetime available." if is_late else ""
        if self.avoidable_usd == 0:
            return "A 1-hour cache lifetime would have prevented this, but would have cost more than it saved."
        if self.lost_usd is None or self.avoidable_usd == self.lost_usd:
            return ""
        return (
            f"A 1-hour cache lifetime would have prevented this. Its cache writes would have cost "
            f"{say_usd(self.lost_usd - self.avoidable_usd)} more, which is deducted from the "
            f"{say_usd(self.lost_usd)} lost."
        )


@dataclass(frozen=True)
class LossPage:
    """One page of losses, and where the next one starts."""

    rows: tuple[LossRow, ...]
    next: Place | None


@dataclass(frozen=True)
class MinorSum:
    """Minor losses that a list folds; dollars leave out those without a known price."""

    count: int
    lost_usd: Decimal


@dataclass(frozen=True)
class CauseTotal:
    """What one cause cost a session; dollars are None where no loss of it has a known price."""

    title: str
    count: int
    lost_tokens: int
    lost_usd: Decimal | None
    avoidable_usd: Decimal | None


def find_cause_note(cause: str) -> CauseInfo:
    """A cause that this version does not know is unexplained."""
    return CAUSES[Cause(cause)] if cause in CAUSES else _UNKNOWN_NOTE


def list_losses(actor: Actor, wanted: LossFilter, *, before: Place | None = None, size: int = PAGE_SIZE) -> LossPage:
    """Newest first, over all sessions the actor may see. One query."""
    found = find_losses(actor, wanted).select_related("session", "session__team")
    rows, following = take_page(found, before, size)
    return LossPage(
        tuple(
            make_row(
                row,
                session_name=name_session(row.session, reads_content=access.reads_content(actor, row.session)),
                thread=name_by_id(row.agent_id),
            )
            for row in rows
        ),
        following,
    )


def sum_minor(actor: Actor, wanted: LossFilter) -> MinorSum:
    """Return what a list without minor losses leaves out. One query."""
    return _sum_minor(find_losses(actor, replace(wanted, is_minor=True)))


def sum_session_minor(session: AgentSession, kind: LossKind) -> MinorSum:
    """Return what the list of a session leaves out. One query."""
    return _sum_minor(CacheBreak.objects.filter(_MINOR, session=session, kind=kind))


def _sum_minor(losses: QuerySet[CacheBreak]) -> MinorSum:
    sums = losses.order_by().aggregate(count=Count("id"), usd=Sum("lost_usd"))
    return MinorSum(sums["count"], sums["usd"] or Decimal(0))


def list_session_losses(
    session: AgentSession,
    kind: LossKind,
    *,
    reads_content: bool,
    with_minor: bool,
    before: Place | None = None,
    size: int = PAGE_SIZE,
) -> LossPage:
    """One kind of a session's losses, newest first; sub-agents by name. Two queries."""
    threads = name_threads(session.pk, reads_content=reads_content)
    losses = CacheBreak.objects.filter(session=session, kind=kind)
    rows, following = take_page(losses if with_minor else losses.exclude(_MINOR), before, size)
    for row in rows:
        row.session = session
    name = name_session(session, reads_content=reads_content)
    found = tuple(
        make_row(row, session_name=name, thread=threads.get(row.agent_id) or name_by_id(row.agent_id)) for row in rows
    )
    return LossPage(found, following)


def total_causes(session: AgentSession) -> tuple[CauseTotal, ...]:
    """A session's breaks by cause, the dearest first."""
    rows = (
        CacheBreak.objects.filter(session=session, kind=LossKind.BREAK)
        .values("cause")
        .annotate(count=Count("id"), lost=Sum("lost_tokens"), usd=Sum("lost_usd"), net=Sum("avoidable_usd"))
    )
    totals = [
        CauseTotal(find_cause_note(row["cause"]).title, row["count"], row["lost"], row["usd"], row["net"])
        for row in rows
    ]
    return tuple(sorted(totals, key=lambda total: (-(total.lost_usd or 0), -total.lost_tokens, total.title)))


def name_session(session: AgentSession, *, reads_content: bool) -> str:
    """Its title is content; its id is not."""
    return session.title if reads_content and session.title else session.external_id


def make_row(loss: CacheBreak, *, session_name: str, thread: str) -> LossRow:
    note = find_cause_note(loss.cause)
    grade = Grade(loss.grade) if loss.grade in set(Grade) else Grade.UNKNOWN
    words, meaning = GRADES[grade]
    place = _read_place(loss)
    return LossRow(
        id=loss.pk,
        session_id=loss.session_id,
        external_id=loss.session.external_id,
        session_name=session_name,
        project=loss.session.project,
        developer=loss.session.developer,
        agent_id=loss.agent_id,
        thread=thread,
        kind=loss.kind,
        at=loss.at,
        call_number=loss.call_number,
        model=loss.model,
        cause=loss.cause,
        title=title_break(loss.cause, loss.detail, loss.gap_seconds),
        detail=loss.detail,
        grade=grade.value,
        grade_words=words,
        grade_meaning=meaning,
        is_avoidable=loss.is_avoidable,
        outlook=note.outlook.value,
        gap_seconds=loss.gap_seconds,
        ttl=loss.ttl,
        expected_tokens=loss.expected_tokens,
        read_tokens=loss.read_tokens,
        lost_tokens=loss.lost_tokens,
        recreated_tokens=loss.recreated_tokens,
        lost_usd=loss.lost_usd,
        avoidable_usd=loss.avoidable_usd,
        is_counted=loss.is_counted,
        is_minor=_is_minor(loss),
        place=place.value if place else "",
        where=describe_place(place, loss.read_tokens) if place else "",
        short_where=name_place(place, loss.read_tokens) if place else "",
    )


def _is_minor(loss: CacheBreak) -> bool:
    return loss.recreated_tokens < MINOR_TOKENS or (loss.lost_usd is not None and loss.lost_usd < MINOR_USD)


def _read_place(loss: CacheBreak) -> BreakPlace | None:
    """A place that this version does not know is none."""
    code = loss.evidence.get("place")
    return BreakPlace(code) if code in set(BreakPlace) else None


def find_losses(actor: Actor, wanted: LossFilter) -> QuerySet[CacheBreak]:
    """Of the actor's teams alone; a team that is not theirs has none."""
    visible = access.breaks(actor)
    if wanted.team:
        standing = actor.standings.get(wanted.team)
        visible = visible.filter(team=standing.team) if standing else visible.none()
    named = {
        "kind": wanted.kind or None,
        "cause": wanted.cause or None,
        "grade": wanted.grade or None,
        "model": wanted.model or None,
        "session__project": wanted.project or None,
        "session__developer": wanted.developer or None,
        "at__gte": wanted.since,
        "at__lt": wanted.until,
        "is_avoidable": wanted.is_avoidable,
        "is_counted": wanted.is_counted,
        "session_id": wanted.session_id,
    }
    visible = visible.filter(**{name: value for name, value in named.items() if value is not None})
    if wanted.is_minor is not None:
        visible = visible.filter(_MINOR if wanted.is_minor else ~_MINOR)
    return visible

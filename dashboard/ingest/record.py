"""The only writer of sessions, calls, breaks and compactions.

Lines are known by their uuid, calls by their message id: what comes again changes nothing, what comes late or out of
order changes what it affects. The picture is worked out before the transaction, which only writes; if somebody else
wrote the session meanwhile, it is worked out again.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

import msgspec
from django.db import IntegrityError, OperationalError, transaction
from django.db.models import Q, QuerySet

from compaction.context.policy import Policy
from compaction.llm.prices import Price
from compaction.prompt.fingerprint import Fingerprint, read_fingerprint
from compaction.timeline.observations import Observation
from compaction.timeline.order import merge_observations
from dashboard.ingest.counting import Claim, Counted, decide_counting, hand_over, total_again, weigh_copies
from dashboard.ingest.observed import ObservedLine, ObservedSession, ObservedShape
from dashboard.ingest.picture import PolicyAt, SessionPicture, Totals, add_totals, draw_picture
from dashboard.ingest.picture.columns import Row, fit_id
from dashboard.ingest.redaction_counts import count_shapes, recount_session
from dashboard.ingest.rows import (
    HeldRows,
    RowChanges,
    RowPlan,
    carry_out,
    list_columns,
    plan_rows,
    read_held,
    sync_rows,
)
from dashboard.ingest.segments import compress
from dashboard.ingest.stored_lines import StoredLines, append_lines, read_stored_lines
from dashboard.ingest.turns import take_turn
from dashboard.models import (
    COUNTED_SINCE,
    LEVELS,
    AgentSession,
    ApiCall,
    CacheBreak,
    DeletedSession,
    ObservedCompaction,
    PromptShape,
    RedactionCount,
    ResumedFile,
    Sender,
    SessionChange,
    SessionHour,
    ShapeUse,
    Team,
    Thread,
    UnansweredCall,
    User,
    identify_sender,
)

ATTEMPTS = 8
DEADLOCK = "40P01"


@dataclass(frozen=True)
class Source:
    """Which account sent it, how, and what the team's policy makes of it."""

    team: Team
    sender: User | None  # None: a collector, which sends for many people
    name: str
    policy: Policy
    policy_version: int = 0
    policy_at: PolicyAt | None = None  # which one was in force then; None: always this one
    accounts: Mapping[str, User] = field(default_factory=dict)  # of developers that a collector may name
    prices: Mapping[str, Price] = field(default_factory=dict)  # the team's own, by base names of models
    price_version: int = 0

    @property
    def sender_pk(self) -> int | None:
        return self.sender.pk if self.sender else None

    @property
    def identity(self) -> Sender:
        return identify_sender(self.sender, self.name)

    def find_owner(self, developer: str) -> User | None:
        """Return the owner of a session that this source creates."""
        return self.sender or self.accounts.get(developer)


@dataclass(frozen=True)
class Recorded:
    """What a batch did to one session. `lines_crossed`: levels reached that were not reached before."""

    session_pk: int
    external_id: str
    version: int
    is_new: bool = False
    new_line_count: int = 0  # without lines inside other lines
    new_calls: tuple[str, ...] = ()
    new_breaks: tuple[str, ...] = ()
    new_compactions: tuple[str, ...] = ()
    changed_compactions: tuple[str, ...] = ()  # more of them is known now: the summary, what was put back
    lines_crossed: tuple[str, ...] = ()
    also_changed: tuple[int, ...] = ()  # sessions whose totals changed with it
    last_at: datetime | None = None  # when something last happened in it
    level_rank: int = 0  # where it stands now
    context_tokens: int = 0


FollowUp = Callable[[Recorded], None]  # called inside the transaction: what it writes stands or falls with the session


class TooBusy(Exception):
    """Others kept writing the same session; nothing of this batch was written."""


class OtherAccount(Exception):
    """The session belongs to another account; nothing of this batch was written."""


@dataclass(frozen=True)
class _News:
    """What a batch adds to the lines that are stored."""

    session: AgentSession | None
    stored: StoredLines
    lines: dict[str, ObservedLine]


@dataclass(frozen=True)
class _Draft:
    """Everything the transaction writes, worked out from the version of the session it was read at."""

    session: AgentSession | None
    stored: StoredLines
    news: dict[str, ObservedLine]
    picture: SessionPicture
    held: "_Held"
    claim: Claim
    plan: "_Plan"


@dataclass(frozen=True)
class _Held:
    """The many rows of the session as they were read: another version of it has others."""

    calls: HeldRows
    losses: HeldRows


@dataclass(frozen=True)
class _Plan:
    """What follows from which copies of calls count. In a long session it takes longer than a transaction may."""

    uncounted: frozenset[str]
    totals: Totals
    calls: RowPlan
    losses: RowPlan


@dataclass
class _Written:
    """What the transaction found."""

    calls: RowChanges
    breaks: RowChanges
    compactions: RowChanges
    also_changed: set[int] = field(default_factory=set)


def record(source: Source, observed: ObservedSession, follow_up: FollowUp | None = None) -> Recorded:
    """Write one session's lines. Raises OperationalError when the database cannot be written, TooBusy when it is
    fought over, OtherAccount when it is not the sender's; in each case nothing of the batch was kept."""
    with take_turn():
        for _ in range(ATTEMPTS):
            recorded = _try_to_record(source, observed, follow_up)
            if recorded is not None:
                return recorded
    raise TooBusy(observed.external_id)


def project_stored(source: Source, external_id: str, follow_up: FollowUp | None = None) -> Recorded | None:
    """Work a stored session out again from its stored observations. None: it is gone. Raises as `record` does."""
    with take_turn():
        for _ in range(ATTEMPTS):
            session = AgentSession.objects.filter(team=source.team, external_id=external_id).first()
            if session is None:
                return None
            observed = ObservedSession(external_id, ())
            recorded = _try_to_write(source, observed, _News(session, read_stored_lines(session), {}), follow_up)
            if recorded is not None:
                return recorded
    raise TooBusy(external_id)


def _try_to_record(source: Source, observed: ObservedSession, follow_up: FollowUp | None) -> Recorded | None:
    """None when another process wrote the session meanwhile: look again."""
    news = _find_news(source, observed)
    session = news.session
    if session is not None and not news.lines and not _is_new_source(session, source, observed):
        return Recorded(session.pk, session.external_id, session.version)
    return _try_to_write(source, observed, news, follow_up)


def _try_to_write(
    source: Source, observed: ObservedSession, news: _News, follow_up: FollowUp | None
) -> Recorded | None:
    draft = _work_out(source, observed, news)
    try:
        with transaction.atomic():
            recorded = _write(source, observed, draft)
            if recorded is not None and follow_up is not None:
                follow_up(recorded)
            if recorded is not None:
                changed = (recorded.session_pk, *recorded.also_changed)
                SessionChange.objects.note(source.team.pk, changed)
    except IntegrityError:
        return None  # it made the same session, segment or call first
    except OperationalError as error:
        if _is_deadlock(error):
            return None
        raise
    return recorded


def _is_deadlock(error: OperationalError) -> bool:
    """Two sessions that each beat a copy of the other's are held in opposite order: PostgreSQL ends one of the two."""
    return getattr(error.__cause__, "sqlstate", None) == DEADLOCK


def _find_news(source: Source, observed: ObservedSession) -> _News:
    session = AgentSession.objects.filter(team=source.team, external_id=fit_id(observed.external_id)).first()
    # An assignment to another owner raises the version, so the transaction sees what was checked here.
    if session is not None and not session.accepts_telemetry_from(source.identity):
        raise OtherAccount(observed.external_id)
    if session is None and not _may_create(source, fit_id(observed.external_id)):
        raise OtherAccount(observed.external_id)
    stored = read_stored_lines(session)
    arrived = {line.fact.id: line for line in reversed(observed.lines)}
    better = merge_observations(stored.facts, [line.fact for line in observed.lines])
    better = {name: fact for name, fact in better.items() if not _is_same_text(stored.facts.get(name), fact)}
    return _News(session, stored, {name: _find_line(observed, arrived, fact) for name, fact in better.items()})


def _is_same_text(stored: Observation | None, fact: Observation) -> bool:
    """Return whether a line that was read again under other redaction rules is the same: nothing was redacted in it,
    before or now. Such lines are not written again, or every change of a rule would write everything once more."""
    if stored is None or stored.redaction_version == fact.redaction_version or stored.is_redacted or fact.is_redacted:
        return False
    return msgspec.structs.replace(fact, redaction_version=stored.redaction_version) == stored


def _may_create(source: Source, external_id: str) -> bool:
    """Return False for the session of a transcript that Plimsoll wrote for another person to resume."""
    if source.sender is None:
        return True
    written = ResumedFile.objects.filter(team=source.team, external_id=external_id, origin__isnull=False)
    people = written.values_list("written_by", "origin__owner").first()
    return people is None or source.sender.pk in people


def _work_out(source: Source, observed: ObservedSession, news: _News) -> _Draft:
    facts = news.stored.facts | {name: line.fact for name, line in news.lines.items()}
    shapes = _find_shapes(source, news.session, observed, facts.values())
    external_id = fit_id(observed.external_id)
    picture = draw_picture(
        facts.values(),
        external_id=external_id,
        policy=source.policy,
        policy_at=source.policy_at,
        prices=source.prices,
        shapes=shapes,
    )
    picture.session["forked_from"] = picture.session["forked_from"] or _find_origin(
        source.team, external_id, news.session
    )
    held = _read_held(news.session, picture)
    claim = _make_claim(source, observed, news.session, picture, held)
    plan = _make_plan(picture, held, weigh_copies(claim).uncounted)
    return _Draft(news.session, news.stored, news.lines, picture, held, claim, plan)


def _read_held(session: AgentSession | None, picture: SessionPicture) -> _Held:
    if session is None:
        return _Held({}, {})
    calls, losses = ApiCall.objects.filter(session=session), CacheBreak.objects.filter(session=session)
    return _Held(
        read_held(calls, "call_id", [*list_columns(picture.calls), "is_counted"]),
        read_held(losses, "call_id", [*list_columns(picture.losses), "is_counted"]),
    )


def _make_plan(picture: SessionPicture, held: _Held, uncounted: frozenset[str]) -> _Plan:
    calls = {name: row | {"is_counted": name not in uncounted} for name, row in picture.calls.items()}
    losses = {name: row | {"is_counted": name not in uncounted} for name, row in picture.losses.items()}
    totals = add_totals(picture, uncounted)
    return _Plan(uncounted, totals, plan_rows(held.calls, calls), plan_rows(held.losses, losses))


def _find_line(observed: ObservedSession, arrived: Mapping[str, ObservedLine], fact: Observation) -> ObservedLine:
    first = arrived[fact.id]
    if first.fact == fact:
        return first
    return next(line for line in observed.lines if line.fact == fact)


def _find_shapes(
    source: Source, session: AgentSession | None, observed: ObservedSession, facts: Iterable[Observation]
) -> dict[str, Fingerprint]:
    """Prints of every shape the facts name: of this batch, of the session, and of others that the account sent."""
    wanted = {fact.shape[1] for fact in facts if fact.shape}
    prints = {shape.digest: shape.prints for shape in observed.shapes}
    if missing := wanted - prints.keys():
        prints |= dict(_list_shapes(source, missing).values_list("digest", "prints"))
    if session is not None and (missing := wanted - prints.keys()):
        used = PromptShape.objects.filter(uses__session=session, digest__in=missing)
        prints |= dict(used.values_list("digest", "prints"))
    return {digest: read_fingerprint(prints[digest]) for digest in wanted if digest in prints}


def _is_new_source(session: AgentSession, source: Source, observed: ObservedSession) -> bool:
    return source.name not in session.sources or bool(observed.developer and not session.developer)


def _write(source: Source, observed: ObservedSession, draft: _Draft) -> Recorded | None:
    """None when somebody else wrote the session since the draft was worked out."""
    session = _hold_session(source, observed, draft)
    if session is None:
        return None
    before_rank = session.level_rank
    keep_shapes(source, observed.shapes)
    counted, plan = decide_counting(draft.claim), draft.plan
    if counted.uncounted != plan.uncounted:  # another session was written meanwhile
        plan = _make_plan(draft.picture, draft.held, counted.uncounted)
    _write_session(session, source, observed, draft, plan.totals[0])
    append_lines(session, draft.stored, draft.news)
    if draft.session is not None and draft.session.projection_version < COUNTED_SINCE:
        recount_session(session)
    note_shape_uses([(session.pk, line.fact.shape[1]) for line in draft.news.values() if line.fact.shape], source)
    written = _write_rows(session, draft.picture, plan, counted)
    for session_pk in sorted(written.also_changed):
        total_again(session_pk)
    return Recorded(
        session_pk=session.pk,
        external_id=session.external_id,
        version=session.version,
        is_new=draft.session is None,
        new_line_count=len(draft.news.keys() - observed.nested),
        new_calls=_names(written.calls),
        new_breaks=tuple(name for name in _names(written.breaks) if draft.picture.losses[name]["kind"] == "break"),
        new_compactions=_names(written.compactions),
        changed_compactions=tuple(str(name) for name in written.compactions.changed),
        lines_crossed=tuple(LEVELS[max(before_rank, 1) + 1 : session.level_rank + 1]),
        also_changed=tuple(sorted(written.also_changed)),
        last_at=session.last_at,
        level_rank=session.level_rank,
        context_tokens=session.context_tokens,
    )


def _names(changes: RowChanges) -> tuple[str, ...]:
    return tuple(str(name) for name in changes.new)


def _hold_session(source: Source, observed: ObservedSession, draft: _Draft) -> AgentSession | None:
    """The session's row, locked and still as it was read; a new one is written with its figures.

    Raises TooBusy when it was deleted meanwhile, or is being deleted piece by piece: whether it may come again is
    asked anew. Whoever deletes locks the row before saying so, hence this looks after locking it."""
    name = fit_id(observed.external_id)
    held: AgentSession | None = AgentSession(team=source.team, external_id=name)
    if draft.session is not None:
        held = AgentSession.objects.select_for_update().filter(pk=draft.session.pk).first()
    if held is None or DeletedSession.objects.filter(team=source.team, external_id=name).exists():
        raise TooBusy(name)
    return held if draft.session is None or held.version == draft.session.version else None


def _find_origin(team: Team, external_id: str, session: AgentSession | None) -> str:
    """Of a session that goes on from a compaction of ours: its lines name it alone. Looked up when it is new."""
    if session is not None:
        return session.forked_from
    written = ResumedFile.objects.filter(team=team, external_id=external_id, origin__isnull=False)
    return written.values_list("origin__external_id", flat=True).first() or ""


def _make_claim(
    source: Source, observed: ObservedSession, session: AgentSession | None, picture: SessionPicture, held: _Held
) -> Claim:
    """Where a call counts already, no other copy does: there is nothing to claim."""
    counting = {call_id for call_id, row in held.calls.items() if row[-1]}
    outputs = {call_id: row["output_tokens"] for call_id, row in picture.calls.items() if call_id not in counting}
    owner = source.find_owner(observed.developer)
    return Claim(
        team_pk=source.team.pk,
        session_pk=session.pk if session else None,
        owner_pk=session.owner_id if session else owner.pk if owner else None,
        external_id=fit_id(observed.external_id),
        started_at=picture.session["started_at"],
        forked_from=picture.session["forked_from"],
        outputs=outputs,
    )


def keep_shapes(source: Source, shapes: Iterable[ObservedShape]) -> None:
    rows = [
        PromptShape(
            team=source.team,
            account=source.sender_pk or 0,
            digest=shape.digest,
            prints=shape.prints,
            content=None if shape.content is None else compress(shape.content),
            is_redacted=shape.is_redacted,
            redaction_version=shape.redaction,
        )
        for shape in shapes
    ]
    if not rows:
        return
    PromptShape.objects.bulk_create(rows, ignore_conflicts=True)
    # Known by its prints alone, forgotten when its time was over, or read by other redaction rules: read again now.
    arrived = {row.digest: row for row in rows if row.content is not None}
    newest = max([row.redaction_version for row in arrived.values()], default=0)
    outdated = Q(content=None) | Q(redaction_version__lt=newest)
    for stored in _list_shapes(source, arrived).filter(outdated):
        row = arrived[stored.digest]
        if stored.content is None or stored.redaction_version < row.redaction_version:
            stored.content, stored.is_redacted = row.content, row.is_redacted
            stored.redaction_version = row.redaction_version
            stored.save(update_fields=["content", "is_redacted", "redaction_version"])
            RedactionCount.objects.filter(shape=stored).delete()
    if any(row.is_redacted for row in rows):
        count_shapes(source.team, _list_shapes(source, arrived))


def _list_shapes(source: Source, digests: Iterable[str]) -> QuerySet[PromptShape]:
    """Shapes that the sender's account sent. A digest is the sender's claim: it finds nothing of another account."""
    return PromptShape.objects.filter(team=source.team, account=source.sender_pk or 0, digest__in=set(digests))


def note_shape_uses(used: Sequence[tuple[int, str]], source: Source) -> None:
    """Sessions with the digests of the shapes that their requests had."""
    if not used:
        return
    known = _list_shapes(source, (digest for _, digest in used))
    pks = dict(known.values_list("digest", "pk"))
    rows = [ShapeUse(session_id=session, shape_id=pks[digest]) for session, digest in used if digest in pks]
    ShapeUse.objects.bulk_create(rows, ignore_conflicts=True)


def _write_rows(session: AgentSession, picture: SessionPicture, plan: _Plan, counted: Counted) -> _Written:
    owner: Row = {"session": session.pk, "team": session.team_id}
    is_new = session.version == 1
    also_changed = set(counted.beaten)
    _, thread_totals, hours = plan.totals
    threads = {name: row | thread_totals[name] for name, row in picture.threads.items()}
    carry_out(plan.calls, ApiCall.objects.filter(session=session), "call_id", owner)
    if gone := plan.calls.changes.gone:
        also_changed |= hand_over(session.team_id, [str(name) for name in gone]) - {session.pk}
    carry_out(plan.losses, CacheBreak.objects.filter(session=session), "call_id", owner)
    written = _Written(
        calls=plan.calls.changes,
        breaks=plan.losses.changes,
        compactions=sync_rows(
            ObservedCompaction.objects.filter(session=session),
            "entry_uuid",
            picture.compactions,
            fixed=owner,
            is_new=is_new,
        ),
        also_changed=also_changed,
    )
    if written.compactions.changed:
        # What they lost was found from fewer lines: it is to be found again.
        changed = ObservedCompaction.objects.filter(session=session, entry_uuid__in=written.compactions.changed)
        changed.update(audited_at=None)
    sync_rows(Thread.objects.filter(session=session), "agent_id", threads, fixed={"session": session.pk}, is_new=is_new)
    sync_rows(SessionHour.objects.filter(session=session), "hour_at", hours, fixed=owner, is_new=is_new)
    if picture.unanswered:
        others = UnansweredCall.objects.filter(session=session)
        sync_rows(others, "name", picture.unanswered, fixed=owner, is_new=is_new)
    return written


def _write_session(
    session: AgentSession, source: Source, observed: ObservedSession, draft: _Draft, totals: Row
) -> None:
    for column, value in (draft.picture.session | totals).items():
        if column != "last_at" or value is not None:  # lines without any time: as old as their arrival
            setattr(session, column, value)
    _set_owner(session, source, observed)
    session.sources = sorted({*session.sources, source.name})
    session.has_content = session.has_content or any(line.content is not None for line in draft.news.values())
    session.policy_version = source.policy_version
    session.price_version = source.price_version
    session.version += 1
    session.save()


def _set_owner(session: AgentSession, source: Source, observed: ObservedSession) -> None:
    """A session gets its owner when it is created, later from an admin alone: many people hold a collector key. The
    name that a collector reports may come later."""
    if session.pk is None:
        session.collector = source.identity.collector
        session.owner = source.find_owner(observed.developer)
        session.developer = session.owner.username if session.owner else observed.developer
    elif session.owner_id is None and not session.developer:
        session.developer = observed.developer

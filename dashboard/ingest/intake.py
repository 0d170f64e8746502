"""The one way in: every source hands its lines to `take_in`, or to `prepare` in one process and `store` in another."""

import hashlib
import hmac
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache, partial

from django.conf import settings
from django.db import transaction
from django.db.models import F
from django.utils import timezone

from compaction.context.policy import Policy
from compaction.transcripts.subagents import AgentMeta
from dashboard.automation.crossings import AUTO_RANK, FRESH_FOR, find_last_crossing, is_armed
from dashboard.automation.notes_due import may_be_due, post_notes
from dashboard.ingest.deleted_sessions import DELETED, leave_deleted, leave_deleted_drawn
from dashboard.ingest.drawn import DrawnSession, draw_session
from dashboard.ingest.new_sessions import record_new, record_sharing
from dashboard.ingest.observed import LineProblem, Piece, Prepared, Rules
from dashboard.ingest.picture import PolicyAt, pick_policy
from dashboard.ingest.picture.columns import fit_id
from dashboard.ingest.picture.drawing import PROJECTION_VERSION
from dashboard.ingest.record import FollowUp, OtherAccount, Recorded, Source, project_stored, record
from dashboard.ingest.transcripts import find_redactor, prepare, prepare_agent_meta
from dashboard.jobs.post import BACKGROUND, post_job
from dashboard.models import (
    AgentSession,
    CompactionKind,
    DeveloperAccount,
    Drop,
    ObservedCompaction,
    Sender,
    Team,
    User,
    identify_sender,
)
from dashboard.policies.in_force import TeamSettings, find_policy, list_past_policies
from dashboard.policies.unusable_patterns import keeps_content

_LONGEST_REASON, _LONGEST_DETAIL = 60, 300  # of a drop, as the model has it


OTHER_ACCOUNT = "session belongs to another account"


@dataclass(frozen=True)
class Origin:
    """Which account sends lines, to which team, and how they arrive: import, follow, upload, api.

    The sender is None for collectors, which send for many people: keys that an admin marked as such, and the import
    and the follower of a server."""

    team: Team
    sender: User | None
    source: str

    @property
    def identity(self) -> Sender:
        return identify_sender(self.sender, self.source)


@dataclass(frozen=True)
class Taken:
    """What became of a piece. Lines that were known are read, and change nothing."""

    sessions: tuple[Recorded, ...]
    line_count: int
    new_line_count: int
    problems: tuple[LineProblem, ...] = ()  # the first of them
    problem_count: int = 0
    drops: Mapping[str, int] | None = None
    redactions: Mapping[str, int] | None = None
    refused_sessions: frozenset[str] = frozenset()  # external ids of those that belong to another account

    @property
    def refused_line_count(self) -> int:
        return (self.drops or {}).get(OTHER_ACCOUNT, 0)


def take_in(origin: Origin, piece: Piece) -> Taken:
    """Decode, redact and record. Raises OperationalError or TooBusy when nothing of the last session was kept: handing
    the piece in again is safe."""
    policy = find_policy(origin.team)
    return store(origin, prepare(piece, make_rules(origin.team, policy)), policy)


def take_in_agent_meta(origin: Origin, session_id: str, agent_id: str, meta: AgentMeta) -> Taken:
    policy = find_policy(origin.team)
    return store(origin, prepare_agent_meta(session_id, agent_id, meta, make_rules(origin.team, policy)), policy)


def make_rules(team: Team, policy: TeamSettings) -> Rules:
    """The digest key is the team's own: equal prompts of two teams cannot be told to be equal."""
    key = hmac.digest(settings.SECRET_KEY.encode(), f"prompt digests of team {team.pk}".encode(), hashlib.sha256)
    return Rules(
        keeps_content=keeps_content(policy),
        digest_key=key,
        own_patterns=dict(policy.own_patterns),
        disabled_rules=policy.disabled_rules,
        redaction_version=policy.redaction_version,
        content_since=policy.content_since(timezone.now()),
    )


def make_drawing_rules(team: Team, policy: TeamSettings) -> Rules:
    """For whoever draws sessions before they are written."""
    past = list_past_policies(team, policy)
    return replace(make_rules(team, policy), lines_policy=policy.lines_policy, past_policies=past, prices=policy.prices)


def store(origin: Origin, prepared: Prepared, policy: TeamSettings) -> Taken:
    """One short transaction per session of the piece."""
    return _store(origin, leave_deleted(origin.team, prepared, origin.identity), policy, ())


def store_together(origin: Origin, prepared: Prepared, policy: TeamSettings) -> Taken:
    """As `store`, but the sessions that nobody knows yet in one transaction: an export may hold hundreds of them."""
    if len(prepared.sessions) < 2:
        return store(origin, prepared, policy)
    prepared = leave_deleted(origin.team, prepared, origin.identity)
    names = [fit_id(observed.external_id) for observed in prepared.sessions]
    known = AgentSession.objects.filter(team=origin.team, external_id__in=names)
    taken = set(known.values_list("external_id", flat=True))
    unknown = [observed for name, observed in zip(names, prepared.sessions, strict=True) if name not in taken]
    policy_at = _find_policy_at(origin.team, policy)
    drawn = [draw_session(observed, policy.lines_policy, policy_at, policy.prices) for observed in unknown]
    return _store(origin, prepared, policy, store_new(origin, list(filter(None, drawn)), policy).recorded)


def _store(origin: Origin, prepared: Prepared, policy: TeamSettings, done: Sequence[Recorded]) -> Taken:
    """Records the sessions that are not done yet, one by one. Those of other accounts are dropped and counted."""
    source, follow_up = _make_source(origin, policy), _find_follow_up(origin.team, policy)
    names = {each.external_id for each in done}
    rest = [observed for observed in prepared.sessions if fit_id(observed.external_id) not in names]
    recorded, drops, refused = list(done), Counter(prepared.drops), []
    for observed in rest:
        try:
            recorded.append(record(source, observed, follow_up))
        except OtherAccount:
            refused.append(fit_id(observed.external_id))
            drops[OTHER_ACCOUNT] += observed.item_count
    count_drops(origin, drops, detail=prepared.name)
    return Taken(
        sessions=tuple(recorded),
        line_count=prepared.line_count,
        new_line_count=sum(each.new_line_count for each in recorded),
        problems=prepared.problems,
        problem_count=prepared.problem_count,
        drops=drops,
        redactions=prepared.redactions,
        refused_sessions=frozenset(refused),
    )


@dataclass(frozen=True)
class StoredNew:
    """What one transaction wrote of drawn sessions; the others are for `store_drawn`."""

    recorded: list[Recorded]
    others: list[DrawnSession]
    drops: Mapping[str, int]


def store_new(origin: Origin, drawn: Sequence[DrawnSession], policy: TeamSettings) -> StoredNew:
    """One transaction for all that nobody knows."""
    kept, deleted_count = leave_deleted_drawn(origin.team, drawn, origin.identity)
    recorded, others = record_new(_make_source(origin, policy), kept, _find_follow_up(origin.team, policy))
    drops = {DELETED: deleted_count} if deleted_count else {}
    count_drops(origin, drops, detail="")
    return StoredNew(recorded, others, drops)


def store_drawn(origin: Origin, drawn: DrawnSession, policy: TeamSettings) -> Recorded | None:
    """A session that is known by now, or shares calls with another. None: another account's, dropped and counted."""
    source, follow_up = _make_source(origin, policy), _find_follow_up(origin.team, policy)
    try:
        return record_sharing(source, drawn, follow_up) or record(source, drawn.observe_again(), follow_up)
    except OtherAccount:
        count_drops(origin, {OTHER_ACCOUNT: drawn.line_count}, detail="")
        return None


def _make_source(origin: Origin, policy: TeamSettings) -> Source:
    policy_at = _find_policy_at(origin.team, policy)
    accounts = _list_developer_accounts(origin.team) if origin.sender is None else {}
    return Source(
        origin.team,
        origin.sender,
        origin.source,
        policy.lines_policy,
        policy.version,
        policy_at,
        accounts=accounts,
        prices=policy.prices,
        price_version=policy.price_version,
    )


def project_again(session: AgentSession) -> None:
    """Work a stored session out again under its team's policy of today, as lines from where its first came would.
    Raises as `record` does."""
    if not session.segments.exists():  # nothing is stored that its figures could come from
        session.projection_version, session.price_version = PROJECTION_VERSION, session.team.price_version
        session.save(update_fields=["projection_version", "price_version"])
        return
    origin = Origin(session.team, session.owner, session.sources[0])
    # What compactions lost was found by an earlier version too. Where words were removed since, it stays.
    is_outdated = session.projection_version < PROJECTION_VERSION
    is_whole = session.has_content and session.content_removed_at is None
    follow_up = partial(_audit_again, session.team) if is_outdated and is_whole else None
    project_stored(_make_source(origin, find_policy(session.team)), session.external_id, follow_up)


def _audit_again(team: Team, recorded: Recorded) -> None:
    full = ObservedCompaction.objects.filter(session_id=recorded.session_pk, kind=CompactionKind.FULL)
    if full.update(audited_at=None):
        _post_audit(team, recorded)


def _list_developer_accounts(team: Team) -> dict[str, User]:
    """Accounts that an admin assigned to developers; those of people who left the team since are void."""
    assigned = DeveloperAccount.objects.filter(team=team, user__memberships__team=team).select_related("user")
    return {each.developer: each.user for each in assigned}


def _find_policy_at(team: Team, policy: TeamSettings) -> PolicyAt:
    """Those before are looked up for what happened under them, which little of what arrives did."""
    list_past = cache(partial(list_past_policies, team, policy))

    def find(at: datetime | None) -> Policy:
        if at is None or policy.changed_at is None or at >= policy.changed_at:
            return policy.lines_policy
        return pick_policy(list_past(), policy.lines_policy, at)

    return find


def _find_follow_up(team: Team, policy: TeamSettings) -> FollowUp:
    return partial(_follow_up, team, stores_content=keeps_content(policy))


def _follow_up(team: Team, recorded: Recorded, *, stores_content: bool) -> None:
    """Work that stands or falls with what was recorded. What a compaction lost is known only where content is."""
    if stores_content and (recorded.new_compactions or recorded.changed_compactions):
        _post_audit(team, recorded)
    if not recorded.new_line_count or not _is_recent(recorded):
        return
    # Notes first: a crossing waits for those that are being taken.
    if stores_content and may_be_due(team, recorded.session_pk, recorded.context_tokens):
        post_notes(team, recorded.session_pk, version=recorded.version)
    if recorded.level_rank >= AUTO_RANK:
        _post_crossing(team, recorded)


def _is_recent(recorded: Recorded) -> bool:
    """A history that is imported crosses many lines that are nobody's concern any more."""
    return recorded.last_at is not None and timezone.now() - recorded.last_at <= FRESH_FOR


def _post_crossing(team: Team, recorded: Recorded) -> None:
    """Not for every call above the line: the crossing may have been answered."""
    if not is_armed(recorded.session_pk, find_last_crossing(recorded.session_pk)):
        return
    post_job(
        "answer_crossing",
        key=f"crossing of session {recorded.session_pk} at version {recorded.version}",
        team=team,
        payload={"session": recorded.session_pk},
    )


def _post_audit(team: Team, recorded: Recorded) -> None:
    """A job: it reads the whole conversation before the compaction."""
    post_job(
        "audit_compactions",
        key=f"audit compactions of session {recorded.session_pk} at version {recorded.version}",
        team=team,
        payload={"session": recorded.session_pk},
        priority=BACKGROUND,
    )


def count_drops(origin: Origin, drops: Mapping[str, int], *, detail: str) -> None:
    """Raises the visible counters: team, way in, reason. Pushed reasons and names of files are others' words."""
    if not drops:
        return
    redaction = find_redactor(find_policy(origin.team))
    told = redaction.clean_start(detail, _LONGEST_DETAIL)
    for reason, count in drops.items():
        with transaction.atomic():
            name = redaction.clean_start(reason, _LONGEST_REASON)
            drop, _ = Drop.objects.get_or_create(team=origin.team, source=origin.source, reason=name)
            Drop.objects.filter(pk=drop.pk).update(count=F("count") + count, last_at=timezone.now(), last_detail=told)

"""Compactions as rows of lists: bars, trigger, line in force, what came back; filtered and paged by place."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from enum import StrEnum

from django.db.models import QuerySet

from dashboard import access
from dashboard.access import Actor
from dashboard.models import AgentSession, CompactionKind, ObservedCompaction
from dashboard.pages.calls_around import read_calls_around
from dashboard.pages.keyset import Place, take_page
from dashboard.pages.ledger import PAGE_SIZE, name_session
from dashboard.pages.thread_names import name_by_id, name_threads
from dashboard.words import format_freed, saves_nothing, say_tokens


@dataclass(frozen=True)
class CompactionFilter:
    """What a list is cut to; empty values cut nothing."""

    team: str = ""
    kind: str = ""
    since: datetime | None = None
    until: datetime | None = None  # exclusive
    project: str = ""
    developer: str = ""
    trigger: str = ""
    retained_from: int | None = None  # percent
    retained_below: int | None = None  # exclusive
    is_mid_task: bool | None = None
    session_id: int | None = None


@dataclass(frozen=True)
class ShrinkBar:
    """Before and after on one scale, in percent; all bars of a list share it."""

    before_percent: float
    after_percent: float
    line_percent: float | None

    @property
    def has_grown(self) -> bool:
        return self.after_percent > self.before_percent


class AuditState(StrEnum):
    """Whether a compaction has a percentage of what it retained, or why it has none."""

    AUDITED = "audited"
    WAITING = "waiting"
    NOTHING_TO_JUDGE = "nothing_to_judge"
    CONTENT_NOT_STORED = "content_not_stored"
    SUMMARY_NOT_STORED = "summary_not_stored"
    BOUNDARY_NOT_STORED = "boundary_not_stored"
    NOT_APPLICABLE = "not_applicable"  # micro-compactions and those that failed

    @property
    def label(self) -> str:
        return "analysing…" if self is AuditState.WAITING else self.value.replace("_", " ")


@dataclass(frozen=True)
class CompactionRow:
    """One compaction. `is_mid_task` and `restored_count` are None where the transcript does not tell."""

    id: int
    session_id: int
    session_name: str
    agent_id: str
    thread: str
    kind: str
    at: datetime | None
    trigger: str
    failure: str
    before_tokens: int | None
    after_tokens: int | None
    after_origin: str
    saved_tokens: int | None
    summary_tokens: int | None
    duration_seconds: float | None
    call_number: int  # in its thread, of the last call before it; 0 where there is none
    turns_since_previous: int | None
    chain_number: int
    is_mid_task: bool | None
    line_tokens: int | None
    drift: str
    drift_sentence: str
    restored_count: int | None
    cleared_count: int
    kept_count: int
    retained_percent: Decimal | None
    audit_state: AuditState
    bar: ShrinkBar | None
    measured_tokens: int | None = None  # by how much the next prompt was smaller than the context before; micro only

    @property
    def is_by_api(self) -> bool:
        """Done on the server, and told in the answer."""
        return self.trigger == "api"

    @property
    def is_full(self) -> bool:
        return self.kind == CompactionKind.FULL

    @property
    def has_failed(self) -> bool:
        return self.kind == CompactionKind.FAILED

    @property
    def sentence(self) -> str:
        """167.0k -> 51.0k, 116.0k freed."""
        if self.has_failed:
            return f"Failed: {self.failure}"
        return f"{say_tokens(self.before_tokens)} → {say_tokens(self.after_tokens)}, {self.freed_words}"

    @property
    def freed_words(self) -> str:
        return format_freed(self.before_tokens, self.after_tokens, self.saved_tokens)

    @property
    def saves_nothing(self) -> bool:
        return saves_nothing(self.before_tokens, self.after_tokens)

    @property
    def mid_task_words(self) -> str:
        return {True: "yes", False: "no", None: "unknown"}[self.is_mid_task]

    @property
    def chain_words(self) -> str:
        turns = self.turns_since_previous
        if turns is None:
            return "first compaction"
        if turns == 0:
            return "same turn as the previous one"
        return f"{turns} turn{'' if turns == 1 else 's'} after the previous one"


@dataclass(frozen=True)
class CompactionPageOfRows:
    """One page of compactions, and where the next one starts."""

    rows: tuple[CompactionRow, ...]
    next: Place | None


def list_compactions(
    actor: Actor, wanted: CompactionFilter, *, before: Place | None = None, size: int = PAGE_SIZE
) -> CompactionPageOfRows:
    """Newest first, over all sessions the actor may see."""
    found = _cut(access.compactions(actor), wanted).select_related("session", "session__team")
    rows, following = take_page(found, before, size)
    scale = find_scale(rows)
    return CompactionPageOfRows(
        tuple(
            make_row(
                row,
                session_name=name_session(row.session, reads_content=access.reads_content(actor, row.session)),
                thread=name_by_id(row.agent_id),
                scale_tokens=scale,
            )
            for row in rows
        ),
        following,
    )


def list_session_compactions(
    session: AgentSession,
    kind: CompactionKind,
    *,
    reads_content: bool,
    before: Place | None = None,
    size: int = PAGE_SIZE,
) -> CompactionPageOfRows:
    """One kind of a session's compactions, newest first; sub-agents by name. Two queries."""
    threads = name_threads(session.pk, reads_content=reads_content)
    found = ObservedCompaction.objects.filter(session=session, kind=kind).select_related("session")
    rows, following = take_page(found, before, size)
    name, scale = name_session(session, reads_content=reads_content), find_scale(rows)
    made = (
        make_row(
            row, session_name=name, thread=threads.get(row.agent_id) or name_by_id(row.agent_id), scale_tokens=scale
        )
        for row in rows
    )
    return CompactionPageOfRows(tuple(made), following)


def list_session_micro(
    session: AgentSession, *, reads_content: bool, before: Place | None = None
) -> CompactionPageOfRows:
    """Micro-compactions with what the calls around each of them measured. Two queries more."""
    found = list_session_compactions(session, CompactionKind.MICRO, reads_content=reads_content, before=before)
    around = read_calls_around([row.id for row in found.rows])
    made = (replace(row, measured_tokens=around[row.id].drop_tokens) for row in found.rows)
    return CompactionPageOfRows(tuple(made), found.next)


def find_scale(rows: Iterable[ObservedCompaction]) -> int:
    """What the widest bar stands for. A line far off to the right would leave nothing to see of the bars."""
    return max((max(row.before_tokens or 0, row.after_tokens or 0) for row in rows), default=0)


def make_row(compaction: ObservedCompaction, *, session_name: str, thread: str, scale_tokens: int) -> CompactionRow:
    return CompactionRow(
        id=compaction.pk,
        session_id=compaction.session_id,
        session_name=session_name,
        agent_id=compaction.agent_id,
        thread=thread,
        kind=compaction.kind,
        at=compaction.at,
        trigger=compaction.trigger,
        failure=compaction.failure,
        before_tokens=compaction.before_tokens,
        after_tokens=compaction.after_tokens,
        after_origin=compaction.after_origin,
        saved_tokens=compaction.saved_tokens,
        summary_tokens=compaction.summary_tokens,
        duration_seconds=compaction.duration_seconds,
        call_number=compaction.call_number,
        turns_since_previous=compaction.turns_since_previous,
        chain_number=compaction.chain_number,
        is_mid_task=compaction.is_mid_task,
        line_tokens=compaction.line_tokens,
        drift=compaction.drift,
        drift_sentence=compaction.drift_sentence,
        restored_count=None if compaction.restored is None else len(compaction.restored),
        cleared_count=compaction.cleared_count,
        kept_count=compaction.kept_count,
        retained_percent=compaction.retained_percent,
        audit_state=_find_audit_state(compaction),
        bar=_draw_bar(compaction, scale_tokens),
    )


def _find_audit_state(compaction: ObservedCompaction) -> AuditState:
    if compaction.kind != CompactionKind.FULL:
        return AuditState.NOT_APPLICABLE
    if compaction.retained_percent is not None:
        return AuditState.AUDITED
    if compaction.audit is not None:
        return AuditState.NOTHING_TO_JUDGE
    if not compaction.session.has_content:
        return AuditState.CONTENT_NOT_STORED
    if compaction.summary_tokens is None:
        return AuditState.SUMMARY_NOT_STORED  # only telemetry reported it, or its lines are still to come
    return AuditState.WAITING if compaction.audited_at is None else AuditState.BOUNDARY_NOT_STORED


def _draw_bar(compaction: ObservedCompaction, scale_tokens: int) -> ShrinkBar | None:
    before, after = compaction.before_tokens, compaction.after_tokens
    if before is None or after is None or scale_tokens == 0:
        return None
    line = compaction.line_tokens
    return ShrinkBar(
        before_percent=round(100 * before / scale_tokens, 1),
        after_percent=round(100 * after / scale_tokens, 1),
        line_percent=round(100 * line / scale_tokens, 1) if line is not None and line <= scale_tokens else None,
    )


def _cut(rows: QuerySet[ObservedCompaction], wanted: CompactionFilter) -> QuerySet[ObservedCompaction]:
    conditions = {
        "team__slug": wanted.team or None,
        "kind": wanted.kind or None,
        "at__gte": wanted.since,
        "at__lt": wanted.until,
        "session__project": wanted.project or None,
        "session__developer": wanted.developer or None,
        "trigger": wanted.trigger or None,
        "retained_percent__gte": wanted.retained_from,
        "retained_percent__lt": wanted.retained_below,
        "is_mid_task": wanted.is_mid_task,
        "session_id": wanted.session_id,
    }
    return rows.filter(**{name: value for name, value in conditions.items() if value is not None})

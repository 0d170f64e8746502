"""Sessions and what belongs to one of them as tables: calls, compactions of the client, compactions of our own."""

from collections.abc import Iterator
from datetime import datetime

from dashboard import access
from dashboard.access import Act, Actor
from dashboard.exports.tables import Cell, ExportTable
from dashboard.models import LEVELS, AgentSession, Team
from dashboard.pages.compaction_rows import CompactionFilter, list_compactions
from dashboard.pages.gauges import find_sessions, find_title
from dashboard.pages.keyset import Place
from dashboard.pages.listed_session import ListedSession
from dashboard.pages.live_state import find_live_state
from dashboard.pages.run_rows import list_session_runs
from dashboard.pages.session_calls import list_calls, say_cause
from dashboard.pages.session_figures import find_hit_rate, is_price_unknown
from dashboard.pages.session_filters import SessionFilters
from dashboard.pages.session_paging import Cursor

BATCH = 500
_SESSION_COLUMNS = (
    "id", "session", "team", "title", "project", "branch", "developer", "model", "client_version", "state",
    "started_at", "last_at", "context_tokens", "pending_tokens", "level", "is_soon", "percent_left",
    "calls", "compactions", "mid_task_compactions", "hit_rate", "last_hit_percent", "breaks", "lost_usd",
    "spent_usd", "client_cost_usd",
)  # fmt: skip
_CALL_COLUMNS = (
    "id", "call", "agent", "number", "turn", "at", "model", "client_version", "context_tokens", "cache_read_tokens",
    "written_5m_tokens", "written_1h_tokens", "uncached_tokens", "output_tokens", "is_output_estimated", "cost_usd",
    "is_counted", "lost_cache", "cause", "lost_usd",
)  # fmt: skip
_COMPACTION_COLUMNS = (
    "id", "session_id", "external_id", "session", "thread", "kind", "at", "trigger", "before_tokens", "after_tokens",
    "freed_tokens", "summary_tokens", "after_call", "chain_number", "is_mid_task", "line_tokens", "drift", "restored",
    "cleared", "kept", "took_seconds", "retained_percent", "failure",
)  # fmt: skip
_RUN_COLUMNS = (
    "id", "session_id", "external_id", "session", "thread", "kind", "state", "created_at", "finished_at", "started_by",
    "summariser", "model", "before_tokens", "after_tokens", "freed_tokens", "took_seconds", "cost_usd",
    "retained_percent", "revisions", "failure",
)  # fmt: skip


def export_sessions(actor: Actor, filters: SessionFilters, *, now: datetime) -> ExportTable:
    """In the order of the list. A team that is not the actor's does not exist."""
    teams = [access.require_team(actor, filters.team, Act.SEE)] if filters.team else access.teams(actor)
    by_id = {team.pk: team for team in teams}

    def walk() -> Iterator[tuple[Cell, ...]]:
        cursor: Cursor | None = None
        while True:
            page = find_sessions(actor, filters, teams, now=now, cursor=cursor, size=BATCH)
            for session in page.sessions:
                yield _list_session(actor, session, by_id[session.team_id], now)
            if not page.after:
                return
            cursor = Cursor.read(page.after, filters.sort, forwards=True)

    return ExportTable("sessions", _SESSION_COLUMNS, walk())


def _list_session(actor: Actor, session: ListedSession, team: Team, now: datetime) -> tuple[Cell, ...]:
    is_unpriced = is_price_unknown(session)
    return (
        session.id, session.external_id, team.slug, find_title(actor, session, team), session.project, session.branch,
        session.developer, session.model, session.client_version, find_live_state(session, now=now).value,
        session.started_at, session.last_at, session.context_tokens, session.pending_tokens,
        LEVELS[session.level_rank], bool(session.is_soon), session.percent_left,
        session.call_count, session.compaction_count, session.mid_task_count, _round_rate(find_hit_rate(session)),
        session.recent_hits[-1] if session.recent_hits else None, session.break_count,
        None if is_unpriced else session.lost_usd, None if is_unpriced else session.spent_usd, session.client_cost_usd,
    )  # fmt: skip


def _round_rate(rate: float | None) -> float | None:
    return None if rate is None else round(rate, 4)


def export_calls(actor: Actor, session: AgentSession) -> ExportTable:
    """Thread by thread in order, with what was lost at a call."""
    losses = access.breaks(actor).filter(session=session).values_list("call_id", "kind", "cause", "lost_usd")
    lost = {call_id: (kind, say_cause(cause), usd) for call_id, kind, cause, usd in losses}

    def walk() -> Iterator[tuple[Cell, ...]]:
        after: int | None = None
        while True:
            page = list_calls(actor, session, agent=None, after=after, limit=BATCH)
            if page is None:  # the call to go on after is gone: so is the session
                return
            rows, after = page
            for call in rows:
                yield (
                    call.pk, call.call_id, call.agent_id, call.number, call.turn, call.at, call.model,
                    call.client_version, call.context_tokens, call.read_tokens, call.write_5m_tokens,
                    call.write_1h_tokens, call.input_tokens, call.output_tokens, call.is_output_estimated,
                    call.cost_usd, call.is_counted, *lost.get(call.call_id, (None, None, None)),
                )  # fmt: skip
            if after is None:
                return

    return ExportTable("calls", _CALL_COLUMNS, walk())


def export_compactions(actor: Actor, session: AgentSession) -> ExportTable:
    """Those of the client, of every kind, newest first."""
    wanted = CompactionFilter(session_id=session.pk)

    def walk() -> Iterator[tuple[Cell, ...]]:
        before: Place | None = None
        while True:
            page = list_compactions(actor, wanted, before=before, size=BATCH)
            for row in page.rows:
                yield (
                    row.id, row.session_id, session.external_id, row.session_name, row.thread, row.kind, row.at,
                    row.trigger, row.before_tokens, row.after_tokens, row.saved_tokens, row.summary_tokens,
                    row.call_number, row.chain_number, row.is_mid_task, row.line_tokens, row.drift,
                    row.restored_count, row.cleared_count, row.kept_count, row.duration_seconds, row.retained_percent,
                    row.failure,
                )  # fmt: skip
            before = page.next
            if before is None:
                return

    return ExportTable("compactions", _COMPACTION_COLUMNS, walk())


def export_runs(actor: Actor, session: AgentSession) -> ExportTable:
    """Those of our own, newest first."""

    def walk() -> Iterator[tuple[Cell, ...]]:
        before: int | None = None
        while True:
            page = list_session_runs(actor, session, before=before)
            for row in page.rows:
                yield (
                    row.id, row.session_id, session.external_id, row.session_name, row.thread, row.kind_words,
                    row.state.value, row.created_at, row.finished_at, row.started_by, row.summarizer, row.model,
                    row.before_tokens, row.after_tokens, row.saved_tokens, row.duration_seconds, row.spent_usd,
                    row.retained_percent, row.revision_count, row.failure_sentence,
                )  # fmt: skip
            before = page.older_than
            if before is None:
                return

    return ExportTable("runs", _RUN_COLUMNS, walk())

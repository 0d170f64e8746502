"""The header of a session: where it comes from, whether it is at work, how full it is, what it cost.

Queries in, frozen values out; every page and endpoint about one session begins with read_header.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from typing import Any

from django.db.models import Q

from compaction.context.forecast import (
    MEMORY_POINTS,
    CallPoint,
    Forecast,
    NextCallCost,
    NotEnoughData,
    compute_next_call_cost,
    forecast_remaining,
    measure_pace,
)
from compaction.context.thresholds import LevelReading, Thresholds, classify_usage, compute_thresholds
from compaction.context.windows import ModelInUse
from compaction.timeline.observations import READING_VERSION
from compaction.transcripts.entries import Usage
from dashboard import access
from dashboard.access import Actor
from dashboard.kept_query import KeptQuery, Open, column_names, make_object
from dashboard.models import AgentSession, ApiCall, CompactionKind, ResumedFile, Thread
from dashboard.models.api_call import OF_CONVERSATION
from dashboard.pages.content_state import came_without_text
from dashboard.pages.gauge_bar import GaugeBar, draw_gauge
from dashboard.pages.live_state import LiveState, find_live_state
from dashboard.pages.session_figures import count_prompt_tokens, find_hit_rate, is_price_unknown
from dashboard.policies.in_force import TeamSettings, find_policy
from dashboard.session_forecasts import POINT_COLUMNS, build_points, parse_pace
from dashboard.session_levels import find_model_in_use

_USAGE = ("input_tokens", "read_tokens", "write_5m_tokens", "write_1h_tokens", "output_tokens")
MOST_FORKS = 20  # named in the header; a template that is forked a thousand times must not fill the page


@dataclass(frozen=True, slots=True)
class Relative:
    """Another session of the same line; `pk` is None when it is not here. `run_pk`: the compaction of ours that lies
    between the two."""

    name: str
    pk: int | None
    run_pk: int | None = None


@dataclass(frozen=True, slots=True)
class Lineage:
    """Where a session was forked from, and what was forked from it; beyond MOST_FORKS there are `more_forks`."""

    origin: Relative | None
    forks: tuple[Relative, ...]
    more_forks: bool = False


@dataclass(frozen=True, slots=True)
class Neighbours:
    """The sessions before and after this one, newest first."""

    newer_pk: int | None
    older_pk: int | None


@dataclass(frozen=True, slots=True)
class LinesInForce:
    """The lines of a session's window as the team's policy of today draws them."""

    settings: TeamSettings
    in_use: ModelInUse
    lines: Thresholds | None


@dataclass(frozen=True, slots=True)
class Standing(LinesInForce):
    """Where the context stands: the lines in force, the reading, the forecast to the limit, and all of it drawn."""

    reading: LevelReading
    forecast: Forecast | NotEnoughData
    bar: GaugeBar
    next_prompt: NextCallCost | None  # None without a price, and while no call has followed a compaction


@dataclass(frozen=True, slots=True)
class SessionHeader:
    session: AgentSession
    reads_content: bool
    lineage: Lineage
    neighbours: Neighbours
    threads: tuple[Thread, ...]
    state: LiveState
    warm_seconds: int | None  # left of the cache's lifetime, 0 when it is over, None when it is not known
    has_estimates: bool  # whether what was spent holds answers whose length is estimated
    standing: Standing

    @property
    def name(self) -> str:
        """A title quotes the conversation: only who may read it sees it."""
        return (self.session.title if self.reads_content else "") or self.session.external_id

    @property
    def shown_thread(self) -> Thread | None:
        return find_shown_thread(self.threads)

    @property
    def is_sub_agent_only(self) -> bool:
        """Of some sessions only a sub-agent's file is there: its gauge is what can be shown."""
        return self.shown_thread is not None and self.shown_thread.agent_id != ""

    @property
    def sub_agent_count(self) -> int:
        return sum(thread.agent_id != "" for thread in self.threads)

    @property
    def prompt_tokens(self) -> int:
        return count_prompt_tokens(self.session)

    @property
    def token_count(self) -> int:
        """Of all kinds, as the client's metrics add them up."""
        return self.prompt_tokens + self.session.output_tokens

    @property
    def hit_rate(self) -> float | None:
        return find_hit_rate(self.session)

    @property
    def warm_words(self) -> str:
        """4:12, as the script counts it down."""
        left = self.warm_seconds or 0
        return f"{left // 60}:{left % 60:02}"

    @property
    def reading_note(self) -> str:
        """Which version of the reader read its lines, where the one of today would read them in another way."""
        version = self.session.reading_version
        if version is None or version >= READING_VERSION:
            return ""
        return (
            f"This session was parsed by parser version {version}; the current version is {READING_VERSION}. "
            "Transcripts on this machine are parsed again in the background while Plimsoll follows them, or with the "
            "next import; pushed transcripts by an updated plimsoll watch. Without its transcript, a session keeps "
            "these numbers."
        )

    @property
    def recent_shares(self) -> list[float]:
        """Hit rates of the last calls, oldest first."""
        return [hit / 100 for hit in self.session.recent_hits]

    @property
    def is_price_unknown(self) -> bool:
        return is_price_unknown(self.session)

    @property
    def has_gauge(self) -> bool:
        """A call, a sub-agent or the client's status line says how full the window is."""
        return bool(self.session.call_count or self.threads or self.session.context_tokens)

    @property
    def spent_usd(self) -> Decimal | None:
        spent: Decimal = self.session.spent_usd
        return None if self.is_price_unknown else spent

    @property
    def price_note(self) -> str:
        """What the sums leave out; empty when they hold everything."""
        count = self.session.unpriced_count
        if count == 0:
            return ""
        return f"Price unknown for {count:,} {'call' if count == 1 else 'calls'}; not included in these totals."

    @property
    def content_note(self) -> str:
        """Why there is no text to read; empty when there is."""
        if not self.session.has_content:
            if self.session.content_removed_at is not None:
                return ""  # the page says when
            if came_without_text(self.session):
                return "Its data source sends metrics only, no text."
            return "No content is stored for this session. You can see metrics only."
        if not self.reads_content:
            return "You can see metrics only. Ask a team owner for content access."
        return ""


def read_header(actor: Actor, session: AgentSession, *, now: datetime) -> SessionHeader:
    """The same few queries however long the session is."""
    threads = read_threads(session)
    return SessionHeader(
        session=session,
        reads_content=access.reads_content(actor, session),
        lineage=_read_lineage(actor, session),
        neighbours=_find_neighbours(actor, session),
        threads=threads,
        state=find_live_state(session, now=now),
        warm_seconds=_count_warm(session, now),
        has_estimates=bool(_ESTIMATES.read(session=session.pk)),
        standing=_read_standing(actor, session, find_shown_thread(threads)),
    )


_THREADS = KeptQuery(
    lambda: Thread.objects.filter(session_id=Open("session")).order_by("agent_id").values_list(*column_names(Thread))
)


_ESTIMATES = KeptQuery(
    lambda: (
        ApiCall.objects.filter(session_id=Open("session"), is_output_estimated=True, is_counted=True)
        .order_by()
        .values_list("pk")[:1]
    )
)


def read_threads(session: AgentSession) -> tuple[Thread, ...]:
    """The main conversation first."""
    return tuple(make_object(Thread, row) for row in _THREADS.read(session=session.pk))


def find_shown_thread(threads: tuple[Thread, ...]) -> Thread | None:
    """The main conversation, else the longest sub-agent: as the gauge was drawn when the session was recorded."""
    main = next((thread for thread in threads if thread.agent_id == "" and thread.call_count), None)
    return main or max(threads, key=lambda thread: thread.call_count, default=None)


def _count_warm(session: AgentSession, now: datetime) -> int | None:
    return None if session.warm_until is None else max(0, int((session.warm_until - now).total_seconds()))


def _read_lineage(actor: Actor, session: AgentSession) -> Lineage:
    # As a range: nearly all sessions have the same empty value here, and SQLite, which keeps averages, would read every
    # session of the team rather than look for an equal one in the index.
    family = Q(forked_from__range=(session.external_id, session.external_id))
    if session.forked_from:
        family |= Q(external_id=session.forked_from)
    found = access.sessions(actor).filter(family, team=session.team).exclude(pk=session.pk)
    # Unsorted: for an order SQLite would rather walk all sessions by time than look up the few it is asked for.
    rows = list(found.order_by().values_list("pk", "external_id")[: MOST_FORKS + 2])
    by_name = {name: pk for pk, name in rows}
    resumed = _find_resuming_runs(session, [name for _, name in rows])
    origin = None
    if session.forked_from:
        origin = Relative(
            session.forked_from, by_name.get(session.forked_from), run_pk=resumed.get(session.external_id)
        )
    forks = [Relative(name, pk, run_pk=resumed.get(name)) for pk, name in rows if name != session.forked_from]
    return Lineage(origin, tuple(forks[:MOST_FORKS]), more_forks=len(forks) > MOST_FORKS)


def _find_resuming_runs(session: AgentSession, names: list[str]) -> dict[str, int]:
    """Which of these sessions, and of this one, go on from a compaction of ours, and from which."""
    if not names and not session.forked_from:
        return {}
    written = ResumedFile.objects.filter(team=session.team, external_id__in=[session.external_id, *names])
    return {name: run for name, run in written.values_list("external_id", "run_id") if run is not None}


def _find_neighbours(actor: Actor, session: AgentSession) -> Neighbours:
    found = access.sessions(actor).filter(team=session.team)
    at, pk = session.last_at, session.pk
    # The plain comparison beside the precise one is what lets SQLite begin in the middle of the index.
    newer = found.filter(Q(last_at__gt=at) | Q(pk__gt=pk), last_at__gte=at).order_by("last_at", "pk")
    older = found.filter(Q(last_at__lt=at) | Q(pk__lt=pk), last_at__lte=at).order_by("-last_at", "-pk")
    return Neighbours(
        newer_pk=newer.values_list("pk", flat=True).first(),
        older_pk=older.values_list("pk", flat=True).first(),
    )


def read_lines(session: AgentSession, thread: Thread | None) -> LinesInForce:
    """One query."""
    settings = find_policy(session.team)
    in_use = replace(find_model_in_use(session), responses=thread.call_count if thread else None)
    return LinesInForce(settings, in_use, compute_thresholds(settings.lines_policy, in_use))


def _read_standing(actor: Actor, session: AgentSession, thread: Thread | None) -> Standing:
    in_force = read_lines(session, thread)
    lines = in_force.lines
    reading = classify_usage(lines, session.context_tokens)
    recent = _read_recent(actor, session, thread, in_force.settings) if thread else None
    forecast = _forecast(session, recent, lines)
    bar = draw_gauge(
        lines,
        reading,
        forecast=forecast,
        peak_tokens=session.peak_tokens or None,
        provenance=recent.provenance if recent else "measured" if session.context_tokens else "",
    )
    is_soon = isinstance(forecast, Forecast) and forecast.is_soon and lines is not None and lines.is_auto_on
    bar = replace(bar, pending_tokens=session.pending_tokens, is_soon=is_soon)
    return Standing(
        in_force.settings, in_force.in_use, lines, reading, forecast, bar, recent.next_prompt if recent else None
    )


@dataclass(frozen=True, slots=True)
class _Recent:
    """The last calls of the conversation, and how what its window holds now is known."""

    points: tuple[CallPoint, ...]
    provenance: str
    next_prompt: NextCallCost | None = None


def _read_recent(actor: Actor, session: AgentSession, thread: Thread, settings: TeamSettings) -> _Recent:
    own = {"session": session, "agent_id": thread.agent_id}
    found = access.calls(actor).filter(OF_CONVERSATION, **own).order_by("-number")
    rows = list(found.values_list(*POINT_COLUMNS, "model", *_USAGE)[:MEMORY_POINTS])[::-1]
    full = access.compactions(actor).filter(kind=CompactionKind.FULL, **own).order_by("call_number", "pk")
    compacted = list(full.values_list("call_number", "after_tokens"))
    ends = [number for number, _ in compacted]
    points = build_points((row[: len(POINT_COLUMNS)] for row in rows), ends)
    if not points:
        return _Recent((), "")
    if not ends or ends[-1] < rows[-1][0]:
        return _Recent(tuple(points), "measured", _price_next(rows[-1], session.pending_tokens, settings))
    # No call has followed it yet: the context is what the client told that it left, or else what its lines come to.
    is_told = session.pending_tokens < session.context_tokens
    return _Recent(tuple(points), "measured" if is_told else "estimated")


def _price_next(row: Sequence[Any], pending_tokens: int, settings: TeamSettings) -> NextCallCost | None:
    """From the last call, as `_read_recent` reads it, and what arrived since."""
    _, _, at, _, model, fresh, read, short, long, output = row
    usage = Usage(
        input_tokens=fresh,
        output_tokens=output,
        cache_creation_tokens=short + long,
        cache_creation_5m_tokens=short,
        cache_creation_1h_tokens=long,
        cache_read_tokens=read,
    )
    return compute_next_call_cost(usage, model, at, added_tokens=pending_tokens, team_price=settings.find_price(model))


def _forecast(session: AgentSession, recent: _Recent | None, lines: Thresholds | None) -> Forecast | NotEnoughData:
    """From the stored pace, as the list's; from the last calls where none is stored."""
    if recent is None:
        return NotEnoughData("No forecast yet: no API calls recorded.")
    if lines is None:
        return NotEnoughData("No forecast: the window of this model is unknown.")
    pace = parse_pace(session.forecast) or measure_pace(recent.points)
    return forecast_remaining(pace, lines.limit_tokens - session.context_tokens)

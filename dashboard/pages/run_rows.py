"""Plimsoll's own compactions as rows of lists: what was asked, how far it is, what it freed, retained and cost."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from django.db.models import OuterRef, QuerySet, Subquery

from dashboard import access
from dashboard.access import Actor
from dashboard.models import AgentSession, CompactionRun, RunKind, RunRevision, RunState, SummarizerName
from dashboard.pages.compaction_rows import ShrinkBar
from dashboard.pages.ledger import name_session
from dashboard.pages.thread_names import name_by_id, name_threads
from dashboard.words import format_freed, saves_nothing, say_tokens

PAGE_SIZE = 25
_TENTH = Decimal("0.1")

KIND_NAMES = {
    RunKind.FULL: "full",
    RunKind.FROM: "from a message on",
    RunKind.UP_TO: "up to a message",
    RunKind.MICRO_SIZE: "clear old tool results",
    RunKind.MICRO_IDLE: "clear all but the last 5 tool results",
    RunKind.NOTES: "from the session's notes",
}
STATE_STYLES = {
    RunState.QUEUED: "accent",
    RunState.RUNNING: "accent",
    RunState.DONE: "lv-ok",
    RunState.FAILED: "lv-error",
    RunState.CANCELLED: "outline",
}


@dataclass(frozen=True)
class RunRow:
    """One run. What it has not reached yet is None; `instructions` is content."""

    id: int
    session_id: int
    session_name: str
    thread: str
    kind: RunKind
    state: RunState
    stage: str
    created_at: datetime
    finished_at: datetime | None
    started_by: str
    source: str
    trigger: str
    summarizer: str
    model: str
    instructions: str
    before_tokens: int | None
    before_origin: str
    after_tokens: int | None
    after_origin: str
    line_tokens: int | None
    kept_count: int
    summarised_count: int
    dropped_count: int
    cleared_count: int
    is_recompaction: bool
    spent_usd: Decimal
    retained_percent: Decimal | None
    revision_count: int
    duration_seconds: float | None
    failure_sentence: str
    again_of: int | None
    bar: ShrinkBar | None

    @property
    def is_open(self) -> bool:
        return self.state.is_open

    @property
    def is_done(self) -> bool:
        return self.state is RunState.DONE

    @property
    def is_micro(self) -> bool:
        return self.kind.is_micro

    @property
    def asks_model(self) -> bool:
        return SummarizerName(self.summarizer).is_paid

    @property
    def kind_words(self) -> str:
        return KIND_NAMES[self.kind]

    @property
    def state_style(self) -> str:
        return STATE_STYLES[self.state]

    @property
    def saved_tokens(self) -> int | None:
        if self.before_tokens is None or self.after_tokens is None:
            return None
        return max(0, self.before_tokens - self.after_tokens)

    @property
    def before_words(self) -> str:
        return _say_known(self.before_tokens, self.before_origin)

    @property
    def after_words(self) -> str:
        return _say_known(self.after_tokens, self.after_origin)

    @property
    def sentence(self) -> str:
        """167.0k -> ~51.0k, ~116.0k freed; without a result what became of it."""
        if not self.is_done:
            return "Compaction under way" if self.is_open else f"Compaction {self.state}"
        return f"{self.before_words} → {self.after_words}, {self.freed_words}"

    @property
    def freed_words(self) -> str:
        is_rough = "estimate" in (self.before_origin, self.after_origin)
        return format_freed(self.before_tokens, self.after_tokens, self.saved_tokens, is_estimated=is_rough)

    @property
    def saves_nothing(self) -> bool:
        return saves_nothing(self.before_tokens, self.after_tokens)


@dataclass(frozen=True)
class RunList:
    """One page of runs, newest first; `older_than` is where the next one starts."""

    rows: tuple[RunRow, ...]
    older_than: int | None


def list_session_runs(actor: Actor, session: AgentSession, *, before: int | None = None) -> RunList:
    """Two queries, however many there are."""
    found = read_runs(access.runs(actor).filter(session=session))
    if before is not None:
        found = found.filter(pk__lt=before)
    runs = list(found.order_by("-id")[: PAGE_SIZE + 1])
    shown = runs[:PAGE_SIZE]
    reads_content = access.reads_content(actor, session)
    threads = name_threads(session.pk, reads_content=reads_content) if shown else {}
    scale = find_scale(shown)
    rows = (
        make_run_row(
            run,
            session=session,
            thread=threads.get(run.agent_id) or name_by_id(run.agent_id),
            scale_tokens=scale,
            reads_content=reads_content,
        )
        for run in shown
    )
    return RunList(tuple(rows), shown[-1].pk if len(runs) > PAGE_SIZE else None)


def read_runs(runs: QuerySet[CompactionRun]) -> QuerySet[CompactionRun]:
    """With what their newest revision says, and without the content they hold."""
    newest = RunRevision.objects.filter(run=OuterRef("pk")).order_by("-number")
    return runs.defer("outcome", "details").annotate(
        revised_tokens=Subquery(newest.values("after_tokens")[:1]),
        revised_percent=Subquery(newest.values("retained_percent")[:1]),
        revision_count=Subquery(newest.values("number")[:1]),
    )


def find_scale(runs: Iterable[CompactionRun]) -> int:
    return max((max(run.before_tokens or 0, run.after_tokens or 0) for run in runs), default=0)


def make_run_row(
    run: CompactionRun, *, session: AgentSession, thread: str, scale_tokens: int, reads_content: bool
) -> RunRow:
    """`run` as read_runs gives it; a revision the page shows may be set on it in place of the newest."""
    revised = getattr(run, "revised_tokens", None)
    after_tokens = run.after_tokens if revised is None else revised
    return RunRow(
        id=run.pk,
        session_id=run.session_id,
        session_name=name_session(session, reads_content=reads_content),
        thread=thread,
        kind=RunKind(run.kind),
        state=RunState(run.state),
        stage=run.stage,
        created_at=run.created_at,
        finished_at=run.finished_at,
        started_by=run.started_by_name,
        source=run.source,
        trigger=run.trigger,
        summarizer=run.summarizer,
        model=run.model,
        instructions=run.instructions if reads_content else "",
        before_tokens=run.before_tokens,
        before_origin=run.before_origin,
        after_tokens=after_tokens,
        # An edited summary was counted here, whatever the first one was.
        after_origin=run.after_origin if after_tokens == run.after_tokens else "estimate",
        line_tokens=run.line_tokens,
        kept_count=run.kept_count,
        summarised_count=run.summarised_count,
        dropped_count=run.dropped_count,
        cleared_count=run.cleared_count,
        is_recompaction=run.is_recompaction,
        spent_usd=run.spent_usd,
        retained_percent=_round(getattr(run, "revised_percent", None)),
        revision_count=getattr(run, "revision_count", None) or 0,
        duration_seconds=_measure_seconds(run),
        failure_sentence=run.failure_sentence,
        again_of=run.again_of_id,
        bar=_draw_bar(run.before_tokens, after_tokens, run.line_tokens, scale_tokens),
    )


def _measure_seconds(run: CompactionRun) -> float | None:
    if run.started_at is None or run.finished_at is None:
        return None
    return max(0.0, (run.finished_at - run.started_at).total_seconds())


def _round(percent: Decimal | None) -> Decimal | None:
    """SQLite forgets the zero behind the point."""
    return None if percent is None else percent.quantize(_TENTH)


def _say_known(tokens: int | None, origin: str) -> str:
    is_rough = origin == "estimate" and tokens is not None
    return f"{'~' if is_rough else ''}{say_tokens(tokens)}"


def _draw_bar(before: int | None, after: int | None, line: int | None, scale_tokens: int) -> ShrinkBar | None:
    if before is None or after is None or scale_tokens == 0:
        return None
    return ShrinkBar(
        before_percent=round(100 * before / scale_tokens, 1),
        after_percent=round(100 * after / scale_tokens, 1),
        line_percent=round(100 * line / scale_tokens, 1) if line is not None and line <= scale_tokens else None,
    )

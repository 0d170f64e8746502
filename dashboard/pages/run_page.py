"""One run with everything that is known of it: progress while it is open, what came of it when it is done."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from dashboard import access
from dashboard.access import Actor
from dashboard.hooks.notes import HookNote, read_notes
from dashboard.models import AgentSession, CompactionRun, RunAttempt, RunRevision, RunState
from dashboard.pages.compaction_page import (
    AuditView,
    MessageList,
    SummaryView,
    build_audit_view,
    cut_messages,
    take_apart,
)
from dashboard.pages.content_state import ContentState
from dashboard.pages.run_progress import RunProgress, tell_progress
from dashboard.pages.run_result import (
    ClearedView,
    RestoredThing,
    RunResult,
    list_cleared,
    list_restored,
    read_result,
    trace_fates,
)
from dashboard.pages.run_rows import RunRow, find_scale, make_run_row, read_runs
from dashboard.pages.thread_names import name_by_id, name_threads
from dashboard.runs.basis import ESTIMATE
from dashboard.runs.failures import Failure, describe_failure
from dashboard.runs.missing_lines import describe_gaps
from dashboard.runs.preview import GROWTH_ADVICE
from dashboard.words import format_lost_count, title_compaction

MOST_OTHERS = 20
NOT_SMALLER = f"Do not resume from this result: it takes as much room as what it replaces, or more. {GROWTH_ADVICE}"


@dataclass(frozen=True)
class AttemptRow:
    """One request to a model, paid for or not."""

    number: int
    path: str
    model: str
    at: datetime
    duration_seconds: float
    sent_tokens: int
    output_tokens: int
    hit_percent: int | None
    cost_usd: Decimal | None
    failure_code: str
    failure_sentence: str
    request_id: str


@dataclass(frozen=True)
class RevisionRow:
    """One version of the summary; number 1 is as it was written."""

    number: int
    by: str
    at: datetime
    summary_tokens: int
    after_tokens: int
    retained_percent: Decimal | None
    is_shown: bool

    @property
    def words(self) -> str:
        return "as written" if self.number == 1 else f"edited by {self.by or 'a former member'}"


@dataclass(frozen=True)
class RunPage:
    """All of one run. What needs content is None where it is not stored or must not be shown."""

    row: RunRow
    run: CompactionRun
    session: AgentSession
    content_state: ContentState
    may_run: bool
    progress: RunProgress | None
    failure: Failure | None
    attempts: tuple[AttemptRow, ...]
    revisions: tuple[RevisionRow, ...]
    shown_number: int
    summary_text: str
    analysis: str
    summary: SummaryView | None
    restored: tuple[RestoredThing, ...] | None
    cleared: tuple[ClearedView, ...] | None
    messages: MessageList | None
    audit: AuditView | None
    others: tuple[RunRow, ...]
    hook_notes: tuple[HookNote, ...]

    @property
    def title(self) -> str:
        """Return the finding as a sentence: Compacted 168k to ~36k: 3 things lost; before the end its state."""
        row = self.row
        if not row.is_done:
            return row.sentence
        return title_compaction(
            row.before_tokens,
            row.after_tokens,
            verb="Cleared old tool results," if row.is_micro else "Compacted",
            ending=f": {format_lost_count(self.audit.lost_count if self.audit else None)}",
            is_before_estimated=row.before_origin == ESTIMATE,
            is_after_estimated=row.after_origin == ESTIMATE,
        )

    @property
    def advice(self) -> str:
        """What to do with a result that saves nothing; empty for any other."""
        return NOT_SMALLER if self.row.is_done and self.row.saves_nothing else ""

    @property
    def missing_lines(self) -> str:
        """Empty where no line was missing in what was compacted."""
        return describe_gaps(self.run.gap_count)

    @property
    def shows_content(self) -> bool:
        return self.content_state is ContentState.SHOWN

    @property
    def transcript_of(self) -> int | None:
        """The session that findings link into, for those who may read it; a run may outlive the session's words."""
        return self.session.pk if self.shows_content and self.session.has_content else None

    @property
    def last_number(self) -> int:
        return self.revisions[-1].number if self.revisions else 0

    @property
    def shown_revision(self) -> RevisionRow | None:
        return next((revision for revision in self.revisions if revision.is_shown), None)

    @property
    def model(self) -> str:
        """The one that answered; before that the one that was chosen, if any."""
        answered = (each.model for each in reversed(self.attempts) if each.model and not each.failure_code)
        return next(answered, self.row.model)

    @property
    def brought_back(self) -> tuple[RestoredThing, ...]:
        return tuple(thing for thing in self.restored or () if not thing.is_skipped)

    @property
    def skipped(self) -> tuple[RestoredThing, ...]:
        return tuple(thing for thing in self.restored or () if thing.is_skipped)

    @property
    def restored_tokens(self) -> int:
        return sum(thing.tokens for thing in self.brought_back)


def read_run(
    actor: Actor,
    run: CompactionRun,
    *,
    now: datetime,
    revision_number: int | None = None,
    first_message: int = 1,
    is_lost_only: bool = False,
) -> RunPage:
    """`run` with its session, team and job, as read_runs gives it. An unknown revision shows the newest."""
    session = run.session
    reads_content = access.reads_content(actor, session)
    revisions = list(run.revisions.order_by("number").defer("analysis"))
    shown = next((each for each in revisions if each.number == revision_number), revisions[-1] if revisions else None)
    result = read_result(run, shown.number if shown else None) if run.state == RunState.DONE else None
    _note_shown(run, shown, result)
    threads = name_threads(session.pk, reads_content=reads_content)
    row = make_run_row(
        run,
        session=session,
        thread=threads.get(run.agent_id) or name_by_id(run.agent_id),
        scale_tokens=find_scale([run]),
        reads_content=reads_content,
    )
    state = _find_state(run, shown, reads_content=reads_content)
    shows_content = state is ContentState.SHOWN
    traced = trace_fates(result) if result else ()
    audit = build_audit_view(_find_audit(shown, result), traced, shows_texts=shows_content)
    return RunPage(
        row=row,
        run=run,
        session=session,
        content_state=state,
        may_run=access.may_run(actor, session),
        progress=tell_progress(run, now=now) if row.is_open else None,
        failure=describe_failure(run),
        attempts=tuple(_make_attempt(each) for each in run.attempts.order_by("number")),
        revisions=tuple(_make_revision(each, is_shown=each is shown) for each in revisions),
        shown_number=shown.number if shown else 0,
        summary_text=shown.text if shown and shows_content else "",
        analysis=shown.analysis if shown and shows_content else "",
        summary=_take_apart(shown) if shown and shows_content else None,
        restored=list_restored(result, shows_content=shows_content) if result and not row.is_micro else None,
        cleared=list_cleared(result, shows_content=shows_content) if result and row.is_micro else None,
        messages=cut_messages(traced, first_message, shows_words=shows_content, audit=audit, is_lost_only=is_lost_only)
        if traced
        else None,
        audit=audit,
        others=_list_others(actor, run, reads_content=reads_content) if row.is_done else (),
        hook_notes=read_notes(run, shows_words=reads_content),
    )


def _find_state(run: CompactionRun, shown: RunRevision | None, *, reads_content: bool) -> ContentState:
    if not reads_content:
        return ContentState.NOT_GRANTED
    if run.content_removed_at is not None:
        return ContentState.REMOVED
    return ContentState.SHOWN if shown is not None or run.details is not None else ContentState.NOT_STORED


def _note_shown(run: CompactionRun, shown: RunRevision | None, result: RunResult | None) -> None:
    """The row is drawn with the figures of what is shown."""
    told = vars(run)
    if shown is not None:
        told["revised_tokens"], told["revised_percent"] = shown.after_tokens, shown.retained_percent
    elif result is not None:
        told["revised_percent"] = result.outcome.retained_percent


def _find_audit(shown: RunRevision | None, result: RunResult | None) -> Mapping[str, Any] | None:
    if shown is not None:
        return shown.audit
    return result.outcome.audit if result else None


def _take_apart(revision: RunRevision) -> SummaryView:
    told = take_apart(revision.text)
    return SummaryView(told.opening, told.sections, tuple(revision.missing_sections))


def _make_attempt(attempt: RunAttempt) -> AttemptRow:
    written = attempt.write_5m_tokens + attempt.write_1h_tokens
    return AttemptRow(
        number=attempt.number,
        path=attempt.path,
        model=attempt.model,
        at=attempt.at,
        duration_seconds=attempt.duration_seconds,
        sent_tokens=attempt.input_tokens + attempt.read_tokens + written,
        output_tokens=attempt.output_tokens,
        hit_percent=attempt.hit_percent,
        cost_usd=attempt.cost_usd,
        failure_code=attempt.failure_code,
        failure_sentence=attempt.failure_sentence,
        request_id=attempt.request_id,
    )


def _make_revision(revision: RunRevision, *, is_shown: bool) -> RevisionRow:
    return RevisionRow(
        number=revision.number,
        by=revision.edited_by_name,
        at=revision.created_at,
        summary_tokens=revision.summary_tokens,
        after_tokens=revision.after_tokens,
        retained_percent=revision.retained_percent,
        is_shown=is_shown,
    )


def _list_others(actor: Actor, run: CompactionRun, *, reads_content: bool) -> tuple[RunRow, ...]:
    """Finished runs of the same conversation, to compare it with."""
    done = access.runs(actor).filter(session=run.session_id, agent_id=run.agent_id, state="done").exclude(pk=run.pk)
    found: Sequence[CompactionRun] = list(read_runs(done).order_by("-id")[:MOST_OTHERS])
    scale = find_scale(found)
    return tuple(
        make_run_row(other, session=run.session, thread="", scale_tokens=scale, reads_content=reads_content)
        for other in found
    )
